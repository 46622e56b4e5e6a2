/** A difference that is no drift: somebody, or a time server, has set the clock. */
const SET_MS = 60_000

/** Time that goes on evenly when the clock of the machine is set. */
export interface Clock {
  /** Milliseconds since the epoch by the clock of the machine, as it was when last followed. */
  now(): number
  /** By how much that was set since, milliseconds; 0 when it was not. */
  setBy(): number
  /** Follows it by so much. */
  adjust(byMs: number): void
}

/** @param wall the clock of the machine @param steady milliseconds since any moment, never set */
export function createClock(
  wall: () => number = Date.now,
  steady: () => number = () => performance.now(),
): Clock {
  let offset = wall() - steady()
  const now = () => Math.round(steady() + offset)
  return {
    now,
    setBy() {
      const difference = wall() - now()
      return Math.abs(difference) < SET_MS ? 0 : difference
    },
    adjust(byMs) {
      offset += byMs
    },
  }
}
