import { createHash, randomBytes, randomInt, randomUUID } from 'node:crypto'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { findFiles } from '../../src/store/history.ts'
import { openPostgres } from '../../src/store/postgres.ts'
import { sql } from '../../src/store/sql.ts'
import { runNginx } from '../helpers/behind-proxy.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { download, formOf, post } from '../helpers/form.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { missing, needs } from '../helpers/needs.ts'
import { runServer, type SpawnedServer } from '../helpers/spawn-server.ts'
import { closed } from '../helpers/stores.ts'
import { type StubBucket, startStubBucket } from '../helpers/stub-bucket.ts'
import { findPostgres, type PostgresServer, startPostgres } from '../servers/postgres.ts'

const KEY = 'k3y-of-both-servers'
let postgres: PostgresServer | undefined
let directory: string
let url: string

beforeAll(async () => {
  if ((await findPostgres()) !== undefined) postgres = await startPostgres()
})
afterAll(() => postgres?.stop())

beforeEach(async context => {
  if (!postgres) missing(context, 'needs PostgreSQL: apt-get install postgresql')
  directory = await makeDirectory()
  url = await postgres.createDatabase(`db${randomUUID().replaceAll('-', '')}`)
})

interface Replica {
  readonly server: SpawnedServer
  readonly url: string
}

/** Writes a line at each run. Fails while the file `hook.broken` is there, waits while `hook.slow` is. */
const HOOK = 'echo "$UPLOAD_ID" >> "$0"; while [ -e "$0.slow" ]; do sleep 0.02; done; ! [ -e "$0.broken" ]'

const hookIs = (state: 'slow' | 'broken') => writeFile(join(directory, `hook.${state}`), '')
const hookIsNot = (state: 'slow' | 'broken') => rm(join(directory, `hook.${state}`))
const hookRuns = async () =>
  (await readFile(join(directory, 'hook'), 'utf8').catch(() => '')).split('\n').filter(Boolean)

/** Both write to the same folder. */
async function startReplica({
  port = 0,
  publicUrl,
  keyTemplate = '{uuid}{extname}',
  bucket,
}: {
  readonly port?: number | undefined
  readonly publicUrl?: string
  readonly keyTemplate?: string
  /** Instead of the folder. */
  readonly bucket?: StubBucket
} = {}): Promise<Replica> {
  const home = await makeDirectory()
  await writeFile(
    join(home, 'upload-server.json'),
    JSON.stringify({
      server: { key: KEY, ...(publicUrl && { publicUrl, trustProxy: ['loopback'] }) },
      keyTemplate,
      database: { driver: 'postgres', url },
      providers: bucket
        ? { s3: { shared: bucket.options } }
        : { local: { Default: { directory: join(directory, 'files'), serve: true } } },
      finalization: { hooks: [{ name: 'note', command: ['sh', '-c', HOOK, join(directory, 'hook')] }] },
    }),
  )
  const server = runServer(['--strict-port', '--port', String(port)], home)
  onTestFinished(async () => {
    server.process.kill('SIGKILL')
    await server.exit
  })
  return { server, url: await server.url }
}

const startBoth = (bucket?: StubBucket) =>
  Promise.all([1, 2].map(() => startReplica(bucket && { bucket }))) as Promise<[Replica, Replica]>

async function kill({ server }: Replica): Promise<void> {
  server.process.kill('SIGKILL')
  await server.exit
}

const send = (to: { url: string }, content: string | Uint8Array, key?: string) =>
  post(`${to.url}/upload`, {
    body: formOf({ 'a.bin': content }),
    headers: { 'X-Upload-Key': KEY, ...(key && { 'Idempotency-Key': key }) },
  })

const finish = (to: { url: string }, id: string) =>
  post(`${to.url}/upload?finalizationId=${id}`, { headers: { 'X-Upload-Key': KEY } })

/** Each server tells where it can be reached itself. */
const pathsOf = (links: readonly string[]) => links.map(link => new URL(link).pathname)

const idOf = (answer: object): string => (answer as { finalizationId: string }).finalizationId

const stored = async () =>
  (await readdir(join(directory, 'files')).catch(() => [])).filter(name => !name.startsWith('.'))

const openDatabase = () => closed(openPostgres(url))

