import { randomUUID } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, type TestContext } from 'vitest'
import {
  type HistoryEntry,
  type NewJob,
  NOBODY,
  type Store,
  type StoredFile,
} from '../../src/store/contract.ts'
import { createPostgresStore } from '../../src/store/postgres.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { eventually } from '../helpers/eventually.ts'
import { missing } from '../helpers/needs.ts'
import { findPostgres, type PostgresServer, startPostgres } from '../servers/postgres.ts'

let postgres: PostgresServer | undefined

beforeAll(async () => {
  if ((await findPostgres()) !== undefined) postgres = await startPostgres()
})
afterAll(() => postgres?.stop())

function needsPostgres(context: TestContext): PostgresServer {
  return postgres ?? missing(context, 'needs PostgreSQL: apt-get install postgresql')
}

interface Place {
  open(): Store
}

const engines: [string, (context: TestContext) => Promise<Place>][] = [
  [
    'sqlite',
    async () => {
      const path = join(await makeDirectory(), 'a', 'b', 'store.db')
      return { open: () => closed(createSqliteStore(path)) }
    },
  ],
  [
    'postgres',
    async context => {
      const url = await needsPostgres(context).createDatabase(`db${randomUUID().replaceAll('-', '')}`)
      return { open: () => closed(createPostgresStore(url)) }
    },
  ],
]

/** Has the store closed when the test is over. */
function closed(store: Store): Store {
  onTestFinished(() => store.close())
  return store
}

function newJob(change: Partial<NewJob> = {}): NewJob {
  return {
    id: randomUUID(),
    createdAt: 1_000_000_000_000,
    owner: 'me',
    requestId: 'r1',
    caller: 'loopback',
    destination: 'local/blog',
    origins: ['a.png', '中文 😀.png'],
    ...change,
  }
}

function newFile(change: Partial<StoredFile> = {}): StoredFile {
  return {
    index: 0,
    origin: 'a.png',
    url: 'http://x.example/a.png',
    key: '2026/11/a.png',
    size: 5_000_000_000,
    contentType: 'image/png',
    sha256: 'a'.repeat(64),
    deleteUrl: undefined,
    ...change,
  }
}

function newEntry(job: NewJob, change: Partial<HistoryEntry> = {}): HistoryEntry {
  const { id: jobId, destination, caller, requestId, createdAt: time } = job
  return { ...newFile(), time, jobId, destination, caller, requestId, ...change }
}

const FINISHED = {
  state: 'finished',
  owner: 'me',
  files: [],
  steps: ['history'],
  history: [],
  now: 5,
} as const

