import { UploadError } from '../errors.ts'

/** JSON bodies up to this many bytes are always accepted, so that large ones can't block them. */
const SMALL_BYTES = 64 * 1024

/**
 * Memory budget that the JSON bodies of all requests share. Unlike files, they can't be buffered on disk: their `data:` URLs
 * stay in memory until they are stored.
 */
export interface JsonMemory {
  /** @param most budget in bytes; a single JSON body may exceed it */
  open(most: number): JsonBodyMemory
}

export interface JsonBodyMemory {
  /**
   * Counts bytes as they arrive.
   * @throws UploadError `overloaded` if a large JSON body doesn't fit into the budget
   */
  take(bytes: number): void
  /** Releases all counted bytes. */
  release(): void
}

export function createJsonMemory(): JsonMemory {
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
            'Other requests with large JSON bodies use all the memory for them (limits.memory). Try again in a moment, or send the files in a form.'
          throw new UploadError('overloaded', message, { retryAfterS: 5 })
        },
        release: () => count(0),
      }
    },
  }
}
