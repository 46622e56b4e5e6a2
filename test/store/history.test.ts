import { randomBytes } from 'node:crypto'
import { describe, expect } from 'vitest'
import type { HistoryEntry } from '../../src/store/contract.ts'
import type { Database } from '../../src/store/database.ts'
import { countFiles, findFiles, type HistoryFilter, pruneFiles, pruneOld } from '../../src/store/history.ts'
import { REQUEST_KEPT_MS } from '../../src/store/requests.ts'
import { sql } from '../../src/store/sql.ts'
import { readUpload } from '../../src/store/upload-rows.ts'
import { begin, finish } from '../../src/store/uploads.ts'
import { addEntry, jobAt, newUpload, storeTest } from '../helpers/stores.ts'

const URL_OF_B = 'http://x.example/dir/b.png'

const it = storeTest()

describe('the history', () => {
  const add = async (database: Database, ...entries: Partial<HistoryEntry>[]) => {
    for (const entry of entries) await addEntry(database, entry)
  }
  const find = async (database: Database, filter: Partial<HistoryFilter> = {}) =>
    (await database.read(db => findFiles(db, { limit: 99, ...filter }))).map(({ origin }) => origin)

  it.for([
    ['a NUL', 'a\0b.png'],
    ['more characters than an index takes', `${randomBytes(2000).toString('hex')}.review.json`],
  ])(
    'attack: the name of a file has %s, so that its upload can not be saved and keeps its object',
    async ([, origin], { database }) => {
      await add(database, { origin, key: 'k.png' })
      expect(await find(database)).toHaveLength(1)
      expect(await find(database, { text: origin })).toEqual(await find(database))
    },
  )

  it.for<[filter: Partial<HistoryFilter>, expected: string[]]>([
    [{}, ['b', 'c', 'a.cat']],
    [{ limit: 2 }, ['b', 'c']],
    [{ destination: 'local' }, ['b', 'a.cat']],
    [{ destination: 'local/blog' }, ['a.cat']],
    [{ among: ['local/blogger', 's3/x'] }, ['b']],
    [{ among: [] }, []],
    [{ text: 'cat' }, ['b', 'a.cat']],
    [{ text: 'CAT' }, ['b', 'a.cat']],
    [{ text: '100%_cat' }, ['b']],
    [{ text: '%' }, ['b']],
    [{ text: '1_0' }, []],
    [{ text: '\\' }, []],
    [{ text: 'Ä' }, []],
    [{ name: 'cat' }, ['b', 'a.cat']],
    [{ name: 'x' }, []],
    [{ folder: 'x' }, ['b']],
    [{ key: 'dog.png' }, ['c']],
    [{ objects: ['/srv/blog/dog.png', '/srv/blog/x'] }, ['c']],
    [{ link: 'x.example/dir/b' }, ['b']],
    [{ urls: [URL_OF_B] }, ['b']],
    [{ by: 'proxy: alice' }, ['b']],
    [{ caller: 'ALICE' }, ['b']],
    [{ jobId: jobAt(20, 'c') }, ['c']],
    [{ requestId: 'request-b' }, ['b']],
    [{ sha256: 'b'.repeat(64) }, ['c']],
    [{ sha256: 'bb' }, ['c']],
    [{ since: 20 }, ['b', 'c']],
    [{ before: 20 }, ['a.cat']],
    [{ after: { jobId: jobAt(30, 'b'), index: 0 } }, ['c', 'a.cat']],
    [{ isRemoved: true }, ['c']],
    [{ isRemoved: false }, ['b', 'a.cat']],
  ])('is found by %j', async ([filter, expected], { database }) => {
    await add(
      database,
      { jobId: jobAt(10, 'a'), origin: 'a.cat', key: 'y/k.png' },
      {
        ...{ jobId: jobAt(30, 'b'), origin: 'b', destination: 'local/blogger', caller: 'proxy: alice' },
        ...{ requestId: 'request-b', key: 'x/100%_cat.png', url: URL_OF_B },
      },
      {
        ...{ jobId: jobAt(20, 'c'), origin: 'c', destination: 's3/blog', key: 'dog.png', removedAt: 40 },
        ...{ sha256: 'b'.repeat(64) },
      },
    )
    expect(await find(database, filter)).toEqual(expected)
    const { limit = 99, ...rest } = filter
    expect(await database.read(db => countFiles(db, rest))).toBe(limit === 2 ? 3 : expected.length)
  })

  it('keeps what is described of a file', async ({ database }) => {
    const entry = {
      ...{
        index: 0,
        origin: '中文 😀.png',
        url: URL_OF_B,
        key: 'b.png',
        size: 5e9,
        contentType: 'image/png',
      },
      ...{ sha256: 'a'.repeat(64), deleteUrl: 'http://x.example/delete', expiresAt: 99, location: '/srv/' },
      ...{
        time: 10,
        jobId: jobAt(10, 'x'),
        destination: 'local/b',
        caller: 'ci',
        requestId: 'r',
        removedAt: 50,
      },
    }
    await add(database, entry)
    expect(await database.read(db => findFiles(db, { limit: 9 }))).toEqual([entry])
  })

  it('shows when an object expires now: with the latest of its uploads', async ({ database }) => {
    const file = { key: 'a.png' }
    await add(database, { ...file, expiresAt: 50 }, { ...file, expiresAt: 70 }, { ...file, expiresAt: 60 })
    const entries = await database.read(db => findFiles(db, { limit: 9 }))
    expect(entries.map(({ expiresAt }) => expiresAt)).toEqual([70, 70, 70])
  })

  it.for<[what: string, options: Parameters<typeof pruneFiles>[2], left: string[]]>([
    ['what is old', {}, ['due', 'young']],
    ['at some destinations', { among: ['s3/x'] }, ['due', 'link', 'old', 'removed', 'young']],
    ['except at some', { but: ['s3/x'] }, ['due', 's3', 'young']],
    ['except own links', { keptLinks: '/files/' }, ['due', 'link', 'young']],
  ])('forgets %s, but nothing that has yet to be removed', async ([, options, left], { database }) => {
    await add(
      database,
      { origin: 'old', key: 'old', time: 1 },
      { origin: 'due', key: 'due', time: 1, expiresAt: 50 },
      { origin: 'removed', key: 'removed', time: 1, expiresAt: 50, removedAt: 60 },
      { origin: 'link', key: 'link', time: 1, url: 'http://x.example/files/a' },
      { origin: 's3', key: 's3', time: 1, destination: 's3/x' },
      { origin: 'young', key: 'young', time: 20 },
    )
    const gone = await pruneFiles(database, 20, options)
    expect((await find(database)).sort()).toEqual(left)
    expect(gone).toBe(6 - left.length)
    const objects = await database.read(db =>
      db.all<{ key: string }>(sql`select key from objects order by key`),
    )
    // The row of an object that expires is the sweeper's.
    expect(objects.map(({ key }) => key)).toEqual([...new Set([...left, 'removed'])].sort())
  })

  it('forgets what is old a part at a time, and all of it', async ({ database }) => {
    // The IDs of half of them begin with the first millisecond.
    const rows = 'with recursive n(i) as (select 1 union all select i + 1 from n where i < 1200)'
    const columns =
      'upload, position, destination, location, object, key, url, size, content_type, sha256, origin, caller, request_id'
    const values = `case when i % 2 = 0 then '${jobAt(0, '')}' else '${jobAt(1, '')}' end || i, 0, 'local/a', '/', '/' || i, i || '', 'u', 1, 't', 's', 'o', 'c', 'r'`
    await database.tx(db =>
      db.run({ text: `insert into files (${columns}) ${rows} select ${values} from n`, values: [] }),
    )
    expect(await pruneFiles(database, 1, {})).toBe(600)
    expect(await database.read(db => countFiles(db, {}))).toBe(600)
  })

  it('forgets old uploads that are over, with their idempotency keys, and no others', async ({
    database,
  }) => {
    const old = Date.now() - REQUEST_KEPT_MS - 1000
    const add = async (key: string, state?: 'done' | 'stored', createdAt = old) => {
      const upload = newUpload({ createdAt })
      const claimant = { id: upload.id, claimed: new Set<string>() }
      await begin(database, upload, claimant, [], { request: { key, fingerprint: 'f', seed: 's' } })
      if (state) await finish(database, upload, { state, files: [], failed: [] })
      return upload.id
    }
    const ids = [await add('done', 'done'), await add('open'), await add('stored', 'stored')]
    ids.push(await add('young', 'done', Date.now()))
    await database.tx(db => db.run(sql`update uploads set ended_at = created_at where ended_at is not null`))
    await database.tx(db =>
      db.run(
        sql`insert into quotas values ('ci', 1000, ${old - 1000}, 1, 1), ('ci', 1000, ${Date.now()}, 1, 1)`,
      ),
    )
    await database.tx(db => db.run(sql`insert into owners (id, seen_at) values ('long gone', 1)`))
    expect(await pruneOld(database, Date.now())).toBe(false)
    const left = await Promise.all(ids.map(id => database.read(db => readUpload(db, id))))
    expect(left.map(upload => upload !== undefined)).toEqual([false, true, true, true])
    const count = (table: string) =>
      database.read(db => db.all({ text: `select 1 from ${table}`, values: [] }))
    expect(
      [await count('requests'), await count('quotas'), await count('owners')].map(({ length }) => length),
    ).toEqual([1, 1, 0])
  })
})