describe.each(engines)('the %s store', (_name, make) => {
  it('keeps a job as it was written', async context => {
    const store = (await make(context)).open()
    const job = newJob()
    await store.begin(job)
    expect(await store.job(job.id)).toEqual({
      ...job,
      state: 'uploading',
      files: [],
      steps: [],
      attempts: 0,
      problem: undefined,
    })
    expect(await store.job('other')).toBeUndefined()
  })

  it('keeps what was delivered together with its history', async context => {
    const store = (await make(context)).open()
    const job = newJob()
    await store.begin(job)
    const files = [
      newFile(),
      newFile({ index: 1, origin: '中文 😀.png', deleteUrl: 'http://x.example/delete' }),
    ]
    const history = files.map(file => newEntry(job, file))
    await store.deliver(job.id, { ...FINISHED, files, history })
    expect(await store.job(job.id)).toMatchObject({ state: 'finished', steps: ['history'] })
    expect((await store.job(job.id))?.files).toHaveLength(2)
    const found = await store.history({ limit: 10 })
    expect(found.sort((a, b) => a.index - b.index)).toEqual(history)
  })

  it('reads the files of a finished job from its history, and forgets them together', async context => {
    const store = (await make(context)).open()
    const job = newJob()
    await store.begin(job)
    const files = [newFile({ origin: 'a.png' }), newFile({ index: 1, destination: 'local/fallback' })]
    const history = files.map(({ destination = job.destination, ...file }) =>
      newEntry(job, { ...file, destination }),
    )
    await store.deliver(job.id, { ...FINISHED, files, history })
    expect((await store.job(job.id))?.files).toEqual(files)
    await store.pruneHistory(job.createdAt + 1)
    expect(await store.job(job.id)).toBeUndefined()
  })

  it('keeps what became of the mirrors of a finished job', async context => {
    const store = (await make(context)).open()
    const job = newJob()
    await store.begin(job)
    const files = [newFile({ mirrors: [{ destination: 'local/mirror', error: 'it is down' }] })]
    await store.deliver(job.id, { ...FINISHED, files, history: [newEntry(job)] })
    expect((await store.job(job.id))?.files).toEqual(JSON.parse(JSON.stringify(files)))
  })

  it('takes a delivery again without doubling its history', async context => {
    const store = (await make(context)).open()
    const job = newJob()
    await store.begin(job)
    await store.begin(job)
    const delivery = { ...FINISHED, history: [newEntry(job)] }
    await store.deliver(job.id, delivery)
    await store.deliver(job.id, delivery)
    expect(await store.history({ limit: 10 })).toHaveLength(1)
  })

  it('survives being closed and opened', async context => {
    const place = await make(context)
    const first = place.open()
    const job = newJob()
    await first.begin(job)
    await first.close()
    expect(await place.open().job(job.id)).toMatchObject({ id: job.id, origins: job.origins })
  })

  it('gives a delivered job to one of many who claim it at once', async context => {
    const place = await make(context)
    const stores = Array.from({ length: 4 }, () => place.open())
    const job = newJob()
    await stores[0]!.begin(job)
    await stores[0]!.deliver(job.id, { ...FINISHED, state: 'delivered' })
    const claims = await Promise.all(
      stores.flatMap((store, n) => [1, 2, 3].map(m => store.claim(job.id, `${n}.${m}`))),
    )
    const [claimed] = claims.filter(claim => claim !== undefined)
    expect(claims.filter(claim => claim !== undefined)).toHaveLength(1)
    expect(await stores[1]!.job(job.id)).toEqual(claimed)
    expect(claimed).toMatchObject({ id: job.id, state: 'finalizing', steps: ['history'] })
  })

  it('takes a job away only from the one that is named', async context => {
    const store = (await make(context)).open()
    const job = newJob()
    await store.begin(job)
    await store.deliver(job.id, { ...FINISHED, state: 'finalizing' })
    expect(await store.claim(job.id, 'second')).toBeUndefined()
    expect(await store.claim(job.id, 'second', 'third')).toBeUndefined()
    expect(await store.claim(job.id, 'second', 'me')).toMatchObject({ owner: 'second' })
    expect(await store.claim(job.id, 'second')).toMatchObject({ owner: 'second' })
  })

  it('remembers finished steps, postponed attempts and the end', async context => {
    const store = (await make(context)).open()
    const job = newJob()
    await store.begin(job)
    await store.deliver(job.id, { ...FINISHED, state: 'delivered' })
    await store.claim(job.id, 'me')
    const steps = ['history', 'hook:a']
    const progress = { steps, attempts: 1, now: 1500 }
    expect(await store.advance(job.id, 'me', { ...progress, state: 'finalizing' })).toBe(true)
    expect(await store.job(job.id)).toMatchObject({ state: 'finalizing', steps })
    const postponed = { ...progress, state: 'delivered', problem: 'b failed', pauseMs: 500 } as const
    expect(await store.advance(job.id, 'me', postponed)).toBe(true)
    const expected = { state: 'delivered', steps, attempts: 1, problem: 'b failed' }
    expect(await store.job(job.id)).toMatchObject(expected)
    expect(await store.due(1999, 10, 5000)).toHaveLength(0)
    expect(await store.due(2000, 10, 5000)).toHaveLength(1)
    expect(await store.pending()).toHaveLength(1)
    expect(await store.claim(job.id, 'me')).toMatchObject({ steps, attempts: 1 })
    expect(await store.advance(job.id, 'me', { ...progress, state: 'finished' })).toBe(true)
    expect(await store.job(job.id)).toMatchObject({ state: 'finished', problem: undefined })
    expect(await store.pending()).toHaveLength(0)
  })

  it('takes no word from a process whose job somebody else has taken over', async context => {
    const store = (await make(context)).open()
    const job = newJob()
    await store.begin(job)
    await store.deliver(job.id, { ...FINISHED, state: 'finalizing' })
    await store.claim(job.id, 'other', 'me')
    const progress = { state: 'delivered', steps: ['history'], attempts: 1, now: 1 } as const
    expect(await store.advance(job.id, 'me', progress)).toBe(false)
    await store.deliver(job.id, { ...FINISHED, state: 'delivered' })
    expect(await store.job(job.id)).toMatchObject({ state: 'finalizing', owner: 'other' })
    await store.advance(job.id, 'other', { ...progress, state: 'finished' })
    await store.deliver(job.id, { ...FINISHED, state: 'delivered', history: [newEntry(job)] })
    expect(await store.job(job.id)).toMatchObject({ state: 'finished' })
    expect(await store.history({ limit: 10 })).toHaveLength(1)
  })

  it('believes a delivery of a process that was thought gone', async context => {
    const store = (await make(context)).open()
    const job = newJob()
    await store.begin(job)
    await store.abandon('me', () => {})
    expect(await store.job(job.id)).toMatchObject({ state: 'interrupted' })
    await store.deliver(job.id, { ...FINISHED, files: [newFile()] })
    expect(await store.job(job.id)).toMatchObject({ state: 'finished', files: [{ index: 0 }] })
  })

  it('cleans up after a process that is gone, and leaves the others alone', async context => {
    const store = (await make(context)).open()
    const [uploading, finalizing, foreign] = [
      newJob({ owner: 'gone' }),
      newJob({ owner: 'gone' }),
      newJob({ owner: 'alive' }),
    ]
    for (const job of [uploading, finalizing, foreign]) await store.begin(job)
    await store.deliver(finalizing.id, { ...FINISHED, state: 'finalizing' })
    await store.beat('alive', 77)
    expect([...(await store.owners())].sort()).toEqual([
      ['alive', 77],
      ['gone', uploading.createdAt],
    ])
    const reported: string[] = []
    await store.abandon('gone', job => void reported.push(job.id))
    expect(reported).toEqual([uploading.id])
    expect(await store.job(uploading.id)).toMatchObject({ state: 'interrupted' })
    expect(await store.job(finalizing.id)).toMatchObject({ state: 'delivered' })
    expect(await store.job(foreign.id)).toMatchObject({ state: 'uploading' })
    await store.leave('alive')
    expect((await store.owners()).get('alive')).toBe(foreign.createdAt)
  })

  it('begins a job while a transaction is under way, and neither becomes a part of the other', async context => {
    const place = await make(context)
    const [other, store] = [place.open(), place.open()]
    const [interrupted, job, foreign] = [newJob({ owner: 'gone' }), newJob(), newJob()]
    await other.begin(interrupted)
    let begun = Promise.resolve()
    await store.abandon('gone', () => {
      begun = store.begin(job)
    })
    await begun
    expect(await store.job(interrupted.id)).toMatchObject({ state: 'interrupted' })
    expect(await store.job(job.id)).toMatchObject({ state: 'uploading' })
    const failing = store.abandon('me', () => {
      begun = store.begin(foreign)
      throw new Error('of no use')
    })
    await expect(failing).rejects.toThrow('of no use')
    await begun
    expect(await store.job(job.id)).toMatchObject({ state: 'uploading' })
    expect(await store.job(foreign.id)).toMatchObject({ state: 'uploading' })
  })

  it('finds history by destination, text, hash and time, newest first', async context => {
    const store = (await make(context)).open()
    const job = newJob()
    const entries = [
      newEntry(job, { index: 0, time: 10, destination: 'local/blog', origin: 'cat.png' }),
      newEntry(job, { index: 1, time: 30, destination: 'local/blogger', key: 'x/100%_cat.png', origin: 'b' }),
      newEntry(job, {
        index: 2,
        time: 20,
        destination: 's3/blog',
        sha256: 'b'.repeat(64),
        origin: 'dog.png',
      }),
    ]
    await store.deliver(job.id, { ...FINISHED, history: entries })
    const find = async (filter: object) =>
      (await store.history({ limit: 10, ...filter })).map(entry => entry.index)
    expect(await find({})).toEqual([1, 2, 0])
    expect(await find({ limit: 2 })).toEqual([1, 2])
    expect(await find({ destination: 'local' })).toEqual([1, 0])
    expect(await find({ destination: 'local/blog' })).toEqual([0])
    expect(await find({ text: 'cat' })).toEqual([1, 0])
    expect(await find({ text: '100%_cat' })).toEqual([1])
    expect(await find({ text: 'CAT' })).toEqual([1, 0])
    expect(await find({ text: '%' })).toEqual([1])
    expect(await find({ text: '1_0' })).toEqual([])
    expect(await find({ text: '\\' })).toEqual([])
    expect(await find({ text: 'Ä' })).toEqual([])
    expect(await find({ sha256: 'b'.repeat(64) })).toEqual([2])
    expect(await find({ since: 20 })).toEqual([1, 2])
    const same = { sha256: 'a'.repeat(64), isRemoved: false }
    expect(await find({ ...same, among: ['local/blog'] })).toEqual([0])
    expect(await find({ ...same, among: ['s3/blog'] })).toEqual([])
    expect(await store.pruneHistory(20, undefined, [], new URL(entries[0]!.url).pathname)).toBe(0)
    expect(await store.pruneHistory(20)).toBe(1)
    expect(await find({})).toEqual([1, 2])
  })

  it('gives an idempotency key to one of many, and its answer to all', async context => {
    const place = await make(context)
    const stores = [place.open(), place.open()]
    const taken = await Promise.all([0, 1, 0, 1].map(n => stores[n]!.reserve('k', 'print', `p${n}`, 9)))
    expect(taken.filter(Boolean)).toHaveLength(1)
    const { owner } = (await stores[0]!.repetition('k'))!
    expect(await stores[0]!.takeOver('k', 'someone', 'p9', 'print')).toBe(false)
    expect(await stores[0]!.takeOver('k', owner, 'p9', 'print')).toBe(true)
    await stores[0]!.answer('k', 'p9', { status: 200, body: '{"a":1}', jobId: 'j' })
    await stores[1]!.answer('k', owner, { status: 200, body: '{"b":2}', jobId: 'late' })
    expect(await stores[1]!.repetition('k')).toEqual({
      fingerprint: 'print',
      owner: 'p9',
      createdAt: 9,
      jobId: 'j',
      claims: [],
      answer: { status: 200, body: '{"a":1}', jobId: 'j' },
    })
    await stores[1]!.release('k', 'p9')
    expect(await stores[1]!.repetition('k')).toBeDefined()
    expect(await stores[1]!.takeOver('k', 'p9', 'p10', 'print')).toBe(false)
    await stores[1]!.pruneRepetitions(10)
    expect(await stores[1]!.repetition('k')).toBeUndefined()
  })

  it('gives an idempotency key without an answer back for the one who has it', async context => {
    const store = (await make(context)).open()
    await store.reserve('k', 'print', 'me', 9)
    await store.release('k', 'other')
    expect(await store.repetition('k')).toBeDefined()
    await store.release('k', 'me')
    expect(await store.repetition('k')).toBeUndefined()
  })

  it('keeps what the request of a key may have stored for the next attempt, and not for another request', async context => {
    const store = (await make(context)).open()
    const claims = [{ destination: 'local/a', key: 'a.txt', sha256: '0', fileName: 'a.txt', time: 9 }]
    await store.reserve('k', 'print', 'me', 9)
    await store.begin(newJob({ owner: 'me' }), 'k')
    await store.noteClaims('k', 'me', claims)
    await store.release('k', 'other')
    expect(await store.repetition('k')).toMatchObject({ owner: 'me' })
    await store.release('k', 'me')
    const freed = { fingerprint: 'print', owner: NOBODY, createdAt: 9, jobId: undefined, answer: undefined }
    expect(await store.repetition('k')).toEqual({ ...freed, claims })
    expect(await store.takeOver('k', NOBODY, 'you', 'print')).toBe(true)
    expect(await store.repetition('k')).toEqual({ ...freed, owner: 'you', claims })
    await store.release('k', 'you')
    expect(await store.takeOver('k', NOBODY, 'you', 'another')).toBe(true)
    expect(await store.repetition('k')).toEqual({
      ...freed,
      owner: 'you',
      fingerprint: 'another',
      claims: [],
    })
  })

  it('leads from an idempotency key to the job that was begun for it', async context => {
    const store = (await make(context)).open()
    const job = newJob()
    await store.reserve('k', 'print', 'me', 9)
    expect(await store.repetition('k')).toMatchObject({ jobId: undefined })
    await store.begin(job, 'k')
    expect(await store.repetition('k')).toMatchObject({ jobId: job.id, answer: undefined })
    await store.begin(newJob({ owner: 'late' }), 'k')
    expect(await store.repetition('k')).toMatchObject({ jobId: job.id })
  })

  it('does not give away the key of a request for which everything was stored', async context => {
    const store = (await make(context)).open()
    for (const state of ['delivered', 'finalizing', 'finished', 'failed'] as const) {
      const job = newJob({ owner: 'gone' })
      await store.reserve(state, 'print', 'gone', 9)
      await store.begin(job, state)
      await store.deliver(job.id, { ...FINISHED, state })
      expect(await store.takeOver(state, 'gone', 'me', 'print')).toBe(state === 'failed')
    }
    const begun = newJob({ owner: 'gone' })
    await store.reserve('begun', 'print', 'gone', 9)
    await store.begin(begun, 'begun')
    expect(await store.takeOver('begun', 'gone', 'me', 'print')).toBe(true)
    expect(await store.job(begun.id)).toMatchObject({ state: 'uploading', owner: begun.owner })
  })

  it('gives away the key of a request whose job is forgotten with its history', async context => {
    const store = (await make(context)).open()
    const job = newJob({ owner: 'gone' })
    await store.reserve('k', 'print', 'gone', 9)
    await store.begin(job, 'k')
    await store.deliver(job.id, { ...FINISHED, files: [newFile()], history: [newEntry(job)] })
    expect(await store.takeOver('k', 'gone', 'me', 'print')).toBe(false)
    await store.pruneHistory(Number.MAX_SAFE_INTEGER)
    expect(await store.takeOver('k', 'gone', 'me', 'print')).toBe(true)
  })

  it('forgets old jobs that are over, and no others', async context => {
    const store = (await make(context)).open()
    const [old, open, young] = [
      newJob({ createdAt: 1 }),
      newJob({ createdAt: 1 }),
      newJob({ createdAt: 100 }),
    ]
    for (const job of [old, open, young]) await store.begin(job)
    await store.deliver(old.id, FINISHED)
    await store.deliver(open.id, { ...FINISHED, state: 'delivered' })
    await store.deliver(young.id, { ...FINISHED, now: 100 })
    await store.pruneJobs(50)
    expect(await store.job(old.id)).toBeUndefined()
    expect(await store.job(open.id)).toBeDefined()
    expect(await store.job(young.id)).toBeDefined()
  })

  it('forgets what is old a part at a time, and all of it', async context => {
    const store = (await make(context)).open()
    const jobs = Array.from({ length: 1200 }, (_, n) => newJob({ id: `job-${n}`, createdAt: 1 }))
    await Promise.all(jobs.map(job => store.begin(job)))
    await Promise.all(
      jobs.map((job, n) => {
        const history = [newEntry(job, { time: n % 2 })]
        return store.deliver(job.id, { ...FINISHED, history, now: n % 2 })
      }),
    )
    for (const { id } of jobs.slice(0, 300)) await store.reserve(`k${id}`, 'f', 'me', 0)
    await Promise.all([store.pruneJobs(1), store.pruneRepetitions(1)])
    expect(await store.pruneHistory(1)).toBe(600)
    const left = await store.history({ limit: 2000 })
    expect(left.map(({ time }) => time)).toEqual(Array(600).fill(1))
    const known = await Promise.all(jobs.map(({ id }) => store.job(id)))
    expect(known.map(job => job !== undefined)).toEqual(jobs.map((_, n) => n % 2 === 1))
    const keys = await Promise.all(jobs.slice(0, 300).map(({ id }) => store.repetition(`k${id}`)))
    expect(keys.every(key => key === undefined)).toBe(true)
  })

  it('can be opened by several at the same time for the first time', async context => {
    const place = await make(context)
    const stores = Array.from({ length: 6 }, () => place.open())
    await Promise.all(stores.map(store => store.begin(newJob())))
    expect((await stores[0]!.owners()).size).toBe(1)
  })
})

