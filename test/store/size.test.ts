import { join } from 'node:path'
import Libsql from 'libsql'
import { expect, it, onTestFinished } from 'vitest'
import type { HistoryEntry, Store } from '../../src/store/contract.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { makeDirectory } from '../helpers/directory.ts'

const AMONG = ['local/a', 'local/b']

function entryOf(jobId: string, change: Partial<HistoryEntry> = {}): HistoryEntry {
  return {
    ...{ time: 1, jobId, index: 0, origin: 'a', url: 'u', key: 'k', size: 1, contentType: 't', sha256: 's' },
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
  store.takeDue({ among: AMONG, owner: 'me', now: 50, limit: 8, longestPauseMs: 10 })

/** @returns what SQLite is asked from now on */
function listen(): string[] {
  const asked: string[] = []
  const { prepare } = Libsql.prototype
  function listening(this: Libsql.Database, text: string) {
    asked.push(text)
    return prepare.call(this, text)
  }
  Object.assign(Libsql.prototype, { prepare: listening })
  onTestFinished(() => {
    Libsql.prototype.prepare = prepare
  })
  return asked
}

const SAME_BYTES = { among: ['local/a'], sha256: 's', isRemoved: false, limit: 100 }

it('uploads, visitors and the sweeper go through no table, however many files there are', async () => {
  const { store, path } = await openStore()
  await deliver(store, [entryOf('first', { expiresAt: 10 })])
  await store.history({ by: 'c', isRemoved: false, limit: 1 })
  await store.history(SAME_BYTES)
  await store.noteRemoved((await takeFrom(store)).objects[0]!, 5)
  const asked = listen()
  const other = createSqliteStore(path)
  onTestFinished(() => other.close())
  const steps: [string, () => Promise<unknown>][] = [
    ['an upload', () => deliver(other, [entryOf('second', { expiresAt: 10 })])],
    [
      'its key',
      () =>
        other.holdKey({ destination: 'local/a', key: 'x', content: 'x', holder: 'h', owner: 'me', now: 1 }),
    ],
    ['the same bytes', () => other.history(SAME_BYTES)],
    [
      'what came since',
      () => other.history({ among: ['local/a'], key: 'k', isRemoved: false, since: 1, limit: 9 }),
    ],
    ['a link', () => other.history({ among: ['local/a'], key: 'k', isRemoved: false, limit: 1 })],
    ['the uploads of a caller', () => other.history({ by: 'c', isRemoved: false, limit: 9 })],
    ['what is due', () => other.countDue(50, AMONG, 100)],
    ['where files go', () => other.expiring(AMONG)],
    ['what was removed', async () => other.noteRemoved((await takeFrom(other)).objects[0]!, 60)],
    ['a failure', () => other.postponeRemoval({ destination: 'local/a', key: 'k', holder: 'h' }, 70, 'down')],
  ]
  const database = new Libsql(path)
  for (const [name, work] of steps) {
    const before = asked.length
    await work()
    const statements = asked.slice(before).filter(text => /history|expiries/.test(text))
    for (const text of statements.filter(one => !/^create|schema_version|offset/.test(one))) {
      const values = [...text.matchAll(/\?/g)].map(() => null)
      const plan = database.prepare(`explain query plan ${text}`).all(values) as { detail: string }[]
      const slow = plan
        .map(({ detail }) => detail)
        .filter(one => /^SCAN (history|expiries)|FOR ORDER BY/.test(one))
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
  const removal = store.noteRemoved(object!, 60).finally(() => {
    isOver = true
  })
  for (; !isOver; turns++) await new Promise(resolve => setImmediate(resolve))
  await removal
  expect(await store.countHistory({ isRemoved: true })).toBe(4000)
  expect(turns, 'of the event loop meanwhile').toBeGreaterThanOrEqual(20)
})
