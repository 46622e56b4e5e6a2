import { writev } from 'node:fs'

/** Appends chunks to an open file, in as few calls as possible. */
export function writeAll(
  file: number,
  chunks: readonly Uint8Array[],
  done: (error: Error | null) => void,
): void {
  writev(file, chunks, (error, written) => {
    const rest = error ? [] : after(chunks, written)
    if (rest.length === 0) done(error)
    else writeAll(file, rest, done)
  })
}

function after(chunks: readonly Uint8Array[], bytes: number): Uint8Array[] {
  const rest: Uint8Array[] = []
  let skipped = bytes
  for (const chunk of chunks) {
    if (skipped < chunk.length) rest.push(chunk.subarray(skipped))
    skipped = Math.max(0, skipped - chunk.length)
  }
  return rest
}