it.for([
  ['commit', false],
  ['rollback', true],
] as const)(
  'waits with a takeover for the %s of what a killed process was writing to PostgreSQL',
  async ([end, isTaken], context) => {
    const url = await needsPostgres(context).createDatabase(`db${randomUUID().replaceAll('-', '')}`)
    const store = closed(createPostgresStore(url))
    const job = newJob({ owner: 'gone' })
    await store.reserve('k', 'print', 'gone', 9)
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
  const { default: Libsql } = await import('libsql')
  const database = new Libsql(path)
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
    drop table expiries;
    drop table key_holds;
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
  const migrated = new Libsql(path)
  const tables = migrated.prepare(`select name from sqlite_master where sql like '% without rowid'`).all()
  expect(tables).toEqual([{ name: 'jobs' }])
  migrated.close()
})

it('the first pruning of very many rows in SQLite does not keep everything else waiting', async () => {
  const path = join(await makeDirectory(), 'store.db')
  const store = closed(createSqliteStore(path))
  await store.pruneJobs(0)
  const { default: Libsql } = await import('libsql')
  const database = new Libsql(path)
  const rows = 'with recursive n(i) as (select 1 union all select i + 1 from n where i < 50000)'
  const id = "printf('%012x', i)"
  database.exec(`
    ${rows} insert into jobs select ${id}, 'finished', i, i, 'o', 'r', 'c', 'd', '[]', '', '[]', 0, null, 0 from n;
    ${rows} insert into history select ${id}, 0, i, 'a', 'u', 'k', 1, 't', 's', null, 'd', 'c', 'r', null, null from n;
    ${rows} insert into repetitions select ${id}, 'f', 'o', i, null, 200, '{}' from n`)
  const count = (table: string) =>
    (database.prepare(`select count(*) as n from ${table}`).get() as { n: number }).n
  const prunings = [
    ['jobs', store.pruneJobs],
    ['history', store.pruneHistory],
    ['repetitions', store.pruneRepetitions],
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
  const { default: Libsql } = await import('libsql')
  const other = new Libsql(path)
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

it('refuses while PostgreSQL is down, and works again once it is up', async context => {
  const server = needsPostgres(context)
  const store = closed(createPostgresStore(await server.createDatabase('updown')))
  await store.begin(newJob())
  await server.halt()
  await expect(store.begin(newJob())).rejects.toMatchObject({ code: 'store_unavailable', retryAfterS: 5 })
  await server.resume()
  await expect
    .poll(() => store.begin(newJob()).then(() => 'works', String), { timeout: 10_000 })
    .toBe('works')
})

it('refuses a wrong password of PostgreSQL without showing it', async context => {
  const server = needsPostgres(context)
  const store = closed(createPostgresStore(server.url.replace('pgpass', 'wrong-secret')))
  const failure = await store.begin(newJob()).catch(error => error as Error)
  expect(failure).toBeInstanceOf(Error)
  expect(String(failure)).not.toContain('wrong-secret')
})
