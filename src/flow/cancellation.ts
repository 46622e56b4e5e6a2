/** Says when work is no longer wanted: what our own code needs of an AbortSignal, which is one. */
export interface Cancellation {
  readonly aborted: boolean
  readonly reason: unknown
  /** @throws the reason, when there is one already */
  throwIfAborted(): void
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/** One made for each request: an AbortController takes several times as long to make and to listen to. */
export class Canceller implements Cancellation {
  aborted = false
  reason: unknown
  readonly #listeners = new Set<() => void>()

  abort(reason: unknown): void {
    if (this.aborted) return
    this.aborted = true
    this.reason = reason
    for (const listener of this.#listeners) listener()
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.add(listener)
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.delete(listener)
  }
}

/** For what asks for a real one. */
export function toAbortSignal(cancellation: Cancellation): AbortSignal {
  if (cancellation instanceof AbortSignal) return cancellation
  const controller = new AbortController()
  const abort = () => controller.abort(cancellation.reason)
  if (cancellation.aborted) abort()
  else cancellation.addEventListener('abort', abort)
  return controller.signal
}

/** What work gives, or at once the reason of the signal; the work then goes on alone. */
export function orAborted<T>(work: Promise<T>, signal: Cancellation): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = () => {
      signal.removeEventListener('abort', leave)
      reject(signal.reason)
    }
    if (signal.aborted) leave()
    else signal.addEventListener('abort', leave)
    work.then(
      value => {
        signal.removeEventListener('abort', leave)
        resolve(value)
      },
      error => {
        signal.removeEventListener('abort', leave)
        reject(error)
      },
    )
  })
}