describe('two servers on one PostgreSQL', () => {
  it('start at the same time on an empty database, and never store two files under one key, however many of that name come at once', async () => {
    const replicas = await Promise.all(
      [1, 2, 3, 4].map(() => startReplica({ keyTemplate: '{filename}{extname}' })),
    )
    const contents = Array.from({ length: 40 }, () => randomBytes(2000))
    const answers = await Promise.all(contents.map((bytes, i) => send(replicas[i % 4] as Replica, bytes)))
    expect(answers.map(answer => answer.status)).toEqual(contents.map(() => 200))
    const links = answers.flatMap(({ result }) => result)
    expect(new Set(links.map(link => new URL(link).pathname)).size).toBe(contents.length)
    for (const [i, link] of links.entries()) expect((await download(link)).equals(contents[i]!)).toBe(true)
  })

  it('finish what the other one has begun, and run the hooks once when both are asked at the same instant', async () => {
    const both = await startBoth()
    const [one, other] = both
    await hookIs('broken')
    const id = idOf(await send(one, 'content'))
    expect(await finish(other, id)).toMatchObject({ status: 424, finalizationId: id })
    await hookIsNot('broken')
    const done = await finish(other, id)
    expect(done).toMatchObject({ status: 200, success: true })
    const again = await finish(one, id)
    expect(again.status).toBe(200)
    expect(pathsOf(again.result)).toEqual(pathsOf(done.result))
    expect(await stored()).toHaveLength(1)
    expect(await hookRuns()).toEqual([id, id, id])

    await hookIs('broken')
    const ids = await Promise.all([1, 2, 3, 4, 5].map(async n => idOf(await send(both[n % 2]!, `${n}`))))
    await hookIsNot('broken')
    await rm(join(directory, 'hook'))
    const answers = await Promise.all(
      [...ids, ...ids, ...ids].flatMap(id => both.map(one => finish(one, id))),
    )
    expect(answers.filter(answer => answer.status !== 200)).toEqual([])
    expect((await hookRuns()).sort()).toEqual([...ids].sort())
  })

  it('make one object of the same request at the same instant', async () => {
    const both = await startBoth()
    const content = randomBytes(200_000)
    const answers = await Promise.all([0, 1, 0, 1, 0, 1].map(n => send(both[n]!, content, 'k1')))
    expect(answers.map(answer => answer.status)).toEqual([200, 200, 200, 200, 200, 200])
    // Each tells where it can be reached itself.
    expect(new Set(answers.flatMap(answer => pathsOf(answer.result))).size).toBe(1)
    expect(await stored()).toHaveLength(1)
    expect(await hookRuns()).toHaveLength(1)
    expect(await send(both[1]!, 'other', 'k1')).toMatchObject({ status: 422, code: 'idempotency_key_reused' })
  })

  it('finish what one was finishing when it was killed', async () => {
    const [one, other] = await startBoth()
    await hookIs('slow')
    const cut = send(one, 'content').catch(() => undefined)
    await expect.poll(hookRuns, { timeout: 10_000 }).toHaveLength(1)
    const [id = ''] = await hookRuns()
    const waiting = finish(other, id)
    await kill(one)
    await cut
    await hookIsNot('slow')
    expect(await waiting).toMatchObject({ status: 200, result: [expect.any(String)] })
    expect(await hookRuns()).toEqual([id, id])
    expect(await stored()).toHaveLength(1)
  })

  it('take a request over that one was serving when it was killed', async () => {
    const bucket = await startStubBucket()
    const [one, other] = await startBoth(bucket)
    bucket.hold()
    const cut = send(one, 'the file', 'k1').catch(() => undefined)
    await expect.poll(() => bucket.puts).toHaveLength(1)
    const waiting = [send(other, 'the file', 'k1'), send(other, 'the file', 'k1')]
    await sleep(200)
    expect(bucket.puts).toHaveLength(1)
    await kill(one)
    await cut
    bucket.letGo()
    const answers = await Promise.all(waiting)
    expect(answers).toMatchObject([{ status: 200 }, { status: 200, result: answers[0]?.result }])
    expect((await download(String(answers[0]?.result[0]))).toString()).toBe('the file')
    expect(bucket.objects.size).toBe(1)
  })

  it('report what one left behind, and forget it; one that ends properly takes itself out', async () => {
    const bucket = await startStubBucket()
    const [one, other] = await startBoth(bucket)
    bucket.hold()
    const cut = send(one, 'content').catch(() => undefined)
    await expect.poll(() => bucket.puts).toHaveLength(1)
    const second = send(other, 'other content')
    await expect.poll(() => bucket.puts).toHaveLength(2)
    const database = openDatabase()
    const owners = async () => (await database.read(db => db.all(sql`select id from owners`))).length
    await expect.poll(owners).toBe(2)
    await kill(one)
    await cut
    bucket.letGo()
    await second
    await expect.poll(owners, { timeout: 20_000 }).toBe(1)
    const reports = other.server.lines
      .map(line => JSON.parse(line))
      .filter(line => String(line.msg).includes('interrupted'))
    expect(reports).toMatchObject([{ origins: ['a.bin'], destination: 's3/shared', caller: 'loopback' }])
    other.server.process.kill('SIGTERM')
    expect(await other.server.exit).toBe(0)
    expect(await owners()).toBe(0)
  })
})

