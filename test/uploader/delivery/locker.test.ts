import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createSqliteStore } from '../../../src/store/sqlite.ts'
import {
  createLocks,
  createMemoryLocker,
  createStoreLocker,
  type Locker,
} from '../../../src/uploader/delivery/locker.ts'
import { makeDirectory } from '../../helpers/directory.ts'

const { signal } = new AbortController()
const STORED = { url: 'https://x.example/a.png', by: 's3/a', end: 'never' } as const

async function openStore() {
  const store = createSqliteStore(join(await makeDirectory(), 'store.db'))
  onTestFinished(() => store.close())
  return store
}

const LOCKERS: [string, () => Promise<Locker>][] = [
  ['in memory', async () => createMemoryLocker()],
  [
    'over a store',
    async () => createStoreLocker(await openStore(), createMemoryLocker(), { id: 'job', owner: 'me' }),
  ],
]

describe.each(LOCKERS)('a locker %s', (where, make) => {
  it('gives an object to one content at a time', async () => {
    const locker = await make()
    const lock = await locker.take('a', 'one', signal)
    expect(lock).toMatchObject({ others: undefined, isShared: false })
    expect(await locker.take('a', 'two', signal)).toBeUndefined()
    expect(await locker.take('b', 'two', signal)).toBeDefined()
    lock?.release()
    expect(await locker.take('a', 'one', signal)).toBeDefined()
  })

  it('gives what was stored to those who ask and to those who waited, though the first is over', async () => {
    const locker = await make()
    const first = await locker.take('a', 'one', signal)
    const waiting = [locker.take('a', 'one', signal), locker.take('a', 'one', signal)]
    await new Promise(resolve => setImmediate(resolve))
    first?.settle(STORED)
    first?.release()
    const locks = await Promise.all([...waiting, locker.take('a', 'one', signal)])
    expect(locks.map(lock => lock?.others)).toEqual([STORED, STORED, STORED])
    expect(await locker.take('a', 'two', signal)).toBeUndefined()
    for (const lock of locks) lock?.release()
    if (where === 'in memory') expect(await locker.take('a', 'two', signal)).toBeDefined()
  })

  it('has the next one try when the first one fails', async () => {
    const locker = await make()
    const first = await locker.take('a', 'one', signal)
    const waiting = [locker.take('a', 'one', signal), locker.take('a', 'one', signal)]
    await new Promise(resolve => setImmediate(resolve))
    first?.release()
    const next = await waiting[0]
    expect(next).toMatchObject({ others: undefined })
    first?.release() // a second time ends nobody else's
    next?.settle(STORED)
    expect((await waiting[1])?.others).toBe(STORED)
  })

  it('lets who waits leave, and asks nothing of who has left', async () => {
    const locker = await make()
    const first = await locker.take('a', 'one', signal)
    const leaver = new AbortController()
    const gone = locker.take('a', 'one', leaver.signal)
    leaver.abort(new Error('gone'))
    await expect(gone).rejects.toThrow('gone')
    first?.release()
    expect(await locker.take('a', 'one', signal)).toMatchObject({ others: undefined })
  })

  it.each([
    ['a.png', 'A.PNG'],
    ['é.png', 'e\u0301.png'],
    ['Ordner/x', 'ordner/X'],
  ])('holds %j and %j for one object with other content, since some disks do', async (first, second) => {
    const locker = await make()
    await locker.take(first, 'one', signal)
    expect(await locker.take(second, 'one', signal)).toBeUndefined()
  })

  it('releases all locks of a piece of work that is over, also one that was asked for too late', async () => {
    const locker = await make()
    const [request, file] = [createLocks(locker), createLocks(locker)]
    await request.take('a', 'one', signal)
    void request.take('b', 'one', signal)
    await file.take('c', 'one', signal)
    await request.end()
    for (const name of ['a', 'b']) expect((await locker.take(name, 'one', signal))?.others).toBeUndefined()
    const late = locker.take('c', 'one', signal)
    let put = () => {}
    await file.end(new Promise<void>(resolve => (put = resolve)))
    await file.end()
    expect(await Promise.race([late, new Promise(resolve => setImmediate(resolve, 'waits'))])).toBe('waits')
    put()
    expect(await late).toMatchObject({ others: undefined })
  })
})

describe('jobs of several processes', () => {
  async function open() {
    const store = await openStore()
    /** Each in a process of its own. */
    const as =
      (id: string) =>
      (content: string, object = 'file:/a/a.png', until = signal) =>
        createStoreLocker(store, createMemoryLocker(), { id, owner: 'me' }).take(object, content, until)
    const removal = { object: 'file:/a/a.png', content: 'removal', holder: 'removal', owner: 'sweeper' }
    return { store, as, remove: () => store.lockObject({ ...removal, now: Date.now() }) }
  }

  it('hold an object together for the same bytes, until the last one is written down', async () => {
    const { store, as } = await open()
    expect(await as('one')('x')).toMatchObject({ isShared: false })
    expect(await as('one')('x'), 'again').toMatchObject({ isShared: false })
    expect(await as('two')('x')).toMatchObject({ isShared: true })
    expect(await as('three')('y')).toBeUndefined()
    expect(await as('three')('x', 'file:/a/A.PNG'), 'another spelling').toBeUndefined()
    await store.unlockObjects('one')
    expect(await as('three')('y'), 'one of both is left').toBeUndefined()
    await store.unlockObjects('two')
    expect(await as('three')('y')).toBeDefined()
  })

  it('wait for a removal, or leave with their request and hold nothing', async () => {
    const { store, as, remove } = await open()
    await remove()
    const request = new AbortController()
    const leaving = as('one')('x', undefined, request.signal)
    const waiting = as('two')('y')
    request.abort(new Error('the client is gone'))
    await expect(leaving).rejects.toThrow('the client is gone')
    expect(await Promise.race([waiting, new Promise(resolve => setTimeout(resolve, 100, 'waits'))])).toBe(
      'waits',
    )
    await store.unlockObjects('removal')
    expect(await waiting).toMatchObject({ isShared: false })
    expect(await as('three')('x')).toBeUndefined()
  })

  it('do not trust what was stored before a removal that they waited for', async () => {
    const { store, remove } = await open()
    const memory = createMemoryLocker()
    const first = await memory.take('file:/a/a.png', 'x', signal)
    first?.settle(STORED)
    await remove()
    const waiting = createStoreLocker(store, memory, { id: 'job', owner: 'me' }).take(
      'file:/a/a.png',
      'x',
      signal,
    )
    await new Promise(resolve => setTimeout(resolve, 50))
    await store.unlockObjects('removal')
    expect(await waiting).toMatchObject({ others: undefined })
  })

  it('give the object back to their own process when the store fails', async () => {
    const memory = createMemoryLocker()
    const down = { lockObject: () => Promise.reject(new Error('the store is down')) }
    const locker = createStoreLocker(down, memory, { id: 'job', owner: 'me' })
    await expect(locker.take('a', 'x', signal)).rejects.toThrow('the store is down')
    expect(await memory.take('a', 'y', signal)).toBeDefined()
  })
})
