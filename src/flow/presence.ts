import { isGone } from './owner.ts'

/** After this time without a heartbeat, a process of another machine counts as ended. */
const PATIENCE_MS = 30_000

/** Detects which processes of a shared database have ended. */
export interface Presence {
  /**
   * A process of this machine is gone as soon as it has ended. One of another machine is gone when regular calls have seen no
   * new heartbeat for a while. That time is measured here, because clocks of machines differ.
   *
   * @param sign time of its last heartbeat, by any clock
   */
  isGone(owner: string, sign: number): boolean
}

/** @param patienceMs after this time without a heartbeat, a process of another machine counts as ended; default 30 s */
export function createPresence(patienceMs: number = PATIENCE_MS): Presence {
  const watched = new Map<string, { sign: number; since: number; lookedAt: number }>()

  return {
    isGone(owner, sign) {
      const now = performance.now()
      for (const [name, { lookedAt }] of watched) {
        // Without calls, or while the database was down, heartbeats may have been missed.
        if (now - lookedAt > patienceMs / 2) watched.delete(name)
      }
      const before = watched.get(owner)
      const since = before?.sign === sign ? before.since : now
      watched.set(owner, { sign, since, lookedAt: now })
      return isGone(owner, now - since, patienceMs)
    },
  }
}
