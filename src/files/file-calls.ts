import * as fs from 'node:fs'
import { promisify } from 'node:util'

// They use file descriptors, because the calls of a `FileHandle` take longer.
export const openFile = promisify(fs.open)
export const closeFile = promisify(fs.close)
export const renameFile = promisify(fs.rename)
export const syncFile = promisify(fs.fsync)
const writev = promisify(fs.writev)

/** Appends chunks to an open file, in as few calls as possible. @param write may write less than all of them */
export async function writeAll(
  file: number,
  chunks: readonly Uint8Array[],
  write: (file: number, chunks: readonly Uint8Array[]) => Promise<{ bytesWritten: number }> = writev,
): Promise<void> {
  let rest = chunks
  while (rest.length > 0) rest = after(rest, (await write(file, rest)).bytesWritten)
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
