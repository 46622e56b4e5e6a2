import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, onTestFinished, type TestContext, test } from 'vitest'
import type { Claim, Claimant, Wanted } from '../../src/store/claims.ts'
import type { HistoryEntry, StoredFile } from '../../src/store/contract.ts'
import type { Database, DatabaseUse } from '../../src/store/database.ts'
import { objectName, settleOpen, takeOpen } from '../../src/store/objects.ts'
import { createOwner, type Owner } from '../../src/store/owners.ts'
import { openPostgres } from '../../src/store/postgres.ts'
import { takeDue, takeForRemoval } from '../../src/store/removals.ts'
import { sql } from '../../src/store/sql.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import { idPrefix, newUploadId } from '../../src/store/upload-id.ts'
import type { NewUpload } from '../../src/store/upload-rows.ts'
import { type Begun, begin, claimMore, finish, type PlannedFile } from '../../src/store/uploads.ts'
import { findPostgres, type PostgresServer, startPostgres } from '../servers/postgres.ts'
import { makeDirectory } from './directory.ts'
import { missing } from './needs.ts'
import { openSqlite as openFile } from './sqlite.ts'

/** An empty database, which a test opens as often as it needs. */
export interface DatabasePlace {
  open(use?: DatabaseUse): Database
  /** Has its tables be of another version. */
  setVersion(version: number): Promise<void>
}

/** Closes the database when the test is over. */
export function closed(database: Database): Database {
  onTestFinished(() => database.close())
  return database
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

type Engine = [name: string, make: (context: TestContext) => Promise<DatabasePlace>]

/** Those that the tests of the store run with. test/system/store/on-postgres.test.ts runs them with the other one. */
const ENGINES = (process.env['DATABASE_ENGINES'] ?? 'sqlite').split(',')

/**
 * The databases, each with what makes an empty one. To be called once in a file: its tests share one database of PostgreSQL,
 * which is emptied in between: making one takes longer.
 */
export function databaseEngines(): Engine[] {
  const start = postgresOfFile()
  let url: string | undefined
  const engines: Engine[] = [
    [
      'sqlite',
      async () => {
        const path = join(await makeDirectory(), 'a', 'b', 'store.db')
        return {
          open: use => closed(openSqlite(path, { use })),
          setVersion: async version => edit(path, `pragma user_version = ${version}`),
        }
      },
    ],
    [
      'postgres',
      async context => {
        const server = await start(context)
        if (url === undefined) url = await newDatabase(server)
        else await query(url, 'drop schema public cascade; create schema public')
        const place = url
        return {
          open: use => closed(openPostgres(place, undefined, { use })),
          setVersion: version =>
            query(place, `comment on table uploads is 'upload-server, schema ${version}'`),
        }
      },
    ],
  ]
  return engines.filter(([name]) => ENGINES.includes(name))
}

async function query(url: string, text: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query(text)
  await client.end()
}

function edit(path: string, text: string): void {
  const database = openFile(path)
  database.exec(text)
  database.close()
}

/** An owner that has given a sign of life. It ends with the test. */
export async function newOwnerIn(database: Database): Promise<Owner> {
  const owner = createOwner(database)
  onTestFinished(() => owner.end())
  await owner.beat()
  return owner
}

/** What becomes of the owners of a process that is killed: their last sign of life was long ago. */
export async function kill(database: Database, owner: string): Promise<void> {
  await database.tx(db => db.run(sql`update owners set seen_at = 0 where id = ${owner}`))
}

export function newUpload(change: Partial<NewUpload> = {}): NewUpload {
  const { createdAt = 1_000_000_000_000 } = change
  return {
    id: newUploadId(createdAt),
    createdAt,
    owner: 'me',
    requestId: 'r1',
    caller: 'loopback',
    destination: 'local/blog',
    origins: ['a.png', '中文 😀.png'],
    ...change,
  }
}

/** The claims of files that are not refused, in order. */
export const claimsOf = (begun: Begun, files: readonly PlannedFile[]): Claim[] =>
  begun.is === 'known'
    ? []
    : files.flatMap(({ wanted }) => wanted.flatMap(one => begun.claims.get(one) ?? []))

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
    destination: 'local/blog',
    location: '/srv/blog/',
    ...change,
  }
}

/** The ID of a job that began at a time, as a test names it. */
export const jobAt = (time: number, name: string) => `${idPrefix(time)}-${name}`

