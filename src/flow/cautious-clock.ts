/** A difference that is no drift: somebody, or a time server, has set the clock. */
const SET_MS = 60_000

/**
 * The time for what can't be undone, milliseconds since the epoch. A clock that was set ahead is believed after it has gone
 * on like that for a while: it may have been a mistake. Until then time goes on from where it was. One that was set back is
 * believed at once. It has to be asked now and then.
 *
 * @param patienceMs that while
 * @param wall the clock of the machine @param steady milliseconds since any moment, never set
 */
export function createCautiousClock(
  patienceMs: number,
  wall: () => number = Date.now,
  steady: () => number = () => performance.now(),
): () => number {
  let offset = wall() - steady()
  let jump: { readonly offset: number; readonly since: number } | undefined
  return () => {
    const now = steady()
    const seen = wall() - now
    if (seen - offset >= SET_MS) {
      if (!jump || Math.abs(seen - jump.offset) >= SET_MS) jump = { offset: seen, since: now }
      if (now - jump.since < patienceMs) return Math.round(now + offset)
    }
    offset = seen
    jump = undefined
    return Math.round(now + offset)
  }
}
