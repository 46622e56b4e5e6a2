import { randomUUID } from 'node:crypto'
import { describe, expect, it, type TestContext } from 'vitest'
import type { HistoryEntry, Store } from '../../src/store/contract.ts'
import { identify } from '../../src/store/expiry-contract.ts'
import { storeEngines } from '../helpers/stores.ts'

const ENGINES = storeEngines()

const DESTINATION = 'local/ci'
const AMONG = [DESTINATION]
const PLACES = new Map([[DESTINATION, 'file:/ci/']])

function newEntry(change: Partial<HistoryEntry>): HistoryEntry {
  return {
    time: 1,
    jobId: randomUUID(),
    index: 0,
    origin: 'a.png',
    url: 'http://x.example/a.png',
    key: 'a.png',
    size: 1,
    contentType: 'image/png',
    sha256: 'a'.repeat(64),
    deleteUrl: undefined,
    destination: DESTINATION,
    caller: 'loopback',
    requestId: 'r1',
    ...change,
  }
}

async function remember(store: Store, ...changes: Partial<HistoryEntry>[]): Promise<void> {
  for (const entry of changes.map(newEntry)) {
    const told = { state: 'finished', owner: 'me', files: [], steps: [], now: 1 } as const
    await store.deliver(entry.jobId, { ...told, history: [entry] })
  }
}

let sweeps = 0

async function takeDue(store: Store, now: number, limit = 100) {
  const wanted = {
    among: AMONG,
    locations: PLACES,
    holder: `sweep ${++sweeps}`,
    owner: 'sweeper',
    now,
    limit,
    longestPauseMs: 1000,
  }
  return (await store.takeDue(wanted)).objects
}

const keysOf = (objects: readonly { key: string }[]) => objects.map(({ key }) => key).sort()

