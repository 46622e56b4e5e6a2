import { setTimeout as sleep } from 'node:timers/promises'
import { orAborted } from '../../flow/cancellation.ts'

/** Work that its caller may leave when a signal is aborted, while it tidies up behind itself. */
export interface Background {
  /** What `work` gives, or at once the reason of the signal. */
  run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>
  /** Waits until nothing goes on any more, but no longer than this. */
  settle(timeoutMs: number): Promise<void>
}

export function createBackground(): Background {
  const going = new Set<Promise<unknown>>()

  return {
    async run(work, signal) {
      signal.throwIfAborted()
      const done = work()
      const ended = done.catch(() => {}).finally(() => going.delete(ended))
      going.add(ended)
      return orAborted(done, signal)
    },
    async settle(timeoutMs) {
      const late = new AbortController()
      const timer = sleep(timeoutMs, undefined, { signal: late.signal }).catch(() => {})
      await Promise.race([Promise.all(going), timer])
      late.abort()
    },
  }
}
