import type { Claim, HistoryStore } from '../../store/contract.ts'

/** The keys that the attempts at one request may have stored its files under. They outlive the process. */
export interface Claims {
  /** The key that an earlier attempt had for a file, when it had one. Each of them is given once. */
  keyOf(file: Omit<ClaimedFile, 'key'>): string | undefined
  /** Whether an earlier attempt may have stored the same bytes under the key, and nobody something else since then. */
  has(file: ClaimedFile): Promise<boolean>
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

  const given = new Set<Claim>()

  return {
    keyOf({ destination, sha256, fileName }) {
      const claim = earlier.find(
        one =>
          one.destination === destination &&
          one.sha256 === sha256 &&
          one.fileName === fileName &&
          !given.has(one),
      )
      if (claim) given.add(claim)
      return claim?.key
    },
    async has(file) {
      const claim = find(earlier, file)
      if (!claim) return false
      const { destination, key, sha256 } = file
      const since = await history({
        destination,
        key,
        since: claim.time,
        isRemoved: false,
        limit: MOST_SINCE,
      })
      return since.every(one => one.sha256 === sha256)
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
