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
 * @param onAbandoned gets a put that continues after the time limit: it may still read the object and write to its key
 */
export async function deliverWithin(
  limit: TimeLimit,
  destination: Destination,
  object: UploadObject,
  retries: number,
  onAbandoned: (put: Promise<Stored>) => void = () => {},
): Promise<Stored> {
  const attempt = async () => {
    const put = putQueued(destination, object, limit.signal)
    try {
      return await orAborted(put, limit.signal)
    } catch (error) {
      if (limit.signal.aborted) onAbandoned(put)
      throw explainFailure(error, { id: idOf(destination), what: { verb: 'store', key: object.key } })
    }
  }
  const leftMs = () => limit.leftMs()
  return retry(attempt, { attempts: retries + 1, longestPauseMs: LONGEST_PAUSE_MS, leftMs }, limit.signal)
}

/** One attempt. Settles, and lets the next queued put start, when the put has really ended. */
async function putQueued(
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
