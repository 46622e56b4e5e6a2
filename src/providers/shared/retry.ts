import { setTimeout as sleep } from 'node:timers/promises'

/** Before the second attempt; twice as much before each further one. */
const FIRST_PAUSE_MS = 250

/**
 * Does a part of a delivery again when it failed in passing, so that it does not cost the parts that have arrived.
 *
 * @param attempts at most, the first one included
 * @param mayPass undefined or false for failures for good; else how long to wait, when the other side says so
 * @throws the failure of the last attempt, or the reason of `signal`
 */
export async function retry<T>(
  work: () => Promise<T>,
  attempts: number,
  mayPass: (error: unknown) => { retryAfterS: number | undefined } | undefined | false,
  signal: AbortSignal,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      signal.throwIfAborted()
      const passing = mayPass(error)
      if (!passing || attempt === attempts) throw error
      const pauseMs =
        passing.retryAfterS === undefined ? FIRST_PAUSE_MS * 2 ** (attempt - 1) : passing.retryAfterS * 1000
      await sleep(pauseMs, undefined, { signal }).catch(() => signal.throwIfAborted())
    }
  }
}
