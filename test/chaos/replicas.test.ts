import { createHash, randomBytes, randomInt, randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it, onTestFinished, type TestContext } from 'vitest'
import { findFiles } from '../../src/store/history.ts'
import { openPostgres } from '../../src/store/postgres.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { formOf } from '../helpers/form.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { missing, needs } from '../helpers/needs.ts'
import { fill, readExample, runNginx } from '../helpers/reverse-proxies.ts'
import { runServer, type SpawnedServer } from '../helpers/spawn-server.ts'
import { closed } from '../helpers/stores.ts'
import { startStubBucket } from '../helpers/stub-bucket.ts'
import { findPostgres, startPostgres } from '../servers/postgres.ts'

// What several servers promise of their database is in test/store/model.test.ts; this is the way through nginx.

const KEY = 'k3y-of-all-servers'
const CLIENTS = 16
const SERVERS = 3
/** How often each server is stopped. */
const ROUNDS = 6

it.for([
  ['no request fails and nothing is stored twice', 'SIGTERM', 1],
  [
    'clients that repeat every request three times at once until it is answered get one object each',
    'SIGKILL',
    3,
  ],
] as const)(
  '%s while three servers behind the nginx of the example restart by %s under load',
  {
    timeout: 400_000,
  },
  async ([, signal, times], context) => {
    const { url, restart, bucket, readHistory, accessLog } = await startAll(context)
    let isOver = false
    const failures: string[] = []
    const stored: { sha256: string; link: string }[] = []

    /** @returns the link, or undefined after a failure that a kill may cause */
    const send = async (content: Buffer, key: string | undefined): Promise<string | undefined> => {
      const headers = { 'X-Upload-Key': KEY, ...(key && { 'Idempotency-Key': key }) }
      try {
        const body = formOf({ 'a.bin': content })
        const answer = await fetch(`${url}/upload`, { method: 'POST', headers, body })
        const text = await answer.text()
        if (answer.status === 200) return JSON.parse(text).result[0]
        if (signal === 'SIGTERM' || ![502, 503, 504].includes(answer.status))
          failures.push(`${answer.status} ${text}`)
      } catch (error) {
        if (signal === 'SIGTERM') failures.push(String((error as Error).cause ?? error))
      }
      return undefined
    }
    const client = async () => {
      while (!isOver) {
        const content = randomBytes(randomInt(2) ? 200 : 100_000)
        const key = times > 1 || randomInt(2) ? randomUUID() : undefined
        const links = new Set<string>()
        do {
          const answers = await Promise.all(Array.from({ length: times }, () => send(content, key)))
          for (const link of answers) if (link) links.add(link)
        } while (links.size === 0 && signal === 'SIGKILL')
        expect(links.size, 'all get the same link').toBeLessThanOrEqual(1)
        const sha256 = createHash('sha256').update(content).digest('hex')
        for (const link of links) stored.push({ sha256, link })
      }
    }
    const clients = Array.from({ length: CLIENTS }, client)
    for (let round = 0; round < ROUNDS; round++) {
      for (let n = 0; n < SERVERS; n++) {
        await sleep(randomInt(300))
        await restart(n, signal)
      }
    }
    isOver = true
    await Promise.all(clients)

    expect(failures).toEqual([])
    expect(stored.length).toBeGreaterThan(100)
    // Each server was used, or the restarts would prove nothing.
    expect(new Set((await accessLog()).match(/127\.0\.0\.1:\d+/g)).size).toBe(SERVERS)
    const history = await readHistory()
    expect(history).toHaveLength(stored.length)
    const links = new Map(history.map(entry => [entry.sha256, entry.url]))
    for (const { sha256, link } of stored) expect(links.get(sha256)).toBe(link)
    if (signal === 'SIGTERM') expect(bucket.puts).toHaveLength(stored.length)
    const hashes = [...bucket.objects.values()].map(bytes => createHash('sha256').update(bytes).digest('hex'))
    expect(new Set(hashes)).toEqual(new Set(stored.map(one => one.sha256)))
  },
)

async function startAll(context: TestContext) {
  needs(context, 'nginx', 'nginx-light')
  if ((await findPostgres()) === undefined) missing(context, 'needs PostgreSQL: apt-get install postgresql')
  const postgres = await startPostgres()
  onTestFinished(() => postgres.stop())
  const database = await postgres.createDatabase('up')
  const bucket = await startStubBucket()
  const first = await findFreePorts(SERVERS + 1)
  const ports = Array.from({ length: SERVERS }, (_, i) => first + 1 + i)
  const url = `http://127.0.0.1:${first}`
  const config = {
    server: { key: KEY, publicUrl: url, trustProxy: ['loopback'] },
    auth: { loopbackExempt: false },
    database: { driver: 'postgres', url: database },
    keyTemplate: '{uuid}{extname}',
    providers: { s3: { shared: bucket.options } },
  }
  const servers = await Promise.all(ports.map(port => start(port, config)))
  const accessLog = await startNginx(url, ports)
  const readHistory = () => closed(openPostgres(database)).read(db => findFiles(db, { limit: 1_000_000 }))
  return {
    ...{ url, bucket, readHistory, accessLog },
    async restart(n: number, signal: 'SIGTERM' | 'SIGKILL') {
      servers[n]?.process.kill(signal)
      expect(await servers[n]?.exit).toBe(signal === 'SIGTERM' ? 0 : signal)
      servers[n] = await start(ports[n] as number, config)
    },
  }
}

/** Resolves when the server is ready. */
async function start(port: number, config: object): Promise<SpawnedServer> {
  const home = await makeDirectory()
  await writeFile(join(home, 'upload-server.json'), JSON.stringify(config))
  const server = runServer(['--strict-port', '--port', String(port)], home)
  onTestFinished(async () => {
    server.process.kill('SIGKILL')
    await server.exit
  })
  const url = await server.url
  await expect.poll(async () => (await fetch(`${url}/ready`)).status, { timeout: 45_000 }).toBe(200)
  return server
}

/** @returns reads the access log */
async function startNginx(url: string, ports: readonly number[]): Promise<() => Promise<string>> {
  const directory = await makeDirectory()
  const log = join(directory, 'access.log')
  const others = ports.slice(1).map(port => `server 127.0.0.1:${port} max_fails=0;`)
  const config = fill(await readExample('replicas/nginx.conf'), {
    'listen 80;': `listen ${new URL(url).host};`,
    '/var/log/nginx/access.log': log,
    'set_real_ip_from 10.77.0.1;': 'set_real_ip_from 127.0.0.1;',
    'http://10.77.0.13:9000': url,
    'server 10.77.0.11:36677 ': `server 127.0.0.1:${ports[0]} `,
    'server 10.77.0.12:36677 max_fails=0;': others.join(' '),
  })
  await runNginx(config, { directory, port: Number(new URL(url).port) })
  return () => readFile(log, 'utf8')
}
