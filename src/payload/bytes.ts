import { createReadStream } from 'node:fs'
import { readFile, unlink } from 'node:fs/promises'
import { Readable } from 'node:stream'

/** The bytes of one input: in memory up to a threshold, above it in a private temporary file. Can be read again and again. */
export interface Payload {
  /** The name it came with, not yet cleaned; empty when it had none. */
  readonly name: string
  /** Names of the folders around a file named by its path, outermost first; empty for everything else. */
  readonly folders: readonly string[]
  /** Bytes. */
  readonly size: number
  /** Hex. */
  readonly sha256: string
  /** MIME type by the bytes. */
  readonly contentType: string
  /** Usual file extension of that type with its dot, `.png`; empty when unknown. */
  readonly extension: string
  /** The private file the bytes lie in; undefined when they are in memory. */
  readonly path: string | undefined
  /** The bytes as they came, piece by piece; undefined when they are in a file. */
  chunks(): readonly Uint8Array[] | undefined
  stream(): Readable
  bytes(): Promise<Buffer>
  /** Has `dispose` wait until the function that is returned is called: somebody may still read. */
  hold(): () => void
  /** Frees the memory and removes the temporary file. Safe to call twice. */
  dispose(): Promise<void>
}

/** The properties of a payload, without its bytes. */
type PayloadFacts = Omit<Payload, 'path' | 'chunks' | 'stream' | 'bytes' | 'hold' | 'dispose'>

/** A payload whose bytes are in memory. @param received emptied @param release gives the memory back to the budget */
export function inMemory(received: Uint8Array[], identity: PayloadFacts, release: () => void): Payload {
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
    ...createHolds(async () => release()),
  })
}

/** A payload whose bytes are in a file of its own. */
export function inFileAt(path: string, identity: PayloadFacts): Payload {
  return {
    ...identity,
    path,
    chunks: () => undefined,
    stream: () => createReadStream(path, { highWaterMark: 256 * 1024 }),
    bytes: () => readFile(path),
    ...createHolds(() => unlink(path).catch(() => {})),
  }
}

/** @param free called once */
function createHolds(free: () => Promise<void>): Pick<Payload, 'hold' | 'dispose'> {
  let holds = 0
  let isWanted = true
  let freed: Promise<void> | undefined
  const freeUnlessHeld = async () => {
    if (isWanted || holds > 0) return
    freed ??= free()
    await freed
  }
  return {
    hold() {
      holds++
      return () => {
        holds--
        void freeUnlessHeld()
      }
    },
    dispose() {
      isWanted = false
      return freeUnlessHeld()
    },
  }
}
