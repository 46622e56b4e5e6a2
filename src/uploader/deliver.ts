import { setTimeout as sleep } from 'node:timers/promises'
import { isStorageFull, systemCode, UploadError } from '../errors.ts'
import { type Cancellation, toAbortSignal } from './cancellation.ts'
import { type Destination, idOf } from './destinations.ts'
import { isPassing } from './network.ts'
import type { Stored, UploadObject } from './provider.ts'
import { limitTime } from './time-limit.ts'

const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 30_000

export interface DeliveryLimits {
  /** For one attempt. */
  readonly timeoutMs: number
  /** Further attempts after one that failed in passing. */
  readonly retries: number
}

/**
 * Puts one object at its destination: with a time limit for each attempt, and again after failures that pass. The key
 * stays the same, so an attempt that did arrive is replaced and never doubled.
 *
 * @throws UploadError `delivery_failed`, `delivery_timeout`, `insufficient_storage`, or what the provider knows better
 * @throws the reason of `signal` when it is aborted
 */
export async function deliver(
  destination: Destination,
  object: UploadObject,
  limits: DeliveryLimits,
  signal: Cancellation,
): Promise<Stored> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await putInTurn(destination, object, limits.timeoutMs, signal)
    } catch (error) {
      signal.throwIfAborted()
      const failure = explain(error, destination, object)
      const pause = pauseMs(attempt, failure.retryAfterS)
      if (attempt >= limits.retries || !failure.retryable || pause > LONGEST_PAUSE_MS) throw failure
      await sleep(pause, undefined, { signal: toAbortSignal(signal) }).catch(() => {})
      signal.throwIfAborted()
    }
  }
}

function putInTurn(
  destination: Destination,
  object: UploadObject,
  timeoutMs: number,
  signal: Cancellation,
): Promise<Stored> {
  const put = () => putWithin(destination, object, timeoutMs, signal)
  return destination.queue ? destination.queue.run(put, signal) : put()
}

/** One attempt. Ends at the time limit even where a provider does not look at its signal. */
function putWithin(
  destination: Destination,
  object: UploadObject,
  timeoutMs: number,
  signal: Cancellation,
): Promise<Stored> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const attempt = new AbortController()
    const stored = destination.target.put(object, attempt.signal)
    const stop = (reason: unknown) => {
      reject(reason) // ahead of what the provider makes of it
      attempt.abort(reason)
    }
    const endWatch = limitTime(timeoutMs, () => stop(timedOut(destination, object, timeoutMs)))
    const leave = () => stop(signal.reason)
    signal.addEventListener('abort', leave)
    const end = () => {
      endWatch()
      signal.removeEventListener('abort', leave)
    }
    stored.then(
      answer => {
        end()
        resolve(answer)
      },
      error => {
        end()
        reject(error)
      },
    )
  })
}

function timedOut(destination: Destination, object: UploadObject, timeoutMs: number): UploadError {
  return new UploadError(
    'delivery_timeout',
    `${idOf(destination)} did not take "${object.key}" within ${timeoutMs / 1000} s (limits.deliveryTimeoutMs).`,
    { retryable: true },
  )
}

function explain(error: unknown, destination: Destination, object: UploadObject): UploadError {
  if (error instanceof UploadError) return error
  const what = `"${object.key}" could not be stored at ${idOf(destination)}`
  if (isStorageFull(error)) {
    return new UploadError('insufficient_storage', `${what}: there is no space left.`, { cause: error })
  }
  const code = systemCode(error)
  const reason = code ?? (error instanceof Error ? error.message : String(error))
  return new UploadError('delivery_failed', `${what}: ${reason}`, {
    cause: error,
    retryable: isPassing(code),
  })
}

/** Exponential with full jitter; a destination that says when to come back is believed, also when that is too long. */
function pauseMs(attempt: number, retryAfterS: number | undefined): number {
  if (retryAfterS !== undefined) return retryAfterS * 1000
  return Math.random() * Math.min(FIRST_PAUSE_MS * 2 ** attempt, LONGEST_PAUSE_MS)
}
