import { describe, expect, it } from 'vitest'
import { parseReporting } from '../../src/config/issues.ts'
import { showSize, size, time } from '../../src/options.ts'
import type * as z from '../../src/packages/zod.ts'
import { showDuration } from '../../src/times.ts'

/** What is reported of a value. */
function problemOf(schema: z.ZodType, value: unknown): string | undefined {
  const problems: string[] = []
  parseReporting(schema, value, (_, message) => problems.push(message))
  expect(problems.length).toBeLessThan(2)
  return problems[0]
}

describe('size', () => {
  it.each([
    ['512B', 512],
    ['1k', 1024],
    ['1KB', 1024],
    ['1KiB', 1024],
    ['10MB', 10 * 1024 ** 2],
    ['100 MB', 100 * 1024 ** 2],
    ['  2gb ', 2 * 1024 ** 3],
    ['1.5M', 1.5 * 1024 ** 2],
    ['0.001KB', 1],
  ])('reads %j as %d bytes', (text, bytes) => {
    expect(size().parse(text)).toBe(bytes)
    expect(size().parse(showSize(bytes))).toBe(bytes)
  })

  const SHOWN = 'must be a size above 0, such as "100MB", "512KB" or "2GB"'
  it.each([
    ['', SHOWN],
    ['0MB', SHOWN],
    ['0.0001KB', SHOWN],
    ['-1MB', SHOWN],
    ['1e6', SHOWN],
    ['1,5MB', SHOWN],
    ['10 parsecs', SHOWN],
    ['10TB', SHOWN],
    ['MB', SHOWN],
    ['1MB2', SHOWN],
    ['1 2MB', SHOWN],
    [true, SHOWN],
    [1.5, SHOWN],
    [null, SHOWN],
    [undefined, 'is missing. It must be a string'],
    [100, 'needs a unit: write "100MB" or "100B"'],
    ['100', 'needs a unit: write "100MB" or "100B"'],
  ])('refuses %j', (value, says) => expect(problemOf(size(), value)).toBe(says))
})

describe('time', () => {
  it.each([
    ['300ms', 300],
    ['1500ms', 1500],
    ['30s', 30_000],
    ['10m', 600_000],
    ['12h', 43_200_000],
    ['14d', 1_209_600_000],
  ])('reads %j as %d ms', (text, ms) => {
    expect(time().parse(text)).toBe(ms)
    expect(time().parse(showDuration(ms))).toBe(ms)
  })

  it.each([
    ['0s', 'must be a time above 0, such as "90s", "12h" or "30d"'],
    ['1w', 'must be a time above 0, such as "90s", "12h" or "30d"'],
    ['1.5h', 'must be a time above 0, such as "90s", "12h" or "30d"'],
    ['25d', 'must be a time above 0, such as "90s", "12h" or "30d"'],
    [30, 'needs a unit: write "30s" or "30ms"'],
    ['30', 'needs a unit: write "30s" or "30ms"'],
  ])('refuses %j', (value, says) => expect(problemOf(time(), value)).toBe(says))
})
