import pg from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import { createPostgresStore } from '../../src/store/postgres.ts'
import { eventually } from '../helpers/eventually.ts'
import {
  closed,
  FINISHED,
  newDatabase,
  newEntry,
  newJob,
  postgresOfFile,
  reserve,
} from '../helpers/stores.ts'

const postgres = postgresOfFile()

it.for([
  ['commit', false],
  ['rollback', true],
] as const)(
  'waits with a takeover for the %s of what a killed process was writing to PostgreSQL',
  async ([end, isTaken], context) => {
    const url = await newDatabase(await postgres(context))
    const store = closed(createPostgresStore(url))
    const job = newJob({ owner: 'gone' })
    await reserve(store, 'k', { owner: 'gone' })
    await store.begin(job, 'k')
    const killed = new pg.Client(url)
    await killed.connect()
    onTestFinished(() => killed.end())
    await killed.query('begin')
    await killed.query(`update jobs set state = 'finished' where id = $1`, [job.id])
    let taken: boolean | undefined
    const taking = store.takeOver('k', 'gone', 'me', 'print').then(result => {
      taken = result
    })
    await eventually(async () => {
      expect((await killed.query('select 1 from pg_locks where not granted')).rowCount).toBe(1)
    })
    expect(taken).toBeUndefined()
    await killed.query(end)
    await taking
    expect(taken).toBe(isTaken)
  },
)

it('refuses a wrong password of PostgreSQL without showing it', async context => {
  const server = await postgres(context)
  const store = closed(createPostgresStore(server.url.replace('pgpass', 'wrong-secret')))
  const failure = await store.begin(newJob()).catch(error => error as Error)
  expect(failure).toBeInstanceOf(Error)
  expect(String(failure)).not.toContain('wrong-secret')
})

/** A store with so many entries that its indexes are created beside uploads, and another client of its database. */
async function withManyEntries(url: string) {
  const store = closed(createPostgresStore(url))
  await store.history({ limit: 1 })
  const client = new pg.Client(url)
  await client.connect()
  onTestFinished(() => client.end())
  await client.query(`insert into history (job_id, position, time, origin, url, key, size, content_type, sha256,
    destination, caller, request_id) select 'j' || i, 0, i, 'a', 'u', 'k' || i, 1, 't', 's', 'local/a', 'ci', 'r'
    from generate_series(1, 3000) as i`)
  return { store, client }
}

const isValid = async (client: pg.Client) =>
  (await client.query(`select indisvalid from pg_index where indexrelid = to_regclass('history_of')`)).rows

it('creates an index of a large history in PostgreSQL while other servers upload', async context => {
  const url = await newDatabase(await postgres(context))
  const { store, client } = await withManyEntries(url)
  await client.query('begin')
  await client.query(`update history set origin = 'b' where job_id = 'j1'`)
  const found = store.history({ by: 'ci', isRemoved: false, limit: 5 })
  const watch = new pg.Client(url)
  await watch.connect()
  onTestFinished(() => watch.end())
  await eventually(async () => {
    expect((await watch.query('select 1 from pg_stat_progress_create_index')).rowCount).toBe(1)
  })
  // A plain `create index` would wait for the open transaction, and every upload for it.
  const uploading = closed(createPostgresStore(`${url}?query_timeout=3000`))
  const job = newJob()
  await uploading.begin(job)
  await uploading.deliver(job.id, { ...FINISHED, history: [newEntry(job)] })
  await client.query('commit')
  expect((await found).map(({ key }) => key)).toEqual(['k3000', 'k2999', 'k2998', 'k2997', 'k2996'])
  expect(await isValid(client)).toEqual([{ indisvalid: true }])
})

it('several servers create an index of a large history at the same time', async context => {
  const url = await newDatabase(await postgres(context))
  const { store, client } = await withManyEntries(url)
  const stores = [store, ...[1, 2, 3].map(() => closed(createPostgresStore(url)))]
  const found = await Promise.all(stores.map(one => one.history({ by: 'ci', isRemoved: false, limit: 1 })))
  expect(found.map(entries => entries.length)).toEqual([1, 1, 1, 1])
  expect(await isValid(client)).toEqual([{ indisvalid: true }])
})

it('replaces an invalid index that a failed attempt has left', async context => {
  const url = await newDatabase(await postgres(context))
  const { store, client } = await withManyEntries(url)
  await client.query('create unique index concurrently history_of on history (destination)').catch(() => {})
  expect(await isValid(client)).toEqual([{ indisvalid: false }])
  await store.history({ by: 'ci', isRemoved: false, limit: 1 })
  expect(await isValid(client)).toEqual([{ indisvalid: true }])
})

it('removes many old jobs from PostgreSQL', async context => {
  const url = await newDatabase(await postgres(context))
  const { store, client } = await withManyEntries(url)
  await client.query(`insert into jobs select '00000000-0000-7' || i, 'finished', 1, 1, '', 'r', 'c', 'local/a', '[]', '[]', '[]', 0,
    null, 0 from generate_series(1, 40000) as i`)
  await store.pruneJobs(2)
  expect((await client.query('select 1 from jobs')).rowCount).toBe(0)
})
