import { expect, it } from 'vitest'
import { createCautiousClock } from '../../src/flow/cautious-clock.ts'

const HOUR_MS = 60 * 60 * 1000

function open(patienceMs: number) {
  const times = { wall: 1_000_000_000, steady: 0 }
  const now = createCautiousClock(
    patienceMs,
    () => times.wall,
    () => times.steady,
  )
  const pass = (ms: number) => {
    times.wall += ms
    times.steady += ms
  }
  return { times, now, pass }
}

it('follows a clock that is set back, and one that drifts', () => {
  const { times, now, pass } = open(1000)
  times.wall -= HOUR_MS
  expect(now()).toBe(times.wall)
  times.wall += 30_000
  pass(5)
  expect(now()).toBe(times.wall)
})

it('believes a clock that is set ahead after a while, and goes on evenly until then', () => {
  const { times, now, pass } = open(1000)
  const before = times.wall
  times.wall += HOUR_MS
  expect(now()).toBe(before)
  pass(999)
  expect(now()).toBe(before + 999)
  pass(1)
  expect(now()).toBe(times.wall)
})

it('does not believe a clock that jumps ahead and back', () => {
  const { times, now, pass } = open(1000)
  const before = times.wall
  times.wall += HOUR_MS
  now()
  times.wall -= HOUR_MS
  pass(5000)
  expect(now()).toBe(before + 5000)
  times.wall += HOUR_MS
  expect(now(), 'the patience begins anew').toBe(before + 5000)
})

it('begins anew when it is set again', () => {
  const { times, now, pass } = open(1000)
  const before = times.wall
  times.wall += HOUR_MS
  now()
  pass(900)
  times.wall += HOUR_MS
  expect(now()).toBe(before + 900)
  pass(900)
  expect(now()).toBe(before + 1800)
})
