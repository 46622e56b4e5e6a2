import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import {
  chmod,
  chown,
  copyFile,
  cp,
  mkdir,
  open,
  rename,
  rm,
  stat,
  statfs,
  writeFile,
} from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, type TestContext } from 'vitest'
import { findFiles } from '../../src/store/history.ts'
import { openSqlite as openDatabase } from '../../src/store/sqlite.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { eventually } from '../helpers/eventually.ts'
import { type Answer, formOf, post, upload } from '../helpers/form.ts'
import { mountSmall } from '../helpers/mount-small.ts'
import { missing, needsRoot } from '../helpers/needs.ts'
import { lockSqlite } from '../helpers/sqlite.ts'
import { startApp, type TestApp } from '../helpers/start-app.ts'
import { closed } from '../helpers/stores.ts'
import { type StubBucket, startStubBucket } from '../helpers/stub-bucket.ts'
import { findPostgres, type PostgresServer, startPostgres } from '../servers/postgres.ts'

let postgres: PostgresServer | undefined

beforeAll(async () => {
  if ((await findPostgres()) !== undefined) postgres = await startPostgres()
})
afterAll(() => postgres?.stop())

/** A store that can be broken under a running server, and cured. */
interface Fault {
  readonly store: object
  breakDown(): Promise<void>
  cure(): Promise<void>
  /** What an upload is told meanwhile. */
  readonly refusal: Refusal
}

interface Refusal {
  readonly status: number
  readonly code: string
  readonly message: RegExp
}

const unavailable = (message: RegExp): Refusal => ({ status: 503, code: 'database_unavailable', message })

async function fullDisk(context: TestContext, directory: string): Promise<Fault> {
  const disk = join(directory, 'disk')
  const ballast = join(disk, 'ballast')
  await mountSmall(context, disk, '2m')
  return {
    store: { driver: 'sqlite', path: join(disk, 'store.db') },
    async breakDown() {
      const { bavail, bsize } = await statfs(disk)
      await writeFile(ballast, Buffer.alloc(bavail * bsize))
    },
    cure: () => rm(ballast),
    refusal: {
      status: 507,
      code: 'insufficient_storage',
      message:
        /^The disk with the database of the server, store\.db, is full \(SQLITE_FULL\)\. It is not the disk of the destination\. Free some space on it/,
    },
  }
}

async function newDatabase(context: TestContext) {
  const server = postgres ?? missing(context, 'needs PostgreSQL: apt-get install postgresql')
  return { server, url: await server.createDatabase(`db${randomUUID().replaceAll('-', '')}`) }
}

async function stoppedPostgres(context: TestContext): Promise<Fault> {
  const { server, url } = await newDatabase(context)
  return {
    store: { driver: 'postgres', url },
    breakDown: server.halt,
    cure: server.resume,
    refusal: unavailable(/^The database of the server does not respond \(.*\)\. Try again in a moment\.$/),
  }
}

async function hangingPostgres(context: TestContext): Promise<Fault> {
  const { server, url } = await newDatabase(context)
  onTestFinished(server.thaw)
  return {
    store: { driver: 'postgres', url: `${url}?query_timeout=500` },
    breakDown: server.freeze,
    cure: server.thaw,
    // A connection whose query took too long is not used again, and no new one can be opened.
    refusal: unavailable(/^The database of the server (?:did not finish a query in time|does not respond)/),
  }
}

const FAULTS: [string, (context: TestContext, directory: string) => Promise<Fault>][] = [
  ['on a full disk', fullDisk],
  ['in a PostgreSQL that is stopped', stoppedPostgres],
  ['in a PostgreSQL that hangs', hangingPostgres],
]

/** Makes an empty database. */
async function makeDatabase(path: string): Promise<void> {
  const database = openDatabase(path)
  await database.tx(async () => {})
  await database.close()
}

/** Links in the history, newest first. */
async function linksIn(path: string): Promise<string[]> {
  const entries = await closed(openDatabase(path)).read(db => findFiles(db, { limit: 100 }))
  return entries.map(entry => entry.url)
}

async function start(directory: string, store: object, bucket?: StubBucket): Promise<TestApp> {
  const local = { Default: { directory: join(directory, 'files'), serve: true } }
  const providers = bucket ? { s3: { Default: bucket.options } } : { local }
  const config = {
    keyTemplate: '{uuid}{extname}',
    database: store,
    providers,
    metrics: { enabled: true },
    shutdown: { grace: '500ms' },
  }
  return startApp({ directory, config })
}

const figures = async (app: TestApp) => (await fetch(`${app.url}/metrics`)).text()

const storedBy = async (app: TestApp) => (await app.files()).filter(path => path.startsWith('files/')).length

