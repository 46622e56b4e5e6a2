import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, onTestFinished, type TestContext } from 'vitest'
import type { HistoryEntry, NewJob, Reservation, Store, StoredFile } from '../../src/store/contract.ts'
import { createPostgresStore } from '../../src/store/postgres.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { findPostgres, type PostgresServer, startPostgres } from '../servers/postgres.ts'
import { makeDirectory } from './directory.ts'
import { missing } from './needs.ts'

/** An empty store, as many as a test opens of it. They are closed when the test is over. */
export interface StorePlace {
  open(): Store
}

/** Has the store closed when the test is over. */
export function closed(store: Store): Store {
  onTestFinished(() => store.close())
  return store
}

/** To be called once in a file. @returns gives its PostgreSQL, which the first test starts that needs it */
export function postgresOfFile(): (context: TestContext) => Promise<PostgresServer> {
  let server: Promise<PostgresServer> | undefined
  afterAll(async () => (await server)?.stop())
  return async context => {
    if ((await findPostgres()) === undefined)
      return missing(context, 'needs PostgreSQL: apt-get install postgresql')
    server ??= startPostgres()
    return server
  }
}

export const newDatabase = (server: PostgresServer) =>
  server.createDatabase(`db${randomUUID().replaceAll('-', '')}`)

/**
 * The engines that keep the contract of a store, each with what makes an empty one. To be called once in a file: its tests
 * share one database of PostgreSQL, which is emptied in between: making one takes longer.
 */
export function storeEngines(): [string, (context: TestContext) => Promise<StorePlace>][] {
  const start = postgresOfFile()
  let url: string | undefined
  return [
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
        const server = await start(context)
        if (url === undefined) url = await newDatabase(server)
        else await empty(url)
        const place = url
        return { open: () => closed(createPostgresStore(place)) }
      },
    ],
  ]
}

async function empty(url: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query('drop schema public cascade; create schema public')
  await client.end()
}

/** Like those of uploads, the ID begins with the time. */
export function newJob(change: Partial<NewJob> = {}): NewJob {
  const { createdAt = 1_000_000_000_000 } = change
  const time = createdAt.toString(16).padStart(12, '0')
  return {
    id: `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`,
    createdAt,
    owner: 'me',
    requestId: 'r1',
    caller: 'loopback',
    destination: 'local/blog',
    origins: ['a.png', '中文 😀.png'],
    ...change,
  }
}

export function newFile(change: Partial<StoredFile> = {}): StoredFile {
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

export function newEntry(job: NewJob, change: Partial<HistoryEntry> = {}): HistoryEntry {
  const { id: jobId, destination, caller, requestId, createdAt: time } = job
  return { ...newFile(), time, jobId, destination, caller, requestId, ...change }
}

/** A delivery of a job of `newJob`. */
export const FINISHED = {
  state: 'finished',
  owner: 'me',
  files: [],
  steps: ['history'],
  history: [],
  now: 5,
} as const

/** Reserves an idempotency key with a new job. @returns the ID of the job */
export async function reserve(store: Store, key: string, given: Partial<Reservation> = {}): Promise<string> {
  const reservation = { fingerprint: 'print', owner: 'me', seed: 's', createdAt: 9, ...given }
  const job = newJob({ owner: reservation.owner })
  await store.begin(job, key, reservation)
  return job.id
}
