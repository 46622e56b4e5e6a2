import { writev as writevWithCallback } from 'node:fs'
import { promisify } from 'node:util'

const writev = promisify(writevWithCallback)

/** Appends chunks to an open file in as few calls as the system takes them in. */
export async function writeAll(fd: number, chunks: Uint8Array[]): Promise<void> {
  for (let rest = chunks; rest.length > 0; ) {
    let { bytesWritten } = await writev(fd, rest)
    const left: Uint8Array[] = []
    for (const chunk of rest) {
      if (bytesWritten < chunk.length) left.push(chunk.subarray(bytesWritten))
      bytesWritten = Math.max(0, bytesWritten - chunk.length)
    }
    rest = left
  }
}
