import { createCanceller, onAbort } from './cancellation.ts'

/** A time limit. The code that begins one must end it. */
export interface TimeLimit {
  /** Aborted when the time is up, or when the outer signal is. */
  readonly signal: AbortSignal
  leftMs(): number
  end(): void
}

/** @param late returns the reason of the signal when the time is up */
export function beginTimeLimit(ms: number, outer: AbortSignal, late: () => unknown): TimeLimit {
  const canceller = createCanceller()
  const timer = setTimeout(() => canceller.abort(late()), ms).unref()
  const end = performance.now() + ms
  const stopListening = onAbort(outer, () => canceller.abort(outer.reason))
  return {
    signal: canceller.signal,
    leftMs: () => end - performance.now(),
    end() {
      clearTimeout(timer)
      stopListening()
    },
  }
}

/**
 * Returns the result of work, or fails if it takes longer. The work is not stopped then.
 *
 * @param late returns that failure
 */
export function within<T>(work: T | Promise<T>, ms: number, late: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const tooLong = new Promise<never>((_, reject) => {
    // The timer is not unref'd: a process with nothing else to do would exit without an error.
    timer = setTimeout(() => reject(late()), ms)
  })
  return Promise.race([work, tooLong]).finally(() => clearTimeout(timer))
}
