/** Bytes of chunks between two collections of new objects. */
const COLLECT_BYTES = 16 * 1024 * 1024

let collect: (() => void) | undefined
let bytes = 0

/** From now on new objects are collected by the bytes of chunks. For a process of our own: V8 is set up in v8-settings.ts. */
export function collectByChunks(collectNew: () => void): void {
  collect = collectNew
}

/**
 * To be called with the bytes of each chunk that arrives. V8 collects new objects by what they take in its heap, where
 * chunks take next to nothing; their bytes would wait for a collection of everything. One of new objects takes a millisecond.
 */
export function noteChunk(length: number): void {
  if (!collect) return
  bytes += length
  if (bytes < COLLECT_BYTES) return
  bytes = 0
  collect()
}
