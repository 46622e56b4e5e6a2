/**
 * The time for what can't be undone. A clock that was set ahead is believed at the second look, since it may have been a
 * mistake: until then time goes on from where it was. A clock that was set back is believed at once.
 *
 * @param wall the clock of the machine, milliseconds since the epoch
 * @param steady milliseconds since any moment, never set
 * @returns looks once at both. Milliseconds since the epoch
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
