import { createCanceller, onAbort } from './cancellation.ts'

/**
 * Yields what some work emits, until the work ends. If the caller stops early, the work is aborted and awaited.
 *
 * @throws what the work throws, after everything that it has emitted
 */
export async function* gather<T>(
  work: (emit: (value: T) => void, signal: AbortSignal) => Promise<void>,
  outer: AbortSignal,
): AsyncGenerator<T, void> {
  const canceller = createCanceller()
  const stopListening = onAbort(outer, () => canceller.abort(outer.reason))
  const ready: T[] = []
  let isOver = false
  let wake = () => {}
  const emit = (value: T) => {
    ready.push(value)
    wake()
  }
  const done = work(emit, canceller.signal).finally(() => {
    isOver = true
    wake()
  })
  done.catch(() => {}) // It is awaited below, when everything has been yielded.
  try {
    while (!isOver || ready.length > 0) {
      yield* ready.splice(0)
      if (!isOver && ready.length === 0) await new Promise<void>(resolve => (wake = resolve))
    }
    await done
  } finally {
    canceller.abort()
    stopListening()
    await done.catch(() => {})
  }
}
