import { UploadError } from '../../errors.ts'
import { orAborted } from '../../flow/cancellation.ts'
import { splitExtension } from '../../payload/file-name.ts'
import type { Payload } from '../../payload/index.ts'
import type { HistoryStore } from '../../store/contract.ts'
import { type End, identify, type Locations } from '../../store/expiry-contract.ts'
import type { RetryContext } from './claims.ts'
import { type Destination, idOf } from './destinations.ts'
import type { Lock, Locker } from './locker.ts'
import { isSpelledOtherwise } from './same-bytes.ts'

/** A file is not stored because its object key is in use. The fallback is not tried then. */
export class ConflictError extends UploadError {}

/** What a request specifies for the object keys of its files. */
export interface KeyRequest {
  /** What it shares with earlier attempts. Undefined for a request without an `Idempotency-Key`. */
  readonly retryContext: Pick<RetryContext, 'claims'> | undefined
  /** When the files expire. */
  readonly end: End
}

export interface ChosenKey {
  readonly key: string
  /** Which of the possible keys it is, from 1. */
  readonly count: number
  readonly lock: Lock
  /** Whether the server has stored, or may have stored, the object there now. */
  readonly isKnown: boolean
  /** Set if it is not known whether an object has the key, so that `putIfAbsent` must store it. */
  readonly unlessTaken?: { readonly isRepeated: boolean }
}

type Found = Omit<ChosenKey, 'count'>

/**
 * Chooses and locks the object key of a payload: the wanted one, or with `-2`, `-3`… before the extension if it is in use.
 * A file that an earlier attempt at the same request has stored is not a conflict.
 *
 * @param from the first of these keys to try, from 1
 * @throws ConflictError
 */
export async function chooseKey(
  { sha256, size }: Payload,
  destination: Destination,
  wanted: string,
  locker: Locker,
  { retryContext, end }: KeyRequest,
  { locations, history }: { locations: Locations; history: Pick<HistoryStore, 'history'> },
  signal: AbortSignal,
  from = 1,
): Promise<ChosenKey> {
  const { target, onConflict, location } = destination
  const id = idOf(destination)

  /** @returns undefined if the key is in use */
  async function look(key: string, lock: Lock): Promise<Found | undefined> {
    if (lock.others) return { key, lock, isKnown: true }
    if (destination.expiry && (await isSpelledOtherwise(key, sha256, destination, locations, history)))
      return undefined
    const file = { destination: id, key, sha256 }
    const isOurs = async () => (await retryContext?.claims.has(file, locations)) ?? false
    if (onConflict === 'replace') {
      if (destination.sparesOthers && (await hasOthers(key))) return undefined
      if (end === 'never') return { key, lock, isKnown: lock.isShared }
      const isKnown = lock.isShared || (await isOurs())
      await retryContext?.claims.add(file)
      return { key, lock, isKnown }
    }
    // Only once, because the object is sent for nothing if the key is in use.
    if (from === 1 && target.putIfAbsent && size <= (target.ifAbsentUpTo ?? Infinity)) {
      const isRepeated = await isOurs()
      await retryContext?.claims.add(file)
      return { key, lock, isKnown: true, unlessTaken: { isRepeated } }
    }
    const looking = target.exists?.(key, signal)
    const isThere = looking && (await orAborted(looking, signal))
    if (!isThere || (await isOurs())) {
      await retryContext?.claims.add(file)
      return { key, lock, isKnown: true }
    }
    assertMayRename(destination, key)
    return undefined
  }

  async function hasOthers(key: string): Promise<boolean> {
    const object = identify({ destination: id, key }, locations)
    const [latest] = await history.history({ object, isRemoved: false, limit: 1 })
    return latest !== undefined && latest.sha256 !== sha256
  }

  for (let count = from; ; count++) {
    const key = count === 1 ? wanted : numbered(wanted, count)
    const lock = await locker.take(location + key, sha256, signal)
    const taken = lock && (await look(key, lock))
    if (taken) return { ...taken, count }
    lock?.release()
  }
}

/** For an object key that is in use. @throws ConflictError if the file must not get another one */
export function assertMayRename(destination: Destination, key: string): void {
  if (destination.onConflict === 'rename') return
  throw new ConflictError(
    'delivery_failed',
    `"${key}" already exists at ${idOf(destination)}, and its onConflict is "error". Upload the file under another name.`,
  )
}

function numbered(key: string, count: number): string {
  const slash = key.lastIndexOf('/') + 1
  const [base, extension] = splitExtension(key.slice(slash))
  return `${key.slice(0, slash)}${base}-${count}${extension}`
}