describe.each(ENGINES)('files that go again in %s', (_name, make) => {
  const openStore = async (context: TestContext) => (await make(context)).open

  it('are given to be removed once they are due, each to one of many that ask', async context => {
    const open = await openStore(context)
    const stores = [open(), open(), open()]
    const store = stores[0]!
    await remember(
      store,
      ...Array.from({ length: 40 }, (_, n) => ({ key: `k${n}.png`, expiresAt: 10 })),
      { key: 'later.png', expiresAt: 11 },
      { key: 'stays.png' },
      { key: 'elsewhere.png', destination: 'local/other', expiresAt: 10 },
    )
    expect(await takeDue(store, 9)).toEqual([])
    expect(await store.countDue(10, AMONG, 30)).toBe(30)
    const taken = await Promise.all(stores.map(one => takeDue(one, 10)))
    expect(keysOf(taken.flat())).toEqual(Array.from({ length: 40 }, (_, n) => `k${n}.png`).sort())
    await store.noteRemoved(taken.flat(), 12)
    expect(await store.countDue(5000, AMONG, 30), 'the later one is left').toBe(1)
    const gone = await store.history({ isRemoved: true, limit: 100 })
    expect(gone.map(({ removedAt }) => removedAt)).toEqual(Array(40).fill(12))
    expect(await store.expiring(['local/x', 'local/other', DESTINATION])).toEqual([
      'local/other',
      DESTINATION,
    ])
  })

  it('live as long as the longest of their promises', async context => {
    const store = (await openStore(context))()
    await remember(
      store,
      { key: 'longer.png', expiresAt: 30 },
      { key: 'longer.png', expiresAt: 10 },
      { key: 'forever.png' },
      { key: 'forever.png', expiresAt: 10 },
    )
    expect(await takeDue(store, 20)).toEqual([])
    expect(await takeDue(store, 29)).toEqual([])
    expect(keysOf(await takeDue(store, 30))).toEqual(['longer.png'])
    expect(await store.expiring(AMONG)).toEqual([DESTINATION])
  })

  it('are not taken while a job holds their key, nor is a key held while its object is removed', async context => {
    const store = (await openStore(context))()
    const held = { destination: DESTINATION, key: 'A.png', object: 'file:/ci/A.png' }
    const hold = { ...held, content: 'x', holder: 'job', owner: 'me', now: 5 }
    await remember(store, { key: 'a.png', expiresAt: 10 })
    expect(await store.lockObject(hold)).toBeUndefined()
    expect(await store.lockObject({ ...hold, holder: 'job of the same bytes' })).toBe('shared')
    await store.unlockObjects('job of the same bytes')
    expect(await store.lockObject({ ...hold, content: 'y', holder: 'other' })).toMatchObject({
      holder: 'job',
    })
    expect(await takeDue(store, 20)).toEqual([])
    // The delivery gives the key back.
    await remember(store, { jobId: 'job', key: 'a.png', expiresAt: 15 })
    const [object] = await takeDue(store, 2000)
    expect(object).toMatchObject({ key: 'a.png', dueAt: 15 })
    expect(await store.lockObject({ ...hold, content: 'y' })).toMatchObject({ owner: 'sweeper' })
    await store.noteRemoved([object!], 2000)
    expect(await store.lockObject({ ...hold, content: 'y' })).toBeUndefined()
  })

  it('are one object at one place, however many destinations reach it', async context => {
    const store = (await openStore(context))()
    const below = { destination: 'local/below', key: 'x/a.png', location: 'file:/ci/' }
    const around = { destination: DESTINATION, key: 'a.png', location: 'file:/ci/x/' }
    const locations = new Map([
      [DESTINATION, 'file:/ci/x/'],
      ['local/below', 'file:/ci/'],
    ])
    const object = identify(below, locations)
    expect(object.object).toBe('file:/ci/x/a.png')
    expect(identify(around, locations).object).toBe(object.object)
    const take = (now: number) =>
      store.takeDue({
        among: [...locations.keys()],
        locations,
        holder: `sweep ${++sweeps}`,
        owner: 'sweeper',
        now,
        limit: 9,
        longestPauseMs: 100,
      })
    await remember(store, { ...below, expiresAt: 10 }, { ...around, expiresAt: 30 })
    expect(await store.promised([object, identify({ ...below, key: 'x/b.png' }, locations)])).toEqual([
      30,
      undefined,
    ])
    expect((await take(20)).objects).toEqual([])
    expect(await store.pruneHistory(5, ['local/below']), 'an entry that promises').toBe(0)

    const hold = { ...below, object: object.object, content: 'x', holder: 'job', owner: 'me', now: 5 }
    expect(await store.lockObject(hold)).toBeUndefined()
    expect(await store.lockObject({ ...hold, ...around, content: 'y', holder: 'other' })).toMatchObject({
      holder: 'job',
    })
    expect((await take(40)).objects).toEqual([])
    await store.unlockObjects('job')

    const { objects } = await take(2000)
    expect(objects, 'once, not once for each destination').toHaveLength(1)
    await store.noteRemoved([objects[0]!], 2000)
    expect(await store.history({ isRemoved: false, limit: 9 })).toEqual([])
    expect(await store.overdue(9000, undefined, 9)).toEqual([])
  })

  it('stay when one that came without an end lies there, also by an entry that knows no place', async context => {
    const store = (await openStore(context))()
    const locations = new Map([...PLACES, ['local/old', 'file:/']])
    const take = () =>
      store.takeDue({
        among: AMONG,
        locations,
        holder: `sweep ${++sweeps}`,
        owner: 'sweeper',
        now: 50,
        limit: 9,
        longestPauseMs: 100,
      })
    await remember(
      store,
      { key: 'a.png', location: 'file:/ci/', expiresAt: 10 },
      { destination: 'local/old', key: 'ci/a.png' },
      { key: 'b.png', location: 'file:/ci/', expiresAt: 10 },
      { key: 'c.png', expiresAt: 10 },
    )
    expect(keysOf((await take()).objects)).toEqual(['b.png', 'c.png'])
  })

  it('stay where they lie when their destination leads elsewhere by now, and that is said', async context => {
    const store = (await openStore(context))()
    await remember(store, { key: 'a.png', location: 'file:/before/', expiresAt: 10 })
    expect(await takeDue(store, 20)).toEqual([])
    expect(await store.overdue(20, AMONG, 9)).toMatchObject([
      { key: 'a.png', attempts: 1, problem: expect.stringContaining('file:/before/') },
    ])
  })

  it('are free again when whoever held them is gone', async context => {
    const store = (await openStore(context))()
    await remember(store, { expiresAt: 10 })
    expect(await takeDue(store, 20)).toHaveLength(1)
    expect([...(await store.owners()).keys()]).toEqual(['sweeper'])
    expect(await takeDue(store, 5000)).toEqual([])
    await store.abandon('sweeper', () => {})
    expect(await takeDue(store, 9000)).toHaveLength(1)
  })

  it('are tried again when that is due, or when the clock was set back', async context => {
    const store = (await openStore(context))()
    await remember(store, { expiresAt: 10 })
    const [object] = await takeDue(store, 20)
    await store.postponeRemoval(object!, 500, 'it is down')
    expect(await takeDue(store, 499)).toEqual([])
    expect(await store.overdue(499, AMONG, 9)).toMatchObject([
      { attempts: 1, problem: 'it is down', dueAt: 10 },
    ])
    const [again] = await takeDue(store, 500)
    await store.postponeRemoval(again!, 50_000, 'it is down')
    expect(await takeDue(store, 600)).toMatchObject([{ attempts: 2 }])
  })

  it('are not forgotten before they are removed, nor is what else is promised of them', async context => {
    const store = (await openStore(context))()
    await remember(
      store,
      { key: 'a.png' },
      { key: 'b.png', expiresAt: 10 },
      { key: 'c.png' },
      { key: 'b.png' },
    )
    expect(await store.pruneHistory(5, ['local/other'])).toBe(0)
    expect(await store.pruneHistory(5, AMONG)).toBe(2)
    expect(keysOf(await store.history({ limit: 9 }))).toEqual(['b.png', 'b.png'])
  })

  it('are no match for the same bytes once they are removed, however many entries they have', async context => {
    const store = (await openStore(context))()
    await remember(store, ...Array(450).fill({ expiresAt: 10 }))
    const sameBytes = () =>
      store.history({ among: [DESTINATION], sha256: 'a'.repeat(64), isRemoved: false, limit: 1 })
    const [object] = await takeDue(store, 20)
    expect(await sameBytes()).toHaveLength(1)
    await store.noteRemoved([object!], 20)
    expect(await sameBytes()).toEqual([])
    expect(await store.countHistory({ key: 'a.png', isRemoved: false })).toBe(0)
    expect(await store.countHistory({ isRemoved: true })).toBe(450)
  })
})

