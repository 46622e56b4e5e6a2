import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import type { Target } from '../../../src/providers/contract.ts'
import type { HistoryEntry } from '../../../src/store/contract.ts'
import { createSqliteStore } from '../../../src/store/sqlite.ts'
import type { Destination } from '../../../src/uploader/delivery/destinations.ts'
import { createLease } from '../../../src/uploader/jobs/lease.ts'
import { createSweeper, type SweeperDeps } from '../../../src/uploader/jobs/sweeper.ts'
import { makeDirectory } from '../../helpers/directory.ts'

const DAY_MS = 24 * 60 * 60 * 1000

/** A sweeper over destinations that remove as the test says. */
async function open(remove: NonNullable<Target['remove']>, change: Partial<SweeperDeps> = {}) {
  const store = createSqliteStore(join(await makeDirectory(), 'store.db'))
  const lease = createLease(store, 'me', 60_000, () => new Date())
  const told: { level: string; message: string }[] = []
  const note = (level: string) => (message: string) => void told.push({ level, message })
  const destination = (name: string) =>
    ({ type: 'local', name, target: { remove } }) as unknown as Destination
  const sweeper = createSweeper({
    ...{ store, owner: 'me', lease, swept: new Set<string>(), everyMs: 20, timeoutMs: 1000 },
    destinations: [destination('a'), destination('b')],
    now: Date.now,
    mask: text => text.replace('s3cret', '***'),
    ...{ info: note('info'), warn: note('warn'), error: note('error') },
    ...change,
  })
  onTestFinished(async () => {
    await sweeper.stop()
    await lease.leave()
    await store.close()
  })
  async function remember(key: string, expiresAt: number, name = 'a'): Promise<void> {
    const entry: HistoryEntry = {
      ...{ time: 1, jobId: `job ${key}`, index: 0, origin: key, url: 'u', key, size: 1, contentType: 't' },
      ...{ sha256: 'x', destination: `local/${name}`, caller: 'c', requestId: 'r', expiresAt },
    }
    const told = { state: 'finished', owner: 'me', files: [], steps: [], now: 1 } as const
    await store.deliver(entry.jobId, { ...told, history: [entry] })
  }
  const left = async () => (await store.overdue(Date.now(), ['local/a', 'local/b'], 1000)).length
  return { store, sweeper, told, remember, left }
}

it('a failure is told once for each destination in a round, masked, and tried again', async () => {
  let isDown = true
  const { sweeper, told, remember, left, store } = await open(async () => {
    if (isDown) throw new Error('no way with s3cret')
  })
  for (const key of ['1', '2', '3']) await remember(key, Date.now() - 1000)
  sweeper.start()
  await expect
    .poll(() => told)
    .toEqual([
      { level: 'warn', message: expect.stringMatching(/^3 files at local\/a .*: no way with \*\*\*$/) },
    ])
  isDown = false
  for (const { key } of await store.overdue(Date.now(), ['local/a'], 9))
    await store.postponeRemoval({ destination: 'local/a', key, holder: '' }, 0, 'tried sooner')
  await expect.poll(left).toBe(0)
  expect(told.at(-1)).toEqual({ level: 'info', message: '3 files at local/a removed: their time has come' })
})

it('a file that is there for a week after its time is an error', async () => {
  const { sweeper, told, remember } = await open(() => Promise.reject(new Error('no')))
  await remember('old', Date.now() - 8 * DAY_MS)
  sweeper.start()
  await expect
    .poll(() => told)
    .toMatchObject([{ level: 'error', message: expect.stringContaining('--expired') }])
})

it('a destination that fails again and again holds up no other one', async () => {
  const tried = new Set<string>()
  const { sweeper, remember, left } = await open(async key => {
    tried.add(key)
    if (key.startsWith('bad')) throw new Error('no')
  })
  for (let n = 0; n < 60; n++) await remember(`bad ${n}`, n + 1)
  await remember('good', 1000, 'b')
  sweeper.start()
  await expect.poll(() => tried.has('good')).toBe(true)
  await expect.poll(left).toBe(60)
})

it('what the store does not take is written as soon as it does', async () => {
  const { store, sweeper, told, remember, left } = await open(async () => {})
  const { noteRemoved } = store
  let isBroken = true
  store.noteRemoved = (object, now) =>
    isBroken ? Promise.reject(new Error('full')) : noteRemoved(object, now)
  await remember('a', 1)
  sweeper.start()
  await expect
    .poll(() => told)
    .toMatchObject([{ level: 'warn', message: "Files that are due can't be removed: full" }])
  isBroken = false
  await expect.poll(left).toBe(0)
})

it('a removal that hangs is cut short at the end, and its key is free', async () => {
  let isReached = false
  const { store, sweeper, remember } = await open(
    (_key, signal) =>
      new Promise((_, reject) => {
        isReached = true
        signal.addEventListener('abort', () => reject(signal.reason))
      }),
    { timeoutMs: 60_000 },
  )
  await remember('a', 1)
  sweeper.start()
  await expect.poll(() => isReached).toBe(true)
  await sweeper.stop()
  const hold = { destination: 'local/a', key: 'a', content: 'x', holder: 'h', owner: 'me', now: 1 }
  expect(await store.holdKey(hold)).toBeUndefined()
})
