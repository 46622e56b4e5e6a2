import { readFile, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { openSqlite } from '../helpers/sqlite.ts'
import { closed, FINISHED, newEntry, newFile, newJob } from '../helpers/stores.ts'

it('writes few pages of SQLite for an upload', async () => {
  const path = join(await makeDirectory(), 'store.db')
  const store = closed(createSqliteStore(path))
  await store.beat('me', 1)
  const before = (await stat(`${path}-wal`)).size
  const uploads = 20
  for (let n = 0; n < uploads; n++) {
    const job = newJob()
    await store.begin(job)
    await store.deliver(job.id, { ...FINISHED, files: [newFile()], history: [newEntry(job)] })
  }
  const bytes = (await stat(`${path}-wal`)).size - before
  // Two at the beginning, the row and an index; five at the end; now and then one is full.
  expect(bytes / uploads / (4096 + 24)).toBeLessThan(8.4)
})

it('brings a SQLite store of the first version up to date', async () => {
  const path = join(await makeDirectory(), 'store.db')
  const [interrupted, done] = [newJob(), newJob()]
  const last = createSqliteStore(path)
  for (const job of [interrupted, done]) await last.begin(job)
  const delivery = { ...FINISHED, files: [newFile()], history: [newEntry(done)] }
  await last.deliver(done.id, delivery)
  await last.close()
  const database = openSqlite(path)
  database.exec(`
    create table old_jobs as select * from jobs;
    drop table jobs;
    alter table old_jobs rename to jobs;
    create unique index jobs_id on jobs (id);
    create index jobs_open on jobs (state, owner) where state in ('uploading', 'delivered', 'finalizing');
    create index history_bytes on history (sha256, destination);
    update jobs set state = 'interrupted' where id = '${interrupted.id}';
    update jobs set files = '${JSON.stringify(delivery.files)}' where id = '${done.id}';
    alter table history drop column expires_at;
    alter table history drop column removed_at;
    alter table history drop column place;
    alter table repetitions drop column seed;
    drop table expiries;
    drop table key_holds;
    drop table quotas;
    update schema_version set version = 1`)
  database.close()

  const [store, another] = [closed(createSqliteStore(path)), closed(createSqliteStore(path))]
  const files = await Promise.all([store, another].map(async one => (await one.job(done.id))?.files))
  expect(files).toEqual([delivery.files, delivery.files])
  const same = { among: ['local/blog'], sha256: 'a'.repeat(64), isRemoved: false, limit: 9 }
  expect(await store.history(same)).toMatchObject([{ jobId: done.id }])
  expect((await store.owners()).size).toBe(0)
  expect(await store.job(interrupted.id)).toMatchObject({
    state: 'interrupted',
    origins: interrupted.origins,
  })
  await store.pruneJobs(interrupted.createdAt + 1)
  expect(await store.job(interrupted.id)).toBeUndefined()
  const migrated = openSqlite(path)
  const tables = migrated.prepare(`select name from sqlite_master where sql like '% without rowid'`).all()
  expect(tables).toEqual([{ name: 'jobs' }])
  migrated.close()
})

it('the first pruning of very many rows in SQLite does not keep everything else waiting', async () => {
  const path = join(await makeDirectory(), 'store.db')
  const store = closed(createSqliteStore(path))
  await store.pruneJobs(0)
  const database = openSqlite(path)
  const rows = 'with recursive n(i) as (select 1 union all select i + 1 from n where i < 50000)'
  const id = "substr(printf('%012x', i), 1, 8) || '-' || substr(printf('%012x', i), 9)"
  database.exec(`
    ${rows} insert into jobs select ${id}, 'finished', i, i, 'o', 'r', 'c', 'd', '[]', '', '[]', 0, null, 0 from n;
    ${rows} insert into history select ${id}, 0, i, 'a', 'u', 'k', 1, 't', 's', null, 'd', 'c', 'r', null, null, null from n;
    ${rows} insert into repetitions select ${id}, 'f', 'o', i, null, 200, '{}', 's' from n`)
  const count = (table: string) =>
    (database.prepare(`select count(*) as n from ${table}`).get() as { n: number }).n
  const prunings = [
    ['jobs', store.pruneJobs],
    ['history', store.pruneHistory],
    ['repetitions', store.pruneIdempotencyRecords],
  ] as const
  for (const [table, prune] of prunings) {
    let isOver = false
    let turns = 0
    const pruning = prune(40_000).finally(() => {
      isOver = true
    })
    while (!isOver) {
      await new Promise(resolve => setTimeout(resolve, 1))
      turns++
    }
    await pruning
    expect([table, count(table)]).toEqual([table, 10_001])
    // No part is larger than a thousand rows.
    expect(turns).toBeGreaterThanOrEqual(50)
  }
  database.close()
})

it('a damaged page of the history is named, and is not a bug in the server', async () => {
  const directory = await makeDirectory()
  const [made, path] = ['made.db', 'store.db'].map(name => join(directory, name)) as [string, string]
  const store = createSqliteStore(made)
  await store.deliver('job', { ...FINISHED, history: [newEntry(newJob())], now: 1 })
  await store.close()
  const database = openSqlite(made)
  const { page } = database.prepare("select rootpage as page from sqlite_schema where name = 'history'").get()
  database.close()
  const bytes = await readFile(made)
  await writeFile(path, bytes.fill(0xff, (page - 1) * 4096, page * 4096))
  const damaged = closed(createSqliteStore(path))
  await expect(damaged.history({ limit: 1 })).rejects.toMatchObject({
    code: 'store_unavailable',
    message: expect.stringContaining('is damaged or not an SQLite database (SQLITE_CORRUPT)'),
  })
})

it('keeps the SQLite file from other users', async () => {
  const path = join(await makeDirectory(), 'new', 'store.db')
  const store = closed(createSqliteStore(path))
  await store.begin(newJob())
  const modeOf = async (file: string) => (await stat(file)).mode & 0o777
  expect(await modeOf(dirname(path))).toBe(0o700)
  for (const file of [path, `${path}-wal`, `${path}-shm`]) expect(await modeOf(file)).toBe(0o600)
})

it('waits for a SQLite file that another program has locked, and works again once it is free', async () => {
  const path = join(await makeDirectory(), 'store.db')
  const store = closed(createSqliteStore(path))
  await store.begin(newJob())
  const other = openSqlite(path)
  other.exec('begin immediate')
  const waiting = store.begin(newJob())
  setTimeout(() => other.exec('commit'), 200)
  await waiting
  other.exec('begin immediate')
  await expect(store.begin(newJob())).rejects.toMatchObject({ code: 'store_unavailable', retryAfterS: 5 })
  other.exec('commit')
  await store.begin(newJob())
  other.close()
})
