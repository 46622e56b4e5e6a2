import { describe, expect, it } from 'vitest'
import { newJob } from '../../../src/uploader/jobs/new-job.ts'

const ASKED = {
  caller: { name: 'phone' },
  destination: { type: 's3', name: 'screens' },
  inputs: [{ origin: 'a.png' }, { origin: `data:image/png;base64,${'A'.repeat(1000)}` }],
  requestId: 'r1',
}

describe('a new job', () => {
  it('tells who asked for what, and that nothing is done', () => {
    const job = newJob(ASKED, 'host.1.0123456789ab', new Date(5000))
    expect(job).toMatchObject({
      state: 'uploading',
      createdAt: 5000,
      owner: 'host.1.0123456789ab',
      requestId: 'r1',
      caller: 'phone',
      destination: 's3/screens',
    })
    expect(job).toMatchObject({ files: [], steps: [], attempts: 0, problem: undefined })
  })

  it('keeps what names a file, not the bytes of a data: address', () => {
    const [file, data = ''] = newJob(ASKED, 'o', new Date()).origins
    expect(file).toBe('a.png')
    expect(data).toMatch(/^data:image\/png;base64,A+…$/)
    expect(data.length).toBeLessThan(100)
  })

  it('has a UUID of version 7, in the order of time, and never given twice', () => {
    const ids = Array.from(
      { length: 1000 },
      (_, n) => newJob(ASKED, 'o', new Date(1_700_000_000_000 + (n >> 1))).id,
    )
    for (const id of ids) {
      expect(id).toMatch(/^018bcfe5-6[89a-f][0-9a-f]{2}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    }
    expect(new Set(ids).size).toBe(1000)
    const times = ids.map(id => id.slice(0, 13))
    expect(times).toEqual([...times].sort())
  })
})