/** Writes an entry of the history, with the upload and the object that it belongs to. */
export async function addEntry(database: Database, change: Partial<HistoryEntry> = {}): Promise<void> {
  const { time, jobId, caller, requestId, destination, removedAt, ...file } = change
  const upload = newUpload({
    ...(jobId !== undefined && { id: jobId }),
    ...(caller !== undefined && { caller }),
    ...(requestId !== undefined && { requestId }),
    ...(destination !== undefined && { destination }),
    ...(time !== undefined && { createdAt: time }),
  })
  const stored = newFile({ ...file, destination: upload.destination })
  const { location, key, sha256 } = stored
  await database.tx(db =>
    db.run(sql`insert into objects (name, destination, location, key, sha256, state, holder, is_new, attempts, following)
      values (${objectName(location, key)}, ${upload.destination}, ${location}, ${key}, ${sha256}, 'storing', ${upload.id}, 0, 0, 2)
      on conflict (name) do update set state = 'storing', holder = excluded.holder, sha256 = excluded.sha256`),
  )
  await finish(database, upload, { state: 'done', files: [stored], failed: [] })
  await database.tx(async db => {
    if (removedAt !== undefined)
      await db.run(sql`update files set removed_at = ${removedAt} where upload = ${upload.id}`)
  })
}

export const AT = { destination: 'local/blog', location: '/srv/blog/' }
export const urlOf = (key: string) => `https://x.example/${key}`

export const want = (key: string, sha256: string, change: Partial<Wanted> = {}): Wanted => ({
  ...{ ...AT, key, sha256, onConflict: 'rename', isContentKey: false, dedupe: false, expiresAt: null },
  ...change,
})

/** What is shown of a claim: `mine a.png`. */
const show = (one: Claim) => ('key' in one ? `${one.is} ${one.key}` : one.is)

/** A process that lives, and what it does with objects. */
export async function newActor(database: Database) {
  const { id } = await newOwnerIn(database)
  const among = [AT.destination]

  /** Begins an upload of a file for each. */
  async function start(...wanted: Wanted[]) {
    const upload = newUpload({ owner: id })
    const claimant: Claimant = { id: upload.id, claimed: new Set() }
    const files = wanted.map((one, index) => ({ index, size: 1, wanted: [one] }))
    const begun = await begin(database, upload, claimant, files, {})
    if (begun.is === 'known') throw new Error('it has no key')
    const claims = claimsOf(begun, files)
    return {
      ...{ upload, claimant, claims, shown: claims.map(show) },
      claimMore: (one: Wanted) => claimMore(database, claimant, one),
      /** The files are stored. @param open instead: nothing is, and a transfer may still write these objects */
      end(open?: readonly string[]) {
        const stored = claims.flatMap((one, index) => {
          if (open || !('key' in one) || one.is === 'conflict') return []
          const { sha256, expiresAt } = wanted[index]!
          const file = { index, key: one.key, sha256, url: urlOf(one.key) }
          return [newFile({ ...file, ...(expiresAt !== null && { expiresAt }) })]
        })
        const { claimed } = claimant
        const end = { state: 'done', files: stored, failed: [], claimed, open: new Set(open) } as const
        return finish(database, upload, end)
      },
    }
  }

  return {
    ...{ id, start },
    claim: async (...wanted: Wanted[]) => (await start(...wanted)).shown,
    /** @returns what was claimed; the upload is done */
    async store(...wanted: Wanted[]) {
      const begun = await start(...wanted)
      await begun.end()
      return begun.shown
    },
    die: () => kill(database, id),
    due: (now = Date.now(), limit = 100) =>
      takeDue(database, { owner: id, among, now, limit, longestPauseMs: 1000 }),
    open: (limit = 100) => database.tx(db => takeOpen(db, id, among, limit)),
    settle: (name: string, found: 'nothing' | 'something' | 'unasked') =>
      database.tx(db => settleOpen(db, id, name, found)),
    remove: (name: string) => database.tx(db => takeForRemoval(db, id, [name])),
  }
}

type Actor = Awaited<ReturnType<typeof newActor>>

/** To be called once in a file. @returns its `it`, of which each test has an empty database and two processes */
export function storeTest() {
  const [[, make]] = databaseEngines() as [Engine]
  return test.extend<{ place: DatabasePlace; database: Database; me: Actor; other: Actor }>({
    place: async ({ task, skip }, use) => use(await make({ task, skip } as TestContext)),
    database: async ({ place }, use) => use(place.open()),
    me: async ({ database }, use) => use(await newActor(database)),
    other: async ({ database }, use) => use(await newActor(database)),
  })
}
