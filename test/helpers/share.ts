import { afterAll } from 'vitest'

/** Something that is started by whoever needs it first, and ended after the last test of this file or group. */
export function share<T>(start: () => Promise<T>, end: (started: T) => Promise<unknown>): () => Promise<T> {
  let started: Promise<T> | undefined
  afterAll(async () => {
    if (started) await end(await started)
  })
  return () => {
    started ??= start()
    return started
  }
}
