import { open } from 'node:fs/promises'
import { resolve } from 'node:path'
import { describeFileError } from '../errors.ts'
import type { Context } from './context.ts'

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

/**
 * Reads a file that the user has named, or standard input (`-`).
 *
 * @param shown what is read, for the message
 * @throws Error that says what could not be read, and why
 */
export async function readNamed(
  name: string,
  { cwd, stdin }: Pick<Context, 'cwd' | 'stdin'>,
  maxMiB: number,
  shown: string,
): Promise<Buffer> {
  const fail = (error: unknown): never => {
    throw new Error(`Could not read ${shown}: ${describeFileError(error)}.`)
  }
  const read = async () => {
    if (name === '-') return readAtMost(stdin, maxMiB * 1024 * 1024)
    const file = await open(resolve(cwd, name))
    const stream = file.createReadStream({ autoClose: false })
    return readAtMost(stream, maxMiB * 1024 * 1024).finally(() => file.close())
  }
  return (await read().catch(fail)) ?? fail(new Error(`it is larger than ${maxMiB} MiB`))
}
