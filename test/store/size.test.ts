import { join } from 'node:path'
import { expect, it } from 'vitest'
import { findFiles, type HistoryFilter } from '../../src/store/history.ts'
import { objectName, takeOpen } from '../../src/store/objects.ts'
import { advance, reap, takeStored } from '../../src/store/pending.ts'
import {
  countDue,
  noteRemoved,
  overdue,
  postpone,
  takeDue,
  takeForRemoval,
} from '../../src/store/removals.ts'
import { earlierRequest } from '../../src/store/requests.ts'
import { openSqlite as openDatabase } from '../../src/store/sqlite.ts'
import { loadSqlite } from '../../src/store/sqlite-library.ts'
import { begin, claimMore, finish, finishLate } from '../../src/store/uploads.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { openSqlite } from '../helpers/sqlite.ts'
import { addEntry, closed, newFile, newOwnerIn, newUpload } from '../helpers/stores.ts'

const AT = { destination: 'local/blog', location: '/srv/blog/' }
const HASH = 'a'.repeat(64)
const QUOTA = { client: 'c', group: 'c', windowMs: 1000, files: 1 }

/** @returns a library that notes what SQLite is asked */
function listen(asked: Set<string>) {
  const { DatabaseSync } = loadSqlite()
  class Listening extends DatabaseSync {
    override prepare(text: string) {
      asked.add(text)
      return super.prepare(text)
    }
  }
  return { DatabaseSync: Listening }
}

it('uploads, visitors, the sweeper and removals go through no table, however many files there are', async () => {
  const path = join(await makeDirectory(), 'store.db')
  const asked = new Set<string>()
  const database = closed(openDatabase(path, { library: listen(asked) }))
  const { id: owner } = await newOwnerIn(database)
  const among = [AT.destination]
  const now = Date.now()
  const upload = newUpload({ owner })
  const claimant = { id: upload.id, claimed: new Set<string>() }
  const wanted = { ...AT, key: 'a.png', sha256: HASH, isContentKey: false, expiresAt: 10 }
  const [rename, dedupe] = [
    { ...wanted, onConflict: 'rename', dedupe: false } as const,
    { ...wanted, onConflict: 'rename', dedupe: true } as const,
  ]
  const request = { key: 'k', fingerprint: 'f', seed: 's' }
  const file = newFile({ key: 'a.png', expiresAt: 10 })
  const find = (filter: Partial<HistoryFilter>) => () =>
    database.read(db => findFiles(db, { limit: 9, ...filter }))
  const due = () => takeDue(database, { owner, among, now, limit: 8, longestPauseMs: 10 })
  const name = objectName(AT.location, 'a.png')
  const steps: [string, () => Promise<unknown>][] = [
    [
      'an object of another upload',
      () => addEntry(database, { key: 'a.png', sha256: 'b', location: AT.location }),
    ],
    [
      'an upload',
      () =>
        begin(database, upload, claimant, [{ index: 0, size: 1, wanted: [rename] }], {
          request,
          quotas: [QUOTA],
        }),
    ],
    ['the same object', () => claimMore(database, claimant, { ...rename, sha256: 'b' })],
    ['its fallback', () => claimMore(database, claimant, dedupe)],
    [
      'its end',
      () => finish(database, upload, { state: 'stored', files: [file], failed: [], open: new Set(['x']) }),
    ],
    ['a late file', () => finishLate(database, upload, { ...file, destination: AT.destination }, [QUOTA])],
    ['a repeated request', () => database.read(db => earlierRequest(db, request, now))],
    ['its repetition', () => begin(database, newUpload({ owner }), claimant, [], { request })],
    ['the hooks', () => takeStored(database, upload.id, owner)],
    [
      'a hook',
      () => advance(database, upload.id, owner, { state: 'stored', steps: [], attempts: 1, pauseMs: 1 }),
    ],
    ['what dead processes have left', () => reap(database, () => {})],
    ['open transfers', () => database.tx(db => takeOpen(db, owner, among, 9))],
    ['a link', find({ objects: [name], isRemoved: false, limit: 1 })],
    ['the same content', find({ sha256: HASH })],
    ['the uploads of a caller', find({ by: 'c', isRemoved: false })],
    ['the latest uploads', find({})],
    ['the next page', find({ after: { jobId: 'j', index: 0 } })],
    ['old files to remove', find({ among, before: now, isRemoved: false, after: { jobId: 'j', index: 0 } })],
    ['the number of due objects', () => database.read(db => countDue(db, now, among, 100))],
    ['due objects', () => database.read(db => overdue(db, now, among, 9))],
    ['a removal by hand', () => database.tx(db => takeForRemoval(db, owner, [name]))],
    ['a removal that fails', () => postpone(database, owner, name, { retryAt: 1, problem: 'down' })],
    [
      'a removal',
      async () =>
        noteRemoved(
          database,
          (await due()).map(one => one.name),
        ),
    ],
  ]
  const other = openSqlite(path)
  for (const [step, work] of steps) {
    asked.clear()
    await work()
    for (const text of asked) {
      const plan = other.prepare(`explain query plan ${text}`).all() as { detail: string }[]
      // The history is sorted by the primary key of its table, so this reads no more rows than it returns.
      const isByKey = text.includes('order by files.upload desc, files.position desc limit')
      const isSlow = (one: string) =>
        (/^SCAN (files|objects|uploads|requests)/.test(one) &&
          !/USING (COVERING )?INDEX/.test(one) &&
          !isByKey) ||
        /FOR ORDER BY/.test(one)
      expect([step, text, plan.map(({ detail }) => detail).filter(isSlow)]).toEqual([step, text, []])
    }
  }
  other.close()
})
