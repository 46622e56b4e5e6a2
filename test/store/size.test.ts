import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import type { HistoryEntry, Store } from '../../src/store/contract.ts'
import { identify } from '../../src/store/expiry-contract.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { loadSqlite } from '../../src/store/sqlite-library.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { openSqlite } from '../helpers/sqlite.ts'

const HASH = 'a'.repeat(64)
const AMONG = ['local/a', 'local/b']
const PLACES = new Map([
  ['local/a', 'file:/a/'],
  ['local/b', 'file:/'],
])
const ID = identify({ destination: 'local/a', key: 'k' }, PLACES)

function entryOf(jobId: string, change: Partial<HistoryEntry> = {}): HistoryEntry {
  return {
    ...{ time: 1, jobId, index: 0, origin: 'a', url: 'u', key: 'k', size: 1, contentType: 't', sha256: HASH },
    ...{ deleteUrl: undefined, destination: 'local/a', caller: 'c', requestId: 'r', ...change },
  }
}

async function openStore(): Promise<{ store: Store; path: string }> {
  const path = join(await makeDirectory(), 'store.db')
  const store = createSqliteStore(path)
  onTestFinished(() => store.close())
  return { store, path }
}

const deliver = (store: Store, history: HistoryEntry[]) =>
  store.deliver('job', { state: 'finished', owner: 'me', files: [], steps: [], history, now: 1 })

const takeFrom = (store: Store) =>
  store.takeDue({
    among: AMONG,
    locations: PLACES,
    holder: 'sweep',
    owner: 'me',
    now: 50,
    limit: 8,
    longestPauseMs: 10,
  })

/** @returns a library that notes what SQLite is asked */
function listen(asked: string[]) {
  const { DatabaseSync } = loadSqlite()
  class Listening extends DatabaseSync {
    override prepare(text: string) {
      asked.push(text)
      return super.prepare(text)
    }
  }
  return { DatabaseSync: Listening }
}

const OBJECT = { destination: 'local/a', key: 'x' }
const SAME_BYTES = { among: ['local/a'], sha256: HASH, isRemoved: false, limit: 100 }

it('uploads, visitors and the sweeper go through no table, however many files there are', async () => {
  const { store, path } = await openStore()
  await deliver(store, [entryOf('first', { expiresAt: 10 })])
  await store.history({ by: 'c', isRemoved: false, limit: 1 })
  await store.history(SAME_BYTES)
  await store.noteRemoved([(await takeFrom(store)).objects[0]!], 5)
  const asked: string[] = []
  const other = createSqliteStore(path, { library: listen(asked) })
  onTestFinished(() => other.close())
  const steps: [string, () => Promise<unknown>][] = [
    ['an upload', () => deliver(other, [entryOf('second', { expiresAt: 10 })])],
    [
      'its key',
      () =>
        other.lockObject({ ...OBJECT, object: 'file:/a/x', content: 'x', holder: 'h', owner: 'me', now: 1 }),
    ],
    ['the same bytes', () => other.history(SAME_BYTES)],
    ['what came since', () => other.history({ object: ID, isRemoved: false, since: 1, limit: 9 })],
    ['until when it stays', () => other.promised([ID])],
    ['a link', () => other.history({ among: ['local/a'], key: 'k', isRemoved: false, limit: 1 })],
    ['the uploads of a caller', () => other.history({ by: 'c', isRemoved: false, limit: 9 })],
    ['what is due', () => other.countDue(50, AMONG, 100)],
    ['the latest uploads', () => other.history({ limit: 9 })],
    ['where files go', () => other.expiring(AMONG)],
    ['what was removed', async () => other.noteRemoved([(await takeFrom(other)).objects[0]!], 60)],
    [
      'a failure',
      () =>
        other.postponeRemoval(
          { destination: 'local/a', key: 'k', object: 'file:/a/k', holder: 'h' },
          70,
          'down',
        ),
    ],
  ]
  const database = openSqlite(path)
  for (const [name, work] of steps) {
    const before = asked.length
    await work()
    const statements = asked.slice(before).filter(text => /history|expiries/.test(text))
    for (const text of statements.filter(one => !/^create|schema_version|offset/.test(one))) {
      const plan = database.prepare(`explain query plan ${text}`).all() as { detail: string }[]
      const slow = plan
        .map(({ detail }) => detail)
        .filter(one => /^SCAN (history|expiries)(?! USING INDEX)|FOR ORDER BY/.test(one))
      expect([name, text, slow]).toEqual([name, text, []])
    }
  }
  database.close()
})

it('the end of an object that thousands of uploads have named held up everything else for 20 s', async () => {
  const { store } = await openStore()
  const entries = Array.from({ length: 4000 }, (_, n) => entryOf(`job ${n}`, { expiresAt: 10 }))
  await deliver(store, entries)
  const [object] = (await takeFrom(store)).objects
  let [isOver, turns] = [false, 0]
  const removal = store.noteRemoved([object!], 60).finally(() => {
    isOver = true
  })
  for (; !isOver; turns++) await new Promise(resolve => setImmediate(resolve))
  await removal
  expect(await store.countHistory({ isRemoved: true })).toBe(4000)
  expect(turns, 'of the event loop meanwhile').toBeGreaterThanOrEqual(20)
})
