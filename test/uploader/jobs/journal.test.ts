import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import type { Job, StoredFile } from '../../../src/store/contract.ts'
import { createSqliteStore } from '../../../src/store/sqlite.ts'
import { FinalizationPending } from '../../../src/uploader/jobs/finalization-pending.ts'
import { createJournal } from '../../../src/uploader/jobs/journal.ts'
import { newJob } from '../../../src/uploader/jobs/new-job.ts'
import { makeDirectory } from '../../helpers/directory.ts'

const OWNER = 'here-01234567.1.0123456789ab'
const OTHER = 'other-01234567.1.0123456789ab'

const FILE: StoredFile = {
  index: 0,
  origin: 'a.png',
  url: 'https://x.example/a.png',
  key: 'a.png',
  size: 3,
  contentType: 'image/png',
  sha256: 'ab'.repeat(32),
}

/** A store that can be taken away, as by an outage, and given back. */
async function open() {
  const real = createSqliteStore(join(await makeDirectory(), 'store.db'))
  onTestFinished(() => real.close())
  let isDown = false
  const store = {
    ...real,
    deliver: (...args: Parameters<typeof real.deliver>) =>
      isDown ? Promise.reject(new Error('the disk is gone')) : real.deliver(...args),
    advance: (...args: Parameters<typeof real.advance>) =>
      isDown ? Promise.reject(new Error('the disk is gone')) : real.advance(...args),
  }
  const warnings: { message: string; details: unknown }[] = []
  const journal = createJournal({
    store,
    owner: OWNER,
    now: () => new Date(7000),
    warn: (message, details) => void warnings.push({ message, details }),
  })
  const job = newJob(
    {
      caller: { name: 'me' },
      destination: { type: 'local', name: 'Default' },
      inputs: [FILE],
      requestId: 'r1',
    },
    OWNER,
    new Date(5000),
  )
  await store.begin(job)
  const setDown = (value: boolean) => {
    isDown = value
  }
  return { store, journal, job, warnings, setDown }
}

it('a delivery is written with its history, one entry for the file and each copy', async () => {
  const { store, journal, job } = await open()
  const mirrors = [
    { destination: 's3/b', key: 'b.png', url: 'https://b.example/b.png' },
    { destination: 's3/c', error: 'it was down' },
  ]
  const done = await journal.deliver(job, [{ ...FILE, mirrors }], 'finished')
  expect(done).toMatchObject({ id: job.id, state: 'finished', steps: ['history'] })
  const entries = await store.history({ limit: 10 })
  expect(entries.map(entry => [entry.destination, entry.key, entry.time]).sort()).toEqual([
    ['local/Default', 'a.png', 7000],
    ['s3/b', 'b.png', 7000],
  ])
  expect(journal.kept()).toEqual([])
})

it('what the store does not take is told, kept, and written when it works again', async () => {
  const { store, journal, job, warnings, setDown } = await open()
  setDown(true)
  const failure = journal.deliver(job, [FILE], 'finalizing')
  await expect(failure).rejects.toBeInstanceOf(FinalizationPending)
  await expect(failure).rejects.toMatchObject({ finalizationId: job.id })
  expect(warnings[0]?.details).toMatchObject({ stored: [{ key: 'a.png', url: FILE.url }] })
  expect(journal.kept()).toEqual([job.id])
  await expect(journal.save(job.id)).rejects.toBeInstanceOf(FinalizationPending)
  setDown(false)
  await journal.save(job.id)
  expect(journal.kept()).toEqual([])
  // Nobody is at it any more: it is free to be finalized.
  expect(await store.job(job.id)).toMatchObject({ state: 'delivered', files: [{ key: 'a.png' }] })
})

it('a step of a job that somebody else has claimed is refused and not kept', async () => {
  const { store, journal, job } = await open()
  const delivered: Job = await journal.deliver(job, [FILE], 'finalizing')
  await store.claim(job.id, OTHER, OWNER)
  const change = { state: 'finished', steps: ['history', 'hook:a'] } as const
  await expect(journal.advance(delivered, change)).rejects.toThrow('another server process')
  expect(journal.kept()).toEqual([])
  expect(await store.job(job.id)).toMatchObject({ state: 'finalizing', owner: OTHER })
})

it('of a job of which nothing is kept nothing is saved', async () => {
  const { store, journal, job } = await open()
  await journal.save(job.id)
  expect(await store.job(job.id)).toMatchObject({ state: 'uploading' })
})
