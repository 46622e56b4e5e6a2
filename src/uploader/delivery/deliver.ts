import { describeThrown, isStorageFull, systemCode, UploadError } from '../../errors.ts'
import { orAborted } from '../../flow/cancellation.ts'
import { retry } from '../../flow/retry.ts'
import { beginTimeLimit, type TimeLimit } from '../../flow/time-limit.ts'
import { isPassing } from '../../http/network.ts'
import type { Stored, UploadObject } from '../../providers/contract.ts'
import { type Destination, idOf } from './destinations.ts'

/** A destination that says when to come back is believed: when that is later, it is given up. */
const LONGEST_PAUSE_MS = 30_000

export interface DeliveryLimits {
  /** For one file at one destination: all attempts and the pauses between them, and waiting for its turn there. */
  readonly timeoutMs: number
  /** Further attempts after one that failed in passing. */
  readonly retries: number
}

/**
 * Puts one object at its destination, and again after failures that pass while there is time. The key stays the same, so
 * an attempt that did arrive is replaced and never doubled.
 *
 * @throws UploadError `delivery_failed`, `delivery_timeout`, `insufficient_storage`, or what the provider knows better
 * @throws the reason of `signal` when it is aborted
 */
export async function deliver(
  destination: Destination,
  object: UploadObject,
  { timeoutMs, retries }: DeliveryLimits,
  signal: AbortSignal,
): Promise<Stored> {
  signal.throwIfAborted()
  const limit = beginTimeLimit(timeoutMs, signal, () => timedOut(destination, object.key, timeoutMs))
  try {
    return await deliverWithin(limit, destination, object, retries)
  } finally {
    limit.end()
  }
}

/**
 * The same within a time limit that has begun. Ends with it even where a provider does not look at its signal.
 *
 * @param leave gets the put that goes on then: it may still read the object and write to the key
 */
export async function deliverWithin(
  limit: TimeLimit,
  destination: Destination,
  object: UploadObject,
  retries: number,
  leave: (put: Promise<Stored>) => void = () => {},
): Promise<Stored> {
  const attempt = async () => {
    const put = putInTurn(destination, object, limit.signal)
    try {
      return await orAborted(put, limit.signal)
    } catch (error) {
      if (limit.signal.aborted) leave(put)
      throw explain(error, destination, object)
    }
  }
  const leftMs = () => limit.leftMs()
  return retry(attempt, { attempts: retries + 1, longestPauseMs: LONGEST_PAUSE_MS, leftMs }, limit.signal)
}

/** One attempt. Settles, and passes its turn on, when the put has really ended. */
async function putInTurn(
  { target, queue }: Destination,
  object: UploadObject,
  signal: AbortSignal,
): Promise<Stored> {
  const put = async () => {
    signal.throwIfAborted()
    return target.put(object, signal)
  }
  return queue ? queue.run(put, signal) : put()
}

/** @param what a key, or the name of a file that has none yet */
export function timedOut(destination: Destination, what: string, timeoutMs: number): UploadError {
  return new UploadError(
    'delivery_timeout',
    `${idOf(destination)} did not take "${what}" within ${timeoutMs / 1000} s (limits.deliveryTimeoutMs).`,
  )
}

function explain(error: unknown, destination: Destination, object: UploadObject): UploadError {
  if (error instanceof UploadError) return error
  const what = `"${object.key}" could not be stored at ${idOf(destination)}`
  if (isStorageFull(error)) {
    return new UploadError('insufficient_storage', `${what}: there is no space left.`, { cause: error })
  }
  const code = systemCode(error)
  return new UploadError('delivery_failed', `${what}: ${code ?? describeThrown(error)}`, {
    cause: error,
    retryable: isPassing(code),
  })
}
