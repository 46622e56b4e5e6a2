import { open } from 'node:fs/promises'

/**
 * Reads a stream to its end.
 *
 * @returns undefined if it has more bytes than that
 */
export async function readAtMost(
  stream: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of stream) {
    size += chunk.length
    if (size > maxBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** The same of a file. @param path absolute */
export async function readFileAtMost(path: string, maxBytes: number): Promise<Buffer | undefined> {
  const file = await open(path)
  try {
    return await readAtMost(file.createReadStream({ autoClose: false }), maxBytes)
  } finally {
    await file.close()
  }
}
