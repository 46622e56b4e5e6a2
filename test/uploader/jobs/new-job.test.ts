import { expect, it } from 'vitest'
import { newJobId } from '../../../src/uploader/jobs/new-job.ts'

it('a job id is a UUID of version 7, in the order of time, and never given twice', () => {
  const ids = Array.from({ length: 1000 }, (_, n) => newJobId(new Date(1_700_000_000_000 + (n >> 1))))
  for (const id of ids) {
    expect(id).toMatch(/^018bcfe5-6[89a-f][0-9a-f]{2}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  }
  expect(new Set(ids).size).toBe(1000)
  const times = ids.map(id => id.slice(0, 13))
  expect(times).toEqual([...times].sort())
})
