import { expect, it } from 'vitest'
import { createCautiousClock } from '../../src/flow/clock.ts'

const HOUR_MS = 60 * 60 * 1000

function open() {
  const times = { wall: 1_000_000_000, steady: 0 }
  const look = createCautiousClock(
    () => times.wall,
    () => times.steady,
  )
  const pass = (ms: number) => {
    times.wall += ms
    times.steady += ms
  }
  return { times, look, pass }
}

it('follows a clock that is set back, and one that drifts', () => {
  const { times, look, pass } = open()
  times.wall -= HOUR_MS
  expect(look()).toBe(times.wall)
  for (let n = 0; n < 100; n++) {
    pass(600_000)
    times.wall += 300
    expect(times.wall - look()).toBeLessThanOrEqual(300)
  }
})

it('believes a clock that is set ahead at the second look, and goes on evenly until then', () => {
  const { times, look, pass } = open()
  pass(1000)
  const before = times.wall
  times.wall += HOUR_MS
  expect(look()).toBe(before)
  pass(1000)
  expect(look()).toBe(times.wall)
})

it('does not believe a clock that jumps ahead and back', () => {
  const { times, look, pass } = open()
  const before = times.wall
  times.wall += HOUR_MS
  expect(look()).toBe(before)
  times.wall -= HOUR_MS
  pass(5000)
  expect(look()).toBe(before + 5000)
  times.wall += HOUR_MS
  expect(look(), 'it is doubted again').toBe(before + 5000)
})

it('catches up with a machine that was suspended at the second look after that', () => {
  const { times, look, pass } = open()
  times.wall += 8 * HOUR_MS // the steady clock stands still meanwhile
  pass(10)
  expect(look()).toBe(times.wall - 8 * HOUR_MS)
  pass(600_000)
  expect(look()).toBe(times.wall)
})
