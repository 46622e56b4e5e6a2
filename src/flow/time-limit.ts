import { createCanceller, onAbort } from './cancellation.ts'

/** Time for some work. Whoever begins one ends it. */
export interface TimeLimit {
  /** Aborted when the time is up, or as another signal is. */
  readonly signal: AbortSignal
  leftMs(): number
  end(): void
}

/** @param late what the signal is aborted with when the time is up */
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
 * What work gives, or a failure when it takes longer; the work then goes on alone.
 *
 * @param late that failure
 */
export function within<T>(work: T | Promise<T>, ms: number, late: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const tooLong = new Promise<never>((_, reject) => {
    // Not unref'd: where nothing else is to be done the program would end without a word.
    timer = setTimeout(() => reject(late()), ms)
  })
  return Promise.race([work, tooLong]).finally(() => clearTimeout(timer))
}
