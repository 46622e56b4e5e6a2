import { UploadError } from '../errors.ts'
import { createCanceller, orAborted } from '../flow/cancellation.ts'
import { retry } from '../flow/retry.ts'
import { beginTimeLimit, type TimeLimit } from '../flow/time-limit.ts'
import { isUnsent } from '../http/network.ts'
import type { Payload } from '../payload/index.ts'
import type { Stored, UploadObject } from '../providers/contract.ts'
import { explain } from '../providers/shared/explain.ts'
import { settleOpen } from '../store/objects.ts'
import type { Runtime } from './app.ts'
import type { Destination } from './destinations.ts'

/** If a destination asks for a longer pause than this before a retry, the delivery fails at once. */
const LONGEST_PAUSE_MS = 30_000

/** Time limit for asking a destination what became of a transfer. */
const LOOK_MS = 10_000

/**
 * Sends an object to its destination, and retries transient failures until the time limit. The object key stays the same, so a
 * retry replaces an attempt that did arrive. Ends with the time limit even where a provider does not look at its signal.
 *
 * @param retries number of retries
 * @param attempts gets each attempt, which may go on after the time limit
 * @throws UploadError `destination_failed`, `destination_timeout`, `insufficient_storage`, or what the provider knows better
 */
export async function sendObject(
  destination: Destination,
  object: UploadObject,
  retries: number,
  { signal, leftMs }: Pick<TimeLimit, 'signal' | 'leftMs'>,
  attempts: Promise<Stored>[] = [],
): Promise<Stored> {
  const { id, queue, target } = destination
  const put = async () => {
    signal.throwIfAborted()
    return target.put(object, signal)
  }
  const attempt = async () => {
    // The next queued put starts when this one has really ended.
    const putting = queue ? queue.run(put, signal) : put()
    attempts.push(putting)
    try {
      return await orAborted(putting, signal)
    } catch (error) {
      throw explain(error, id, `store "${object.key}"`)
    }
  }
  return retry(attempt, { attempts: retries + 1, longestPauseMs: LONGEST_PAUSE_MS, leftMs }, signal)
}

/** Whether an object may be at its destination although the transfer has failed. */
export function mayHaveArrived(error: unknown): boolean {
  if (!(error instanceof UploadError)) return true
  return error.retryable && !isUnsent(error.cause)
}

/**
 * Asks a destination whether an object is there after a transfer without a known outcome. The end of the process ends the
 * question, also where a provider does not look at its signal. One that is asked afterwards has the time of the last writes.
 */
export async function settleUnknown(
  destination: Destination,
  name: string,
  key: string,
  { database, owner, ending }: Pick<Runtime, 'database' | 'owner' | 'ending'>,
): Promise<void> {
  const ifThere = destination.target.remove ? 'something' : 'permanent'
  const until = ending.aborted ? createCanceller().signal : ending
  const { signal, end } = beginTimeLimit(LOOK_MS, until, () => new Error('no response'))
  const found = await orAborted(exists(destination, key, signal), signal)
    .then(
      isThere => (isThere ? ifThere : 'nothing'),
      () => 'unasked' as const,
    )
    .finally(end)
  await database.tx(db => settleOpen(db, owner.id, name, found))
}

/** Whether an object is there. If the destination can't tell, it is not. */
export async function exists({ target }: Destination, key: string, signal: AbortSignal): Promise<boolean> {
  return (await target.exists?.(key, signal)) ?? false
}

/** A payload with its object key, as providers get it. */
export function toObject(payload: Payload, key: string): UploadObject {
  const { size, contentType, sha256, path, read } = payload
  return { key, size, contentType, sha256, path, read }
}
