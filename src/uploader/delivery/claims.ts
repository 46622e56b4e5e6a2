import type { Claim, HistoryStore, Reservation } from '../../store/contract.ts'
import { identify, type Locations } from '../../store/expiry-contract.ts'

/** What all attempts at one request with an `Idempotency-Key` share. */
export interface RetryContext {
  /** When the first attempt began, milliseconds since the epoch. It is the time in object keys. */
  readonly time: number
  /** The random part of object keys is made from it. */
  readonly seed: string | undefined
  readonly claims: Claims
  /** Undefined if the idempotency key is reserved already. */
  readonly reservation?: Reservation | undefined
}

/**
 * The object keys under which the attempts at one request were about to store its files. They are in the database, so they
 * survive the process. A repeated request makes the same keys and may find its own file there. Claims show that this is not
 * a conflict for `onConflict`, and that the file may be removed when it expires.
 */
export interface Claims {
  /** Whether an earlier attempt may have stored the same bytes under the key, and no other upload has replaced them. */
  has(file: ClaimedFile, locations: Locations): Promise<boolean>
  /** Saves that a file is about to be stored. */
  add(file: ClaimedFile): Promise<void>
}

type ClaimedFile = Omit<Claim, 'time'>

/**
 * @param earlier claims of interrupted attempts
 * @param save writes all claims to the database
 */
export function createClaims(
  earlier: readonly Claim[],
  { history }: Pick<HistoryStore, 'history'>,
  save: (claims: readonly Claim[]) => Promise<void>,
  now: () => number,
): Claims {
  let claims = earlier
  let saving = Promise.resolve()

  const find = (list: readonly Claim[], { destination, key, sha256 }: ClaimedFile) =>
    list.find(one => one.destination === destination && one.key === key && one.sha256 === sha256)

  return {
    async has(file, locations) {
      const claim = find(earlier, file)
      if (!claim) return false
      const object = identify(claim, locations)
      const since = await history({ object, since: claim.time, isRemoved: false, limit: MOST_SINCE })
      return since.every(one => one.sha256 === file.sha256)
    },
    add(file) {
      if (find(claims, file)) return saving
      claims = [...claims, { ...file, time: now() }]
      const all = claims
      // They are saved one after the other, so that the last write has all claims. An upload does not fail without them.
      saving = saving.then(() => save(all)).catch(() => {})
      return saving
    },
  }
}

/** Maximum number of history entries to check. A process restarts before more are stored under one key. */
const MOST_SINCE = 1000
