import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import type { Store } from '../../../src/store/contract.ts'
import { createSqliteStore } from '../../../src/store/sqlite.ts'
import { createHousekeeping, type HousekeepingDeps } from '../../../src/uploader/jobs/housekeeping.ts'
import { KEPT_MS } from '../../../src/uploader/jobs/idempotency.ts'
import { createLease } from '../../../src/uploader/jobs/lease.ts'
import { newJob } from '../../../src/uploader/jobs/new-job.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { reserve } from '../../helpers/stores.ts'

const OWNER = 'here-01234567.1.0123456789ab'
const GONE = 'gone-01234567.1.0123456789ab'
const DAY_MS = 24 * 60 * 60 * 1000

async function open(change: (store: Store) => Partial<HousekeepingDeps> = () => ({})) {
  const store = createSqliteStore(join(await makeDirectory(), 'store.db'))
  const lease = createLease(store, OWNER, 60_000, () => new Date())
  const warnings: string[] = []
  const retried: string[] = []
  const housekeeping = createHousekeeping({
    store,
    owner: OWNER,
    lease,
    unsaved: () => [],
    keepDays: () => 7,
    roundMs: 20,
    longestPauseMs: 60_000,
    isGone: owner => owner === GONE,
    retry: async id => void retried.push(id),
    now: () => new Date(),
    warn: message => void warnings.push(message),
    ...change(store),
  })
  onTestFinished(async () => {
    housekeeping.stop()
    await lease.end().catch(() => {})
    await store.close()
  })
  return { store, lease, housekeeping, warnings, retried }
}

/** An upload of one file, delivered unless `isCut`. */
async function addJob(store: Store, owner: string, createdAt = Date.now(), isCut = false): Promise<string> {
  const destination = { type: 'local', name: 'Default' }
  const asked = { caller: { name: 'me' }, destination, inputs: [{ origin: 'a.png' }], requestId: 'r1' }
  const job = newJob(asked, owner, new Date(createdAt))
  await store.begin(job)
  const delivery = { state: 'delivered', owner, files: [], steps: [], history: [], now: createdAt } as const
  if (!isCut) await store.deliver(job.id, delivery)
  return job.id
}

it('delivered jobs, and those of which something is unsaved, are retried', async () => {
  const { store, housekeeping, retried } = await open(() => ({ unsaved: () => ['unsaved'] }))
  const id = await addJob(store, OWNER)
  housekeeping.start()
  await expect.poll(() => [...new Set(retried)].sort()).toEqual([id, 'unsaved'].sort())
})

it('a retry that fails keeps no other job from its turn', async () => {
  const tried: string[] = []
  const { store, housekeeping } = await open(() => ({
    retry: async id => {
      tried.push(id)
      throw new Error('the hook failed')
    },
  }))
  const ids = [await addJob(store, OWNER), await addJob(store, OWNER)]
  housekeeping.start()
  await expect.poll(() => [...new Set(tried)].sort()).toEqual(ids.sort())
})

it('what a process that is gone was uploading is reported and written down as interrupted', async () => {
  const { store, housekeeping, warnings } = await open()
  const id = await addJob(store, GONE, Date.now(), true)
  housekeeping.start()
  await expect.poll(async () => (await store.job(id))?.state).toBe('interrupted')
  expect(warnings[0]).toContain('An upload was interrupted')
})

it('old jobs and idempotency keys are forgotten, young ones are not', async () => {
  const { store, housekeeping } = await open()
  const old = await addJob(store, OWNER, Date.now() - 8 * DAY_MS)
  await store.claim(old, OWNER)
  const past = Date.now() - 8 * DAY_MS
  await store.advance(old, OWNER, { state: 'finished', steps: [], attempts: 0, now: past })
  await reserve(store, 'old', { owner: OWNER, createdAt: Date.now() - KEPT_MS - 60_000 })
  await reserve(store, 'young', { owner: OWNER, createdAt: Date.now() })
  housekeeping.start()
  await expect.poll(() => store.job(old)).toBeUndefined()
  await expect.poll(() => store.idempotencyRecord('old')).toBeUndefined()
  expect(await store.idempotencyRecord('young')).toBeDefined()
})

it('of several servers, only the one whose name comes first deletes old rows, and the next one does when it is gone', async () => {
  const FIRST = 'aaaa-01234567.1.0123456789ab'
  const { store, housekeeping } = await open(() => ({ isGone: () => false }))
  let rounds = 0
  const { due } = store
  store.due = (...args) => {
    rounds++
    return due(...args)
  }
  await store.beat(FIRST, Date.now())
  await store.beat('zzzz-01234567.1.0123456789ab', Date.now())
  await reserve(store, 'old', { owner: OWNER, createdAt: Date.now() - KEPT_MS - 60_000 })
  housekeeping.start()
  await expect.poll(() => rounds).toBeGreaterThan(3)
  expect(await store.idempotencyRecord('old')).toBeDefined()
  await store.removeOwner(FIRST)
  await expect.poll(() => store.idempotencyRecord('old')).toBeUndefined()
})

it('an outage of the store is worth one line, and rounds go on after it', async () => {
  const { store, housekeeping, warnings, retried } = await open()
  const id = await addJob(store, OWNER)
  const { due } = store
  let failures = 0
  store.due = async () => {
    failures++
    throw new Error('the disk is gone')
  }
  housekeeping.start()
  await expect.poll(() => failures).toBeGreaterThan(2)
  expect(warnings).toEqual(["The database of the server can't be used, and uploads fail: the disk is gone"])
  store.due = due
  await expect.poll(() => retried).toContain(id)
})

it('nothing is looked for after it was stopped', async () => {
  const { store, housekeeping, retried } = await open()
  housekeeping.start()
  housekeeping.stop()
  housekeeping.start()
  await addJob(store, OWNER)
  await new Promise(resolve => setTimeout(resolve, 100))
  expect(retried).toEqual([])
})

it('says once that uploads fail for the store, and once that it is back, while nobody uploads', async () => {
  const folder = await makeDirectory()
  const path = join(folder, 'disk', 'store.db')
  await writeFile(join(folder, 'disk'), 'in the way')
  const store = createSqliteStore(path)
  const lease = createLease(store, OWNER, 60_000, () => new Date())
  const { housekeeping, warnings } = await open(() => ({ store, lease }))
  onTestFinished(store.close)
  housekeeping.start()
  await expect(addJob(store, OWNER)).rejects.toThrow("store.db, can't be read or written")
  await expect
    .poll(() => warnings)
    .toMatchObject([expect.stringContaining("database of the server can't be used, and uploads fail")])
  await rm(join(folder, 'disk'))
  await expect
    .poll(() => warnings)
    .toMatchObject([expect.anything(), 'The database of the server can be used again'])
  expect(store.problem()).toBeUndefined()
})
