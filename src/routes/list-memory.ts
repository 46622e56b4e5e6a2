import { UploadError } from '../errors.ts'

/** Lists up to this many bytes are always taken: others can't be kept out by large ones. */
const SMALL_BYTES = 64 * 1024

/**
 * What the lists of all requests hold in memory together. Unlike files they can't wait on disk: their `data:` addresses
 * stay until they are delivered.
 */
export interface ListMemory {
  /** @param most bytes that all lists may hold; a single one may have more */
  open(most: number): ListShare
}

export interface ListShare {
  /**
   * Counts bytes as they arrive.
   * @throws UploadError `overloaded` when there is no room for more of a large list beside the others
   */
  take(bytes: number): void
  /** Gives all of it back. */
  release(): void
}

export function createListMemory(): ListMemory {
  let held = 0
  return {
    open(most) {
      let size = 0
      let counted = 0
      const count = (wanted: number) => {
        held += wanted - counted
        counted = wanted
      }
      return {
        take(bytes) {
          size += bytes
          count(Math.max(0, size - SMALL_BYTES))
          if (counted === 0 || held <= most || held === counted) return
          const message =
            'The lists of other requests take all memory that there is for lists (limits.memory). Try again in a moment, or send files in a form.'
          throw new UploadError('overloaded', message, { retryAfterS: 5 })
        },
        release: () => count(0),
      }
    },
  }
}
