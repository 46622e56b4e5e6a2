import { createReadStream } from 'node:fs'
import { readFile, unlink } from 'node:fs/promises'
import { Readable } from 'node:stream'
import type { Payload } from './payload.ts'

/** What is known of a payload beside its bytes. */
type Identity = Omit<Payload, 'path' | 'chunks' | 'stream' | 'bytes' | 'dispose'>

/** A payload whose bytes are in memory. @param received emptied @param release gives the memory back to the budget */
export function inMemory(received: Uint8Array[], identity: Identity, release: () => void): Payload {
  let chunks: readonly Uint8Array[] = received.splice(0) // the writer keeps no pieces of what is joined here
  return Object.assign(identity, {
    path: undefined,
    chunks: () => chunks,
    stream: () => Readable.from(chunks, { objectMode: false }),
    async bytes() {
      const [only] = chunks
      if (chunks.length === 1 && Buffer.isBuffer(only)) return only
      const joined = Buffer.concat(chunks)
      chunks = [joined]
      return joined
    },
    dispose: async () => release(),
  })
}

/** A payload whose bytes are in a file of its own. */
export function inFileAt(path: string, identity: Identity): Payload {
  let removed: Promise<void> | undefined
  return {
    ...identity,
    path,
    chunks: () => undefined,
    stream: () => createReadStream(path, { highWaterMark: 256 * 1024 }),
    bytes: () => readFile(path),
    dispose() {
      removed ??= unlink(path).catch(() => {})
      return removed
    },
  }
}
