import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it, onTestFinished } from 'vitest'
import type { Target } from '../../../src/providers/contract.ts'
import type { HistoryEntry, Store } from '../../../src/store/contract.ts'
import { createSqliteStore } from '../../../src/store/sqlite.ts'
import type { Destination } from '../../../src/uploader/delivery/destinations.ts'
import { createLease } from '../../../src/uploader/jobs/lease.ts'
import { createSweeper, type SweeperDeps } from '../../../src/uploader/jobs/sweeper.ts'
import { makeDirectory } from '../../helpers/directory.ts'

const DAY_MS = 24 * 60 * 60 * 1000

/** A sweeper over destinations that remove as the test says. */
async function open(
  remove: NonNullable<Target['remove']>,
  change: Partial<SweeperDeps> = {},
  wrap = (store: Store) => store,
) {
  const store = createSqliteStore(join(await makeDirectory(), 'store.db'))
  const lease = createLease(store, 'me', 60_000, () => new Date())
  const told: { level: string; message: string; keys?: unknown }[] = []
  const note =
    (level: string) =>
    (message: string, { keys, failed }: { keys?: unknown; failed?: unknown } = {}) =>
      void told.push({
        level,
        message,
        ...(keys !== undefined && { keys }),
        ...(failed !== undefined && { failed }),
      })
  const destination = (name: string) =>
    ({ type: 'local', name, location: `file:/${name}/`, target: { remove } }) as unknown as Destination
  const sweeper = createSweeper({
    ...{
      store: wrap(store),
      owner: 'me',
      lease,
      withExpiry: new Set<string>(),
      everyMs: 20,
      timeoutMs: 1000,
    },
    destinations: [destination('a'), destination('b')],
    now: Date.now,
    mask: text => text.replace('s3cret', '***'),
    ...{ info: note('info'), warn: note('warn'), error: note('error') },
    ...change,
  })
  onTestFinished(async () => {
    await sweeper.stop()
    await lease.end()
    await store.close()
  })
  async function remember(key: string, expiresAt: number, name = 'a'): Promise<void> {
    const entry: HistoryEntry = {
      ...{
        time: 1,
        jobId: `job ${key} ${expiresAt}`,
        index: 0,
        origin: key,
        url: 'u',
        key,
        size: 1,
        contentType: 't',
      },
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
      { level: 'warn', message: 'Could not delete expired files at local/a: no way with ***', failed: 3 },
    ])
  isDown = false
  for (const { key } of await store.overdue(Date.now(), ['local/a'], 9))
    await store.postponeRemoval({ destination: 'local/a', key, object: '', holder: '' }, 0, 'tried sooner')
  await expect.poll(left).toBe(0)
  // Said when the round is over, and in two rounds when one begins between the postponed ones.
  await expect
    .poll(() =>
      told
        .slice(1)
        .flatMap(({ keys = [] }) => keys)
        .sort(),
    )
    .toEqual(['1', '2', '3'])
  for (const { level, message } of told.slice(1))
    expect({ level, message }).toEqual({
      level: 'info',
      message: 'Deleted expired files',
    })
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
  store.noteRemoved = (objects, now) =>
    isBroken ? Promise.reject(new Error('full')) : noteRemoved(objects, now)
  await remember('a', 1)
  sweeper.start()
  await expect
    .poll(() => told)
    .toMatchObject([{ level: 'warn', message: 'Could not delete expired files: full' }])
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
  const hold = { destination: 'local/a', key: 'a', object: 'file:/a/a', content: 'x' }
  expect(await store.lockObject({ ...hold, holder: 'h', owner: 'me', now: 1 })).toBeUndefined()
})

it('a removal that hung was never given up on Node 20, and no file expired any more', async () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage: () => void = runInNewContext('gc')
  let isReached = false
  const { sweeper, told, remember, left } = await open(
    (key, signal) =>
      new Promise((resolve, reject) => {
        if (key !== 'hangs') return resolve()
        isReached = true
        signal.addEventListener('abort', () => reject(signal.reason))
      }),
    { timeoutMs: 300 },
  )
  await remember('hangs', 1)
  sweeper.start()
  await expect.poll(() => isReached).toBe(true)
  await new Promise(resolve => setTimeout(resolve, 50))
  collectGarbage()
  await expect
    .poll(() => told, { timeout: 5000 })
    .toEqual([expect.objectContaining({ message: expect.stringContaining('it took longer than 300 ms') })])
  await remember('goes', 2)
  await expect.poll(left).toBe(1)
})

it('what was uploaded again counted as removed when the answer of the store to the removal before was lost', async () => {
  const { store, sweeper, told, remember } = await open(async () => {})
  const { noteRemoved } = store
  store.noteRemoved = async (objects, now) => {
    await noteRemoved(objects, now)
    if (told.length > 0) return
    await remember('a', Date.now() + DAY_MS)
    throw new Error('the answer is lost')
  }
  await remember('a', 1)
  sweeper.start()
  await expect.poll(() => told).toMatchObject([{ level: 'warn' }])
  await new Promise(resolve => setTimeout(resolve, 200))
  expect(await store.history({ isRemoved: false, limit: 9 })).toMatchObject([{ key: 'a' }])
})

it('an object stayed locked until the server ended when the answer that had locked it was lost', async () => {
  let lost = 0
  const { sweeper, remember, left } = await open(
    async () => {},
    {},
    store => ({
      ...store,
      async takeDue(wanted) {
        const taken = await store.takeDue(wanted)
        if (taken.objects.length > 0 && ++lost === 1) throw new Error('the answer is lost')
        return taken
      },
    }),
  )
  await remember('a', 1)
  sweeper.start()
  await expect.poll(left, { timeout: 5000 }).toBe(0)
  expect(lost).toBe(2)
})
