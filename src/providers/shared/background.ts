import { orAborted } from '../../flow/cancellation.ts'
import { within } from '../../flow/time-limit.ts'

/** Maximum time for abandoned work to clean up, in milliseconds. */
const SETTLE_MS = 3000

/** Runs work that its caller can abandon by aborting a signal, while the work still cleans up. */
export interface Background {
  /** Resolves to the result of `work`. Rejects at once with the signal's reason when it is aborted. */
  run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>
  /** Waits for work in progress, for a limited time. */
  settle(): Promise<void>
}

export function createBackground(): Background {
  const inProgress = new Set<Promise<unknown>>()

  return {
    async run(work, signal) {
      signal.throwIfAborted()
      const done = work()
      const ended = done.catch(() => {}).finally(() => inProgress.delete(ended))
      inProgress.add(ended)
      return orAborted(done, signal)
    },
    async settle() {
      await within(Promise.all(inProgress), SETTLE_MS, () => new Error('still in progress')).catch(() => {})
    },
  }
}