async function expectRefused(app: TestApp, { status, code, message }: Refusal): Promise<Answer> {
  const answer = await upload(`${app.url}/upload`, { 'a.png': 'one' })
  expect(answer).toMatchObject({ status, code, message: expect.stringMatching(message) })
  expect(answer.headers.get('retry-after')).toBe('5')
  return answer
}

async function expectWorks(app: TestApp): Promise<Answer> {
  const answer = await upload(`${app.url}/upload`, { 'next.png': 'next' })
  expect(answer).toMatchObject({ status: 200 })
  return answer
}

it.for(FAULTS)(
  'a store %s refuses uploads before anything is stored, keeps what was under way pending, and works again once it is cured',
  async ([, make], context) => {
    const directory = await makeDirectory()
    const { store, breakDown, cure, refusal } = await make(context, directory)
    const bucket = await startStubBucket()
    const app = await start(directory, store, bucket)
    const ask = (key: string) =>
      post(`${app.url}/upload`, { body: formOf({ 'a.png': 'one' }), headers: { 'Idempotency-Key': key } })
    bucket.hold()
    const first = ask('k1')
    await expect.poll(() => bucket.puts).toHaveLength(1)
    await breakDown()
    bucket.letGo()
    const pending = await first
    expect(pending).toMatchObject({ status: 424, stage: 'finalization' })
    const { finalizationId } = pending as unknown as { finalizationId: string }
    expect(await ask('k1')).toMatchObject({ status: 424, finalizationId })
    await expectRefused(app, refusal)
    expect(await ask('k2')).toMatchObject({ status: refusal.status })
    expect(await figures(app)).toMatch(/^upload_server_database_up 0$/m)
    expect(await figures(app)).toMatch(
      new RegExp(
        `^upload_server_file_failures_total\\{destination="s3/Default",code="${refusal.code}"\\} 2$`,
        'm',
      ),
    )
    expect(await (await fetch(`${app.url}/heartbeat`)).json()).toMatchObject({ success: true })
    expect(bucket.puts).toHaveLength(1)
    await cure()
    const done = await post(`${app.url}/upload?finalizationId=${finalizationId}`)
    expect(done).toMatchObject({ status: 200, result: [expect.any(String)] })
    expect(await ask('k1')).toMatchObject({ status: 200, result: done.result })
    expect(bucket.puts).toHaveLength(1)
    expect(await ask('k2')).toMatchObject({ status: 200 })
    expect(await figures(app)).toMatch(/^upload_server_database_up 1$/m)
  },
)

const STORE = '^The database of the server, store\\.db, '
const closedBy = (code: string) =>
  new RegExp(`${STORE}can't be read or written \\(${code}\\)\\. .*Fix its folder`)
const damaged = (code: string) =>
  new RegExp(`${STORE}is damaged or not an SQLite database \\(${code}\\)\\. Replace it with a backup`)

/** What a server may find in the place of its store when it starts. Gives the cure. */
type Found = (disk: string, path: string, context: TestContext) => Promise<() => unknown>
const FOUND: [what: string, message: RegExp, prepare: Found][] = [
  [
    'a disk that is read-only',
    closedBy('EROFS'),
    async (disk, _path, context) => {
      await mountSmall(context, disk, '2m')
      execFileSync('mount', ['-o', 'remount,ro', disk])
      return () => execFileSync('mount', ['-o', 'remount,rw', disk])
    },
  ],
  [
    'a folder that is read-only around a file that is not',
    closedBy('SQLITE_READONLY'),
    async (disk, path, context) => {
      needsRoot(context, 'it becomes somebody who may not write everywhere')
      const nobody = 65534
      const made = join(dirname(disk), 'made.db')
      await makeDatabase(made)
      await mkdir(disk)
      await copyFile(made, path)
      await chown(path, nobody, nobody)
      await chmod(dirname(disk), 0o777)
      const cure = () => process.seteuid?.(0)
      onTestFinished(cure)
      process.seteuid?.(nobody)
      return cure
    },
  ],
  [
    'a file in the place of its folder',
    closedBy('(EEXIST|ENOTDIR)'),
    async disk => {
      await writeFile(disk, '')
      return () => rm(disk)
    },
  ],
  [
    'a folder in its place',
    closedBy('SQLITE_CANTOPEN'),
    async (_disk, path) => {
      await mkdir(path, { recursive: true })
      return () => rm(path, { recursive: true })
    },
  ],
  [
    'a file that is no database',
    damaged('SQLITE_NOTADB'),
    async (disk, path) => {
      await mkdir(disk)
      await writeFile(path, 'a picture, perhaps '.repeat(1000))
      return () => rm(path)
    },
  ],
  [
    'a database with a hole in it',
    damaged('SQLITE_CORRUPT'),
    async (_disk, path) => {
      const made = join(dirname(path), 'made.db')
      await makeDatabase(made)
      await copyFile(made, path)
      const { size } = await stat(path)
      const file = await open(path, 'r+')
      await file.write(Buffer.alloc(size - 100, 'x'), 0, size - 100, 100)
      await file.close()
      return () => rm(path)
    },
  ],
]

