import { unlink } from 'node:fs/promises'
import { type Content, inFile, inMemory } from '../body.ts'

/** The bytes of one input: in memory up to a threshold, otherwise in a private temporary file. They can be read repeatedly. */
export interface Payload extends Content {
  /** The file name as it was sent, not yet cleaned. Empty if there was none. */
  readonly name: string
  /** The folders of a file that was named by its path, outermost first. Empty for all other inputs. */
  readonly folders: readonly string[]
  /** Hex. */
  readonly sha256: string
  /** MIME type, detected from the bytes. */
  readonly contentType: string
  /** Usual file extension of that type, such as `.png`. Empty if it is unknown. */
  readonly extension: string
  /** Path of the temporary file, or undefined if the bytes are in memory. */
  readonly path: string | undefined
  /** Postpones `dispose` until the returned function is called, because something still reads the bytes. */
  hold(): () => void
  /** Frees the memory and removes the temporary file. Safe to call twice. */
  dispose(): Promise<void>
}

/** The properties of a payload, without its bytes. */
type PayloadFacts = Omit<Payload, 'path' | 'read' | 'hold' | 'dispose'>

/** A payload whose bytes are in memory. @param release gives the memory back to the budget */
export function payloadInMemory(
  chunks: readonly Uint8Array[],
  identity: PayloadFacts,
  release: () => void,
): Payload {
  const { read } = inMemory(chunks)
  return Object.assign(identity, {
    path: undefined,
    read,
    ...createHolds(() => {
      release()
      return DONE
    }),
  })
}

/** A payload in a temporary file. */
export function payloadInFile(path: string, identity: PayloadFacts): Payload {
  return {
    ...identity,
    path,
    read: inFile(path, identity.size).read,
    ...createHolds(() => unlink(path).catch(() => {})),
  }
}

/** One for all, because a form has many small files. */
const DONE = Promise.resolve()

/** @param free called once */
function createHolds(free: () => Promise<void>): Pick<Payload, 'hold' | 'dispose'> {
  /** 1 until it is disposed of, and 1 for each `hold`. */
  let users = 1
  let isDisposed = false
  let freed: Promise<void> | undefined
  const leave = () => {
    if (--users === 0) freed ??= free()
    return freed ?? DONE
  }
  return {
    hold() {
      users++
      return () => void leave()
    },
    dispose() {
      if (isDisposed) return freed ?? DONE
      isDisposed = true
      return leave()
    },
  }
}
