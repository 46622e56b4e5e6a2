import { isGone } from './owner.ts'

/** A process of another machine that said nothing for so long is gone. */
const PATIENCE_MS = 30_000

/** Finds out which processes that share a store have ended. */
export interface Presence {
  /**
   * One on this machine is gone as soon as it has ended, one on another machine when it was looked for regularly and said
   * nothing for a while. That is measured here, since clocks differ.
   *
   * @param sign when it gave its last sign of life, by whatever clock
   */
  isGone(owner: string, sign: number): boolean
}

/** @param patienceMs for how long a process of another machine may be silent; default 30 s */
export function createPresence(patienceMs: number = PATIENCE_MS): Presence {
  const watched = new Map<string, { sign: number; since: number; lookedAt: number }>()

  return {
    isGone(owner, sign) {
      const now = performance.now()
      for (const [name, { lookedAt }] of watched) {
        // While nobody looked, or the store was down, there may have been signs.
        if (now - lookedAt > patienceMs / 2) watched.delete(name)
      }
      const before = watched.get(owner)
      const since = before?.sign === sign ? before.since : now
      watched.set(owner, { sign, since, lookedAt: now })
      return isGone(owner, now - since, patienceMs)
    },
  }
}
