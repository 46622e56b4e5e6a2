/**
 * A clock for work that can't be undone, such as deleting expired files. If the system clock was set ahead, the first call
 * ignores that, because it may be wrong, and the second call accepts it. A clock that was set back is accepted at once.
 *
 * @param wall the system clock, milliseconds since the epoch
 * @param steady a monotonic clock, milliseconds
 * @returns reads both clocks once; milliseconds since the epoch
 */
export function createCautiousClock(
  wall: () => number = Date.now,
  steady: () => number = () => performance.now(),
): () => number {
  let last = { wall: wall(), steady: steady() }
  return () => {
    const now = { wall: wall(), steady: steady() }
    const expected = last.wall + now.steady - last.steady
    last = now
    return Math.floor(Math.min(now.wall, expected))
  }
}
