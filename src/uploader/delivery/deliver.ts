import { UploadError } from '../../errors.ts'
import { orAborted } from '../../flow/cancellation.ts'
import { retry } from '../../flow/retry.ts'
import { beginTimeLimit, type TimeLimit } from '../../flow/time-limit.ts'
import type { Stored, UploadObject } from '../../providers/contract.ts'
import { explainFailure } from '../../providers/shared/explain-failure.ts'
import { type Destination, idOf } from './destinations.ts'

/** If a destination asks for a longer pause than this before a retry, the delivery fails at once. */
const LONGEST_PAUSE_MS = 30_000

export interface DeliveryLimits {
  /** For one file at one destination: the queue, all attempts, and the pauses between them. */
  readonly timeoutMs: number
  /** Number of retries after a transient failure. */
  readonly retries: number
}

/**
 * Uploads one object to its destination, and retries transient failures until the time limit. The object key stays the
 * same, so a retry replaces an attempt that did arrive and never duplicates it.
 *
 * @param onAbandoned as for `deliverWithin`
 * @throws UploadError `delivery_failed`, `delivery_timeout`, `insufficient_storage`, or what the provider knows better
 * @throws the reason of `signal` when it is aborted
 */
export async function deliver(
  destination: Destination,
  object: UploadObject,
  { timeoutMs, retries }: DeliveryLimits,
  signal: AbortSignal,
  onAbandoned?: (put: Promise<Stored>) => void,
): Promise<Stored> {
  signal.throwIfAborted()
  const limit = beginTimeLimit(timeoutMs, signal, () => timedOut(destination, object.key, timeoutMs))
  try {
    const put = () => destination.target.put(object, limit.signal)
    return await deliverWithin(limit, destination, object.key, put, retries, onAbandoned)
  } finally {
    limit.end()
  }
}

/**
 * The same within a time limit that has begun. Ends with it even where a provider does not look at its signal.
 *
 * @param put one attempt, with the signal of the limit. `isRepeated`: an earlier one may have arrived
 * @param onAbandoned gets a put that continues after the time limit: it may still read the object and write to its key
 */
export async function deliverWithin<T>(
  limit: TimeLimit,
  destination: Destination,
  key: string,
  put: (isRepeated: boolean) => Promise<T>,
  retries: number,
  onAbandoned: (put: Promise<T>) => void = () => {},
): Promise<T> {
  const { signal } = limit
  let isRepeated = false
  const attempt = async () => {
    const putting = putQueued(destination, put, isRepeated, signal)
    isRepeated = true
    try {
      return await orAborted(putting, signal)
    } catch (error) {
      if (signal.aborted) onAbandoned(putting)
      throw explainFailure(error, { id: idOf(destination), what: { verb: 'store', key } })
    }
  }
  const leftMs = () => limit.leftMs()
  return retry(attempt, { attempts: retries + 1, longestPauseMs: LONGEST_PAUSE_MS, leftMs }, signal)
}

/** One attempt. Settles, and lets the next queued put start, when the put has really ended. */
async function putQueued<T>(
  { queue }: Destination,
  put: (isRepeated: boolean) => Promise<T>,
  isRepeated: boolean,
  signal: AbortSignal,
): Promise<T> {
  const putNow = async () => {
    signal.throwIfAborted()
    return put(isRepeated)
  }
  return queue ? queue.run(putNow, signal) : putNow()
}

/** @param what a key, or the name of a file that has none yet */
export function timedOut(destination: Destination, what: string, timeoutMs: number): UploadError {
  const [id, time] = [idOf(destination), `within ${timeoutMs / 1000} s`]
  const { outgoing } = destination
  // A connection that another put waits for has only begun.
  const [silent] = outgoing?.silentFor(timeoutMs / 2) ?? []
  const used = [...(outgoing?.used ?? [])].map(label => `"${label}"`).join(' and ')
  const message = silent
    ? `Could not store "${what}" at ${id}: the proxy "${silent}" did not respond ${time}. Check the proxy`
    : `Could not store "${what}" at ${id} ${time}${used && `, through the proxy ${used}`}. Try again`
  return new UploadError('delivery_timeout', `${message}, or raise limits.deliveryTimeoutMs.`)
}
