import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
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
import { type AddressInfo, connect, createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, type TestContext } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { findFiles } from '../../src/store/history.ts'
import { openPostgres } from '../../src/store/postgres.ts'
import { sql } from '../../src/store/sql.ts'
import { openSqlite as openDatabase } from '../../src/store/sqlite.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { eventually } from '../helpers/eventually.ts'
import { type Answer, formOf, post, upload } from '../helpers/form.ts'
import { mountSmall } from '../helpers/mount-small.ts'
import { missing, needsRoot } from '../helpers/needs.ts'
import { lockSqlite, openSqlite } from '../helpers/sqlite.ts'
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

async function stoppedPostgres(context: TestContext): Promise<Fault> {
  const server = postgres ?? missing(context, 'needs PostgreSQL: apt-get install postgresql')
  const url = await server.createDatabase(`db${randomUUID().replaceAll('-', '')}`)
  return {
    store: { driver: 'postgres', url },
    breakDown: server.halt,
    cure: server.resume,
    refusal: unavailable(/^The database of the server does not respond \(.*\)\. Try again in a moment\.$/),
  }
}

async function hangingPostgres(context: TestContext): Promise<Fault> {
  const server = postgres ?? missing(context, 'needs PostgreSQL: apt-get install postgresql')
  const url = await server.createDatabase(`db${randomUUID().replaceAll('-', '')}`)
  onTestFinished(server.thaw)
  return {
    store: { driver: 'postgres', url: `${url}?query_timeout=500` },
    breakDown: server.freeze,
    cure: server.thaw,
    refusal: unavailable(/^The database of the server did not finish a query in time\. It is overloaded/),
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

/** What the figures say of the store. */
async function isUp(app: TestApp): Promise<string | undefined> {
  const figures = await (await fetch(`${app.url}/metrics`)).text()
  return /^upload_server_database_up (\d)$/m.exec(figures)?.[1]
}

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

describe.each(FAULTS)('a store %s', (_what, make) => {
  it('refuses uploads before anything is stored, and works again once it is cured', async context => {
    const directory = await makeDirectory()
    const { store, breakDown, cure, refusal } = await make(context, directory)
    const app = await start(directory, store)
    await expectWorks(app)
    await breakDown()
    await expectRefused(app, refusal)
    expect(await isUp(app)).toBe('0')
    expect(await (await fetch(`${app.url}/heartbeat`)).json()).toMatchObject({ success: true })
    const withKey = { body: formOf({ 'a.png': 'one' }), headers: { 'Idempotency-Key': 'k1' } }
    expect(await post(`${app.url}/upload`, withKey)).toMatchObject({ status: refusal.status })
    expect(await storedBy(app)).toBe(1)
    await cure()
    await expectWorks(app)
    expect(await isUp(app)).toBe('1')
    expect(await post(`${app.url}/upload`, withKey)).toMatchObject({ status: 200 })
  })

  it('that breaks after the files were stored: pending, finished once it is cured, uploaded once', async context => {
    const directory = await makeDirectory()
    const { store, breakDown, cure } = await make(context, directory)
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
    const finish = () => post(`${app.url}/upload?finalizationId=${finalizationId}`)
    expect(await finish()).toMatchObject({ status: 424, finalizationId })
    await cure()
    const done = await finish()
    expect(done).toMatchObject({ status: 200, result: [expect.any(String)] })
    expect(await ask('k1')).toMatchObject({ status: 200, result: done.result })
    expect(bucket.puts).toHaveLength(1)
    await expectWorks(app)
  })
})

/** Forwards connections. @returns its port, and `lose`: answers to the next commit, and all later ones there, are lost */
async function startLossyProxy(port: number) {
  let isLosing = false
  const proxy = createServer(client => {
    const server = connect(port, '127.0.0.1')
    for (const socket of [client, server]) socket.on('error', () => {})
    client.on('close', () => server.destroy())
    server.on('close', () => client.destroy())
    server.pipe(client)
    let hasBegun = false
    client.on('data', bytes => {
      if (bytes.includes('insert into uploads')) hasBegun = true
      if (isLosing && hasBegun && bytes.includes('commit')) {
        server.unpipe(client).resume()
        isLosing = false
      }
      server.write(bytes)
    })
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  onTestFinished(() => void proxy.close())
  const lose = () => {
    isLosing = true
  }
  return { port: (proxy.address() as AddressInfo).port, lose }
}

it('an upload that was refused since the answer of the database was lost stayed "uploading" until the next start', async context => {
  const server = postgres ?? missing(context, 'needs PostgreSQL: apt-get install postgresql')
  const url = new URL(await server.createDatabase(`db${randomUUID().replaceAll('-', '')}`))
  const proxy = await startLossyProxy(Number(url.port))
  url.port = String(proxy.port)
  url.searchParams.set('query_timeout', '500')
  const directory = await makeDirectory()
  const store = { driver: 'postgres', url: url.href }
  const app = await start(directory, store)
  await expectWorks(app)
  proxy.lose()
  await expectRefused(app, unavailable(/did not finish a query in time/))
  const database = closed(openPostgres(url.href))
  const states = () => database.read(db => db.all(sql`select state from uploads order by created_at`))
  await expect.poll(states).toEqual([{ state: 'done' }, { state: 'failed' }])
})

/** What a server may find in the place of its store when it starts. Gives the cure. */
const FOUND: [
  string,
  RegExp,
  (context: TestContext, disk: string, path: string) => Promise<() => unknown>,
][] = [
  [
    'a disk that is read-only',
    /^The database of the server, store\.db, can't be read or written \(EROFS\)\. .*Fix its folder/,
    async (context, disk) => {
      await mountSmall(context, disk, '2m')
      execFileSync('mount', ['-o', 'remount,ro', disk])
      return () => execFileSync('mount', ['-o', 'remount,rw', disk])
    },
  ],
  [
    'a file that is read-only',
    /^The database of the server, store\.db, can't be read or written \(EROFS\)\. .*Fix its folder/,
    async (context, disk, path) => {
      await mountSmall(context, disk, '2m')
      await makeDatabase(path)
      execFileSync('mount', ['--bind', path, path])
      execFileSync('mount', ['-o', 'remount,bind,ro', path])
      return () => execFileSync('umount', [path])
    },
  ],
  [
    'a folder that is read-only around a file that is not',
    /^The database of the server, store\.db, can't be read or written \(SQLITE_READONLY\)\. .*Fix its folder/,
    async (context, disk, path) => {
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
    /^The database of the server, store\.db, can't be read or written \((EEXIST|ENOTDIR)\)\. .*Fix its folder/,
    async (_context, disk) => {
      await writeFile(disk, '')
      return () => rm(disk)
    },
  ],
  [
    'a folder in its place',
    /^The database of the server, store\.db, can't be read or written \(SQLITE_CANTOPEN\)\. .*Fix its folder/,
    async (_context, _disk, path) => {
      await mkdir(path, { recursive: true })
      return () => rm(path, { recursive: true })
    },
  ],
  [
    'a file that is no database',
    /^The database of the server, store\.db, is damaged or not an SQLite database \(SQLITE_NOTADB\)\. Replace it with a backup/,
    async (_context, disk, path) => {
      await mkdir(disk)
      await writeFile(path, 'a picture, perhaps '.repeat(1000))
      return () => rm(path)
    },
  ],
  [
    'a database with a hole in it',
    /^The database of the server, store\.db, is damaged or not an SQLite database \(SQLITE_CORRUPT\)\. Replace it with a backup/,
    async (_context, _disk, path) => {
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
  async (one, context) => {
    const [, message, prepare] = one
    const directory = await makeDirectory()
    const disk = join(directory, 'disk')
    const path = join(disk, 'store.db')
    const cure = await prepare(context, disk, path)
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

it('a store that another program keeps locked: waits for a while, then refuses, and works once it is free', async () => {
  const directory = await makeDirectory()
  const path = join(directory, 'store.db')
  const app = await start(directory, { driver: 'sqlite', path })
  await expectWorks(app)
  const other = openSqlite(path)
  other.exec('begin exclusive')
  const early = setTimeout(() => other.exec('commit'), 300)
  onTestFinished(() => clearTimeout(early))
  await expectWorks(app)
  other.exec('begin exclusive')
  await expectRefused(app, unavailable(/^The database of the server is locked by another program\./))
  other.exec('commit')
  await expectWorks(app)
  other.close()
})

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
  const file = join(directory, 'upload-server.json')
  await app.server.reload(await loadConfig({ env: {}, platform: 'linux', cwd: directory, file }))
  await sleep(3500) // longer than a store is waited for
  unlock()
  const finished = await post(`${app.url}/upload?finalizationId=${finalizationId}`)
  expect(finished).toMatchObject({ status: 200, result: [expect.any(String)] })
})

/** A link to the server, as the database keeps it. */
const kept = (link: string) => new URL(link).pathname.slice(1)

describe('a store whose file is lost under a running server', () => {
  /** What is done to the file, and which one the error names. */
  const LOSSES: [string, (path: string) => Promise<unknown>, string][] = [
    ['removed', path => rm(path), 'store.db'],
    ['removed with all that belongs to it', path => rm(dirname(path), { recursive: true }), 'store.db'],
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

  async function startWithBackup(bucket?: StubBucket) {
    const directory = await makeDirectory()
    const path = join(directory, 'store', 'store.db')
    await makeDatabase(path)
    await copyFile(path, `${path}.backup`)
    const store = { driver: 'sqlite', path }
    return { directory, path, store, app: await start(directory, store, bucket) }
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

  it('while an upload is on its way: it is pending, and finished once the file is back', async () => {
    const bucket = await startStubBucket()
    const { app, path } = await startWithBackup(bucket)
    bucket.hold()
    const first = upload(`${app.url}/upload`, { 'a.png': 'one' })
    await expect.poll(() => bucket.puts).toHaveLength(1)
    await rename(path, `${path}.away`)
    const isNoticed = async () => (await post(`${app.url}/upload?finalizationId=unknown`)).status === 503
    await expect.poll(isNoticed).toBe(true)
    bucket.letGo()
    const { status, finalizationId } = (await first) as unknown as { status: number; finalizationId: string }
    expect(status).toBe(424)
    await rename(`${path}.away`, path)
    const finished = await post(`${app.url}/upload?finalizationId=${finalizationId}`)
    expect(finished).toMatchObject({ status: 200, result: [expect.any(String)] })
  })
})
