import { setTimeout as sleep } from 'node:timers/promises'
import { orAborted } from '../../flow/cancellation.ts'

/** How long work that was left may go on to tidy up. */
const SETTLE_MS = 3000

/** Work that its caller may leave when a signal is aborted, while it tidies up behind itself. */
export interface Background {
  /** What `work` gives, or at once the reason of the signal. */
  run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>
  /** Waits until nothing goes on any more, but only for a while. */
  settle(): Promise<void>
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
    async settle() {
      const late = new AbortController()
      const timer = sleep(SETTLE_MS, undefined, { signal: late.signal }).catch(() => {})
      await Promise.race([Promise.all(going), timer])
      late.abort()
    },
  }
}