describe.each(ENGINES)('the history in %s', (_name, make) => {
  it.for([
    ['among destinations', { among: ['local/b', 'local/c'] }, ['b']],
    ['among none', { among: [] }, []],
    ['by caller', { caller: 'ALICE' }, ['b']],
    ['by name', { name: 'cat' }, ['a']],
    ['by link', { link: 'x.example/dir/b' }, ['b']],
    ['by its whole link', { url: 'http://x.example/dir/b.png' }, ['b']],
    ['by job', { jobId: 'job-a' }, ['a']],
    ['by request', { requestId: 'request-b' }, ['b']],
    ['by time', { before: 2 }, ['a']],
    ['by keys', { keys: ['cat/dog.png', 'dog.png'] }, ['b']],
  ] as const)('is found %s', async ([, filter, expected], context) => {
    const store = (await make(context)).open()
    await remember(
      store,
      { origin: 'a', jobId: 'job-a', time: 1, key: 'dir/cat.png' },
      {
        ...{ origin: 'b', destination: 'local/b', caller: 'proxy: alice', time: 2, key: 'cat/dog.png' },
        ...{ url: 'http://x.example/dir/b.png', requestId: 'request-b' },
      },
    )
    const found = await store.history({ ...filter, limit: 9 })
    expect(found.map(({ origin }) => origin)).toEqual(expected)
  })
})