it.for(FOUND)(
  'a server that finds %s starts, says so, and works once that is cured',
  async ([, message, prepare], context) => {
    const directory = await makeDirectory()
    const disk = join(directory, 'disk')
    const path = join(disk, 'store.db')
    const cure = await prepare(disk, path, context)
    const app = await start(directory, { driver: 'sqlite', path })
    await expectRefused(app, unavailable(message))
    await expect
      .poll(() => app.rawLog())
      .toMatch(/The database of the server can't be used, and uploads fail: The database of the server/)
    expect(await storedBy(app)).toBe(0)
    await cure()
    await expectWorks(app)
  },
)

it('what a locked store did not take is not forgotten by a reload', async () => {
  const directory = await makeDirectory()
  const path = join(directory, 'store.db')
  const bucket = await startStubBucket()
  const app = await start(directory, { driver: 'sqlite', path }, bucket)
  bucket.hold()
  const first = upload(`${app.url}/upload`, { 'a.png': 'one' })
  await expect.poll(() => bucket.puts).toHaveLength(1)
  const unlock = lockSqlite(path, 'exclusive')
  bucket.letGo()
  const { status, finalizationId } = (await first) as unknown as { status: number; finalizationId: string }
  expect(status).toBe(424)
  await app.reload()
  const finish = () => post(`${app.url}/upload?finalizationId=${finalizationId}`)
  expect(await finish()).toMatchObject({ status: 424 })
  unlock()
  expect(await finish()).toMatchObject({ status: 200, result: [expect.any(String)] })
})

/** A link to the server, as the database keeps it. */
const kept = (link: string) => new URL(link).pathname.slice(1)

describe('a store whose file is lost under a running server', () => {
  /** What is done to the file, and which one the error names. */
  const LOSSES: [string, (path: string) => Promise<unknown>, string][] = [
    ['removed', path => rm(path), 'store.db'],
    ['left without its log', path => rm(`${path}-wal`), 'store.db-wal'],
    [
      'replaced by an older one',
      async path => {
        await copyFile(`${path}.backup`, `${path}.new`)
        await rename(`${path}.new`, path)
      },
      'store.db',
    ],
  ]

  const vanished = (file: string) =>
    unavailable(
      new RegExp(`^The file ${file} of the server's database was moved, removed or replaced while .*restart`),
    )

  async function startWithBackup() {
    const directory = await makeDirectory()
    const path = join(directory, 'store', 'store.db')
    await makeDatabase(path)
    await copyFile(path, `${path}.backup`)
    const store = { driver: 'sqlite', path }
    return { directory, path, store, app: await start(directory, store) }
  }

  /** Uploads until the server refuses them. */
  const expectNoticed = (app: TestApp, file: string) =>
    eventually(async () => {
      await expectRefused(app, vanished(file))
    })

  it.for(LOSSES)(
    '%s: uploads are refused with its name, and what is answered after a restart is known',
    async ([_what, lose, file]) => {
      const { app, directory, path, store } = await startWithBackup()
      await expectWorks(app)
      await lose(path)
      await expectNoticed(app, file)
      const stored = await storedBy(app)
      await expectRefused(app, vanished(file))
      expect(await storedBy(app)).toBe(stored)
      await app.server.stop()

      // What another process finds: this one may have the lost file open still.
      const found = join(directory, 'found')
      await mkdir(dirname(path), { recursive: true })
      await cp(dirname(path), found, { recursive: true })
      const restarted = await start(directory, { ...store, path: join(found, 'store.db') })
      const { result } = await expectWorks(restarted)
      expect(await linksIn(join(found, 'store.db'))).toEqual(expect.arrayContaining(result.map(kept)))
    },
  )

  it('moved away: it works again, and knows what it knew, once the file is back', async () => {
    const { app, path } = await startWithBackup()
    const { result: before } = await expectWorks(app)
    await rename(path, `${path}.away`)
    await expectNoticed(app, 'store.db')
    await rename(`${path}.away`, path)
    const { result: after } = await expectWorks(app)
    expect(await linksIn(path)).toEqual(expect.arrayContaining([...before, ...after].map(kept)))
  })
})
