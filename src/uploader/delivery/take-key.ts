import { UploadError } from '../../errors.ts'
import { orAborted } from '../../flow/cancellation.ts'
import { splitExtension } from '../../payload/file-name.ts'
import type { Payload } from '../../payload/index.ts'
import type { HistoryStore } from '../../store/contract.ts'
import type { End, Places } from '../../store/expiry-contract.ts'
import type { RetryContext } from './claims.ts'
import { type Destination, idOf } from './destinations.ts'
import type { Lock, Locker } from './locker.ts'
import { isSpelledOtherwise } from './same-bytes.ts'

/** A file is not stored since its key is in use. Another destination would not make that good. */
export class ConflictError extends UploadError {}

/** What a request says of the keys of its files. */
export interface KeyRequest {
  /** What it shares with earlier attempts; undefined when it can't have any. */
  readonly retryContext: Pick<RetryContext, 'claims'> | undefined
  /** Until when the files are asked to stay. */
  readonly end: End
}

export interface TakenKey {
  readonly key: string
  readonly lock: Lock
  /** Whether this server knows that the bytes may be there. */
  readonly isKnown: boolean
}

/**
 * Takes the wanted key for a payload, or the first of `-2`, `-3`… before the extension that is free. What an earlier
 * attempt at the same request has stored is no conflict.
 */
export async function takeKey(
  { sha256 }: Payload,
  destination: Destination,
  wanted: string,
  locker: Locker,
  { retryContext, end }: KeyRequest,
  { places, history }: { places: Places; history: Pick<HistoryStore, 'history'> },
  signal: AbortSignal,
): Promise<TakenKey> {
  const { target, onConflict, place } = destination
  const id = idOf(destination)

  /** @returns undefined: the key is in use */
  async function look(key: string, lock: Lock): Promise<TakenKey | undefined> {
    if (lock.others) return { key, lock, isKnown: true }
    if (await isSpelledOtherwise(key, sha256, destination, places, history)) return undefined
    const file = { destination: id, key, sha256 }
    const isOurs = async () => (await retryContext?.claims.has(file, places)) ?? false
    if (onConflict === 'replace') {
      if (end === 'never') return { key, lock, isKnown: lock.isShared }
      const isKnown = lock.isShared || (await isOurs())
      await retryContext?.claims.add(file)
      return { key, lock, isKnown }
    }
    const looking = target.exists?.(key, signal)
    const isThere = looking && (await orAborted(looking, signal))
    if (!isThere || (await isOurs())) {
      await retryContext?.claims.add(file)
      return { key, lock, isKnown: true }
    }
    if (onConflict === 'rename') return undefined
    throw new ConflictError(
      'delivery_failed',
      `"${key}" already exists at ${id}, and its onConflict is "error". Upload the file under another name.`,
    )
  }

  for (let count = 1; ; count++) {
    const key = count === 1 ? wanted : numbered(wanted, count)
    const lock = await locker.take(place + key, sha256, signal)
    const taken = lock && (await look(key, lock))
    if (taken) return taken
    lock?.release()
  }
}

function numbered(key: string, count: number): string {
  const slash = key.lastIndexOf('/') + 1
  const [base, extension] = splitExtension(key.slice(slash))
  return `${key.slice(0, slash)}${base}-${count}${extension}`
}
