import type { Claim, HistoryStore } from '../../store/contract.ts'
import { identify, type Places } from '../../store/expiry-contract.ts'

/** What the attempts at one request share. */
export interface RetryContext {
  /** When the first one began, milliseconds since the epoch: the time in keys. */
  readonly time: number
  /** What is random in keys. */
  readonly seed: string | undefined
  readonly claims: Claims
}

/**
 * The keys under which the attempts at one request were about to store its files. They outlive the process. A repetition
 * makes the same keys and finds its own file there: only this tells `rename` and `error` that it is no conflict, and a
 * file with an end that it is not one which lay there before.
 */
export interface Claims {
  /** Whether an earlier attempt may have stored the same bytes under the key, and nobody something else since then. */
  has(file: ClaimedFile, places: Places): Promise<boolean>
  /** Writes down, before it goes out, that a file is to be stored. */
  add(file: ClaimedFile): Promise<void>
}

type ClaimedFile = Omit<Claim, 'time'>

/**
 * @param earlier of attempts that were cut off
 * @param save writes all of them down
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
    async has(file, places) {
      const claim = find(earlier, file)
      if (!claim) return false
      const object = identify(claim, places)
      const since = await history({ object, since: claim.time, isRemoved: false, limit: MOST_SINCE })
      return since.every(one => one.sha256 === file.sha256)
    },
    add(file) {
      if (find(claims, file)) return saving
      claims = [...claims, { ...file, time: now() }]
      const all = claims
      // One after the other, so that the last one holds all of them. Without the store the upload is worth more.
      saving = saving.then(() => save(all)).catch(() => {})
      return saving
    },
  }
}

/** Most history entries that are looked at: more are not stored under one name while a process is started again. */
const MOST_SINCE = 1000
