import { expect, it } from 'vitest'
import { readMoment, showMoment } from '../src/times.ts'

/** What the machine's own time zone makes of it. */
const local = (...parts: [number, number, number, number?, number?, number?]) => new Date(...parts).getTime()
const NOW = local(2026, 10, 28, 14, 17, 5)

it.each([
  ['90m', NOW - 90 * 60_000],
  ['7d', NOW - 7 * 24 * 60 * 60_000],
  ['today', local(2026, 10, 28)],
  ['yesterday', local(2026, 10, 27)],
  ['2026-11-01', local(2026, 10, 1)],
  ['2026-11-01 18:00', local(2026, 10, 1, 18)],
  ['2026-11-01T18:00:07', local(2026, 10, 1, 18, 0, 7)],
  ['2026-11-01T18:00:00Z', Date.UTC(2026, 10, 1, 18)],
  ['2026-11-01T18:00:00+02:00', Date.UTC(2026, 10, 1, 16)],
  ['2026-02-30', undefined],
  ['2026-11-01 25:00', undefined],
  ['Yesterday evening', undefined],
  ['7', undefined],
  ['', undefined],
])('reads "%s"', (text, expected) => {
  expect(readMoment(text, NOW)).toBe(expected)
})

it('reads what it shows', () => {
  expect(showMoment(NOW)).toBe('2026-11-28 14:17:05')
  expect(readMoment(showMoment(NOW), 0)).toBe(NOW)
})