/** nginx in front of servers on these ports, without any memory of failures. */
async function startNginx(port: number, ports: readonly number[]): Promise<void> {
  const servers = ports.map(one => `server 127.0.0.1:${one} max_fails=0;`)
  const config = `client_max_body_size 0;
    upstream both { ${servers.join(' ')} }
    server { listen 127.0.0.1:${port};
      location / { proxy_pass http://both; proxy_http_version 1.1; proxy_set_header Host $host;
        proxy_set_header X-Forwarded-For $remote_addr; proxy_request_buffering off; } }`
  await runNginx(await makeDirectory(), config, port)
}

it('behind nginx, clients that repeat every request three times at once get one object each, while servers are killed', {
  timeout: 120_000,
}, async context => {
  needs(context, 'nginx', 'nginx-light')
  const rounds = 8
  const port = await findFreePorts(3)
  const ports = [port + 1, port + 2]
  const site = { url: `http://127.0.0.1:${port}` }
  await startNginx(port, ports)
  const replicas = await Promise.all(ports.map(one => startReplica({ port: one, publicUrl: site.url })))
  let isOver = false
  const requests: { sha256: string; content: Buffer; link: string }[] = []

  const sendUntilAnswered = async (content: Buffer, key: string): Promise<string> => {
    for (;;) {
      const attempts = await Promise.allSettled([1, 2, 3].map(() => send(site, content, key)))
      const answers = attempts.flatMap(one => (one.status === 'fulfilled' ? one.value : []))
      const links = new Set(answers.flatMap(answer => (answer.status === 200 ? answer.result : [])))
      expect(links.size, 'all get the same link').toBeLessThanOrEqual(1)
      const unexpected = answers.filter(answer => ![200, 424, 502, 503, 504].includes(answer.status))
      expect(unexpected).toEqual([])
      for (const link of links) return link
      await sleep(50)
    }
  }
  const client = async () => {
    while (!isOver) {
      const content = randomBytes(randomInt(2) ? 40 : 300_000)
      const sha256 = createHash('sha256').update(content).digest('hex')
      requests.push({ sha256, content, link: await sendUntilAnswered(content, randomUUID()) })
    }
  }
  const clients = [client(), client(), client(), client()]
  for (let round = 0; round < rounds; round++) {
    await sleep(randomInt(1000))
    const n = round % 2
    await kill(replicas[n]!)
    replicas[n] = await startReplica({ port: ports[n], publicUrl: site.url })
  }
  // A slow machine spends most of the rounds on starting servers.
  await expect.poll(() => requests.length, { timeout: 60_000 }).toBeGreaterThan(rounds)
  isOver = true
  await Promise.all(clients)
  const history = await openDatabase().read(db => findFiles(db, { limit: 100_000 }))
  for (const { sha256, content, link } of requests) {
    const entries = history.filter(entry => entry.sha256 === sha256)
    expect(entries.map(entry => `/${entry.url}`)).toEqual(pathsOf([link]))
    expect(content.equals(await download(link))).toBe(true)
  }
  expect(history).toHaveLength(requests.length)
})
