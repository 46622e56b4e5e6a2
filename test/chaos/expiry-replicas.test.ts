import { randomInt, randomUUID } from 'node:crypto'
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { findFiles } from '../../src/store/history.ts'
import { openPostgres } from '../../src/store/postgres.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { formOf, post } from '../helpers/form.ts'
import { missing } from '../helpers/needs.ts'
import { runServer, type SpawnedServer } from '../helpers/spawn-server.ts'
import { closed } from '../helpers/stores.ts'
import { findPostgres, type PostgresServer, startPostgres } from '../servers/postgres.ts'

const EVERY_MS = 250
const ROUNDS = Number(process.env['ROUNDS'] ?? 6)
const HOUR_MS = 60 * 60 * 1000
const ENOUGH_ANSWERS = 50
/** Level of pino. */
const WARN = 40
const KEYS = ['a.txt', 'b.txt', 'c.txt', 'd.txt']
const SET_CLOCK = fileURLToPath(new URL('../fixtures/set-clock.mjs', import.meta.url))

let postgres: PostgresServer | undefined
beforeAll(async () => {
  if ((await findPostgres()) !== undefined) postgres = await startPostgres()
})
afterAll(() => postgres?.stop())

interface Item {
  readonly imgUrl: string
  readonly expiresAt?: string
  readonly mirrors: readonly { readonly imgUrl?: string }[]
}

/** One of the servers that share a store and a folder; it has a clock of its own. */
function startReplica(directory: string, store: object) {
  const home = join(directory, randomUUID())
  const clock = join(home, 'clock')
  const start = async () => {
    await mkdir(home, { recursive: true })
    const local = {
      Default: {
        directory: join(directory, 'Default'),
        serve: true,
        mirrors: ['local/copy'],
        expiry: { default: 'never' },
      },
      copy: { directory: join(directory, 'copy'), serve: true },
    }
    await writeFile(
      join(home, 'upload-server.json'),
      JSON.stringify({
        ...{ database: store, keyTemplate: '{filename}{extname}', cleanup: { interval: `${EVERY_MS}ms` } },
        ...{ default: 'local/Default', providers: { local } },
      }),
    )
    const env = { NODE_OPTIONS: `--import ${SET_CLOCK}`, CLOCK: clock }
    const server = runServer(['--port', '0'], home, env)
    started.push(server)
    onTestFinished(async () => {
      server.process.kill('SIGKILL')
      await server.exit
    })
    return { server, url: await server.url }
  }
  const started: SpawnedServer[] = []
  let running = start()
  return {
    warnings: () => started.flatMap(({ lines }) => lines.filter(line => JSON.parse(line).level >= WARN)),
    ready: () => running,
    setClock: (byMs: number) => writeFile(clock, String(byMs)),
    async killAndRestart() {
      const { server } = await running
      server.process.kill('SIGKILL')
      await server.exit
      running = start()
      await running
    },
  }
}

it('two servers sweep one folder while equal keys are uploaded, clocks jump and servers are killed: no promise is broken', {
  timeout: 120_000,
}, async context => {
  if (!postgres) return missing(context, 'needs PostgreSQL: apt-get install postgresql')
  const directory = await makeDirectory()
  const url = await postgres.createDatabase(`db${randomUUID().replaceAll('-', '')}`)
  const replicas = [1, 2].map(() => startReplica(directory, { driver: 'postgres', url }))
  await Promise.all(replicas.map(one => one.ready()))
  /** Until when a file is promised, by its path below the folder. */
  const promises = new Map<string, number>()
  const broken: string[] = []
  let [answers, isOver] = [0, false]

  const namesIn = async (folder: string) =>
    (await readdir(join(directory, folder)).catch(() => [])).filter(name => !name.startsWith('.')).sort()

  /** @returns whether it was stored */
  async function upload(name: string, expires: string): Promise<boolean> {
    const { url } = await replicas[randomInt(2)]!.ready()
    const body = formOf({ [name]: `${name} ${randomInt(2)}` })
    const answer = await post(`${url}/upload?expires=${expires}`, { body }).catch(() => undefined)
    if (answer?.status !== 200) return false
    const { items } = answer as unknown as { items: Item[] }
    for (const { imgUrl, expiresAt, mirrors } of items) {
      const until = expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt)
      // A copy that a server with another clock has removed meanwhile is reported as such: it has no link.
      for (const link of [imgUrl, ...mirrors.flatMap(one => one.imgUrl ?? [])]) {
        const file = new URL(link).pathname.replace('/files/', '')
        promises.set(file, Math.max(until, promises.get(file) ?? 0))
      }
    }
    answers++
    return true
  }

  const soon = () => new Date(Date.now() + randomInt(20, 900)).toISOString()
  const clients = KEYS.flatMap(key => [key, key]).map(async key => {
    for (; !isOver; await sleep(randomInt(200))) await upload(key, soon())
  })
  const watcher = (async () => {
    for (; !isOver; await sleep(5)) {
      for (const [file, until] of promises) {
        const isThere = await stat(join(directory, file)).then(
          () => true,
          () => false,
        )
        if (!isThere && Date.now() < until) broken.push(`${file}, ${until - Date.now()} ms too early`)
      }
    }
  })()

  await expect
    .poll(() => upload('stays.txt', 'never').then(() => promises.get('copy/stays.txt')))
    .toBeDefined()
  for (let round = 0; round < ROUNDS || answers <= ENOUGH_ANSWERS; round++) {
    await sleep(randomInt(600))
    await replicas[round % 2]!.setClock([HOUR_MS, -HOUR_MS, 0][round % 3]!)
    await sleep(randomInt(600))
    await replicas[(round + 1) % 2]!.killAndRestart()
  }
  isOver = true
  await Promise.all([...clients, watcher])
  expect(broken).toEqual([])
  for (const one of replicas) await one.setClock(0)

  promises.clear()
  // A link that ends before its request is read is refused. A file that a killed server left gives the copy a number.
  for (const key of KEYS) await expect.poll(() => upload(key, soon())).toBe(true)
  const database = closed(openPostgres(url))
  // What a killed server had stored and not yet written down is in no history, and stays.
  const left = async () => {
    const entries = await database.read(db => findFiles(db, { isRemoved: false, limit: 1000 }))
    return entries.map(({ destination, key }) => `${destination}/${key}`).sort()
  }
  await expect
    .poll(left, { timeout: 20_000, interval: 50 })
    .toEqual(['local/Default/stays.txt', 'local/copy/stays.txt'])
    .catch(error => expect.fail(`${error.message}\n${replicas.flatMap(one => one.warnings()).join('\n')}`))
  const files = (await Promise.all(['Default', 'copy'].map(namesIn))).flat()
  expect(files).toEqual(expect.arrayContaining(['stays.txt', 'stays.txt']))
  for (const file of promises.keys()) expect(await namesIn(dirname(file))).not.toContain(basename(file))
})
