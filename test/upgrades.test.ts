import { randomUUID } from 'node:crypto'
import { mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest'
import { loadConfig } from '../src/config/load.ts'
import { makeDirectory } from './helpers/directory.ts'
import { formOf, post } from './helpers/form.ts'
import { missing } from './helpers/needs.ts'
import { openSqlite } from './helpers/sqlite.ts'
import { startApp } from './helpers/start-app.ts'
import { findPostgres, type PostgresServer, startPostgres } from './servers/postgres.ts'

const STORES = new URL('fixtures/stores/', import.meta.url)
const SCHEMAS = ['1', '2', '3', '4', '5', '6', '7', '8']

let postgres: PostgresServer | undefined
beforeAll(async () => {
  if ((await findPostgres()) !== undefined) postgres = await startPostgres()
})
afterAll(() => postgres?.stop())

/** A connection of our own to a store, as another program has one. */
interface Open {
  query(text: string): Promise<Record<string, unknown>[]>
  close(): Promise<void>
}

interface Place {
  readonly directory: string
  /** The section of the configuration. */
  readonly store: object
  open(): Promise<Open>
}

const ENGINES: [string, (context: TestContext) => Promise<Place>][] = [
  [
    'sqlite',
    async () => {
      const directory = await makeDirectory()
      const path = join(directory, 'store.db')
      const open = async (): Promise<Open> => {
        const db = openSqlite(path, 3000)
        db.exec('pragma journal_mode = WAL')
        const query = async (text: string) => {
          if (text.startsWith('select')) return db.prepare(text).all() as Record<string, unknown>[]
          db.exec(text)
          return []
        }
        return { query, close: async () => void db.close() }
      }
      return { directory, store: { path }, open }
    },
  ],
  [
    'postgres',
    async context => {
      if (!postgres) return missing(context, 'needs PostgreSQL: apt-get install postgresql')
      const url = await postgres.createDatabase(`db${randomUUID().replaceAll('-', '')}`)
      const open = async (): Promise<Open> => {
        const client = new pg.Client(url)
        await client.connect()
        return { query: async text => (await client.query(text)).rows ?? [], close: () => client.end() }
      }
      return { directory: await makeDirectory(), store: { driver: 'postgres', url }, open }
    },
  ],
]

/** The configuration of test/fixtures/stores/make.ts, with a hook that works by now. */
async function start({ directory, store }: Place) {
  await mkdir(join(directory, 'img'), { recursive: true })
  const config = {
    server: { publicUrl: 'https://img.example.com' },
    default: 'local/blog',
    providers: { local: { blog: { directory: 'img', serve: true } } },
    finalization: { hooks: [{ name: 'tell', command: ['true'] }] },
    store,
  }
  return startApp({ config, directory })
}

const send = (url: string, name: string, query = '') =>
  post(`${url}/upload${query}`, {
    body: formOf({ [`${name}.txt`]: name }),
    headers: { 'Idempotency-Key': name },
  })

describe.each(ENGINES)('a store in %s', (engine, make) => {
  /** As if it had been written a minute ago: nothing of it is old enough to be pruned. */
  async function load(open: Open, schema: string): Promise<void> {
    const text = await readFile(new URL(`${engine}-${schema}.sql`, STORES), 'utf8')
    await open.query(text.replace(/\b17\d{11}\b/g, String(Date.now() - 60_000)))
  }

  it.for(SCHEMAS)('of schema %s keeps its promises', async (schema, context) => {
    const place = await make(context)
    const old = await place.open()
    await load(old, schema)
    const [unfinished] = await old.query(`select id from jobs where state = 'delivered'`)
    await old.close()

    const app = await start(place)
    expect(await send(app.url, 'finished')).toMatchObject({
      status: 200,
      result: [
        expect.stringMatching(/^https:\/\/img\.example\.com\/files\/blog\/.*\/finished-05343e98\.txt$/),
      ],
    })
    expect(await readdir(join(place.directory, 'img')), 'nothing was stored again').toEqual([])
    expect(await post(`${app.url}/upload?finalizationId=${unfinished?.['id']}`)).toMatchObject({
      status: 200,
      result: [expect.stringContaining('/unfinished-9b569cd0.txt')],
    })
    expect(await send(app.url, 'new')).toMatchObject({ status: 200 })
    await app.server.stop()

    const now = await place.open()
    expect(await now.query('select origin, key from history order by time, origin')).toMatchObject([
      { origin: 'finished.txt' },
      { origin: 'unfinished.txt' },
      { origin: 'new.txt' },
    ])
    expect(await now.query('select id from jobs where finished_at is null')).toEqual([])
    const hint = 'a new schema needs its stores: npm run stores -- SCHEMA'
    expect(await now.query('select version from schema_version'), hint).toEqual([{ version: SCHEMAS.length }])
    await now.close()
  })

  it.for(SCHEMAS)(
    'of schema %s is written to by the older version while this one starts',
    async (schema, context) => {
      const place = await make(context)
      const old = await place.open()
      await load(old, schema)
      let isOver = false
      let written = 0
      const traffic = (async () => {
        for (; !isOver || written < 50; written++) {
          await uploadAsBefore(old, `old-${String(written).padStart(4, '0')}`)
          await new Promise(resolve => setTimeout(resolve, 2))
        }
      })()
      const app = await start(place)
      for (let n = 0; n < 10; n++) expect(await send(app.url, `new-${n}`)).toMatchObject({ status: 200 })
      isOver = true
      await traffic
      await app.server.stop()
      expect(await old.query(`select id from jobs where owner = 'old' and state = 'finished'`)).toHaveLength(
        written,
      )
      expect(await old.query(`select key from history where origin like 'new-%'`)).toHaveLength(10)
      await old.close()
    },
  )
})

/**
 * What an upload of any version since schema 1 writes. It goes on to hold for the newest schema: a process of the version
 * before runs until it is replaced.
 */
async function uploadAsBefore(open: Open, id: string): Promise<void> {
  const now = Date.now()
  await open.query(
    `insert into jobs (id, state, created_at, finished_at, owner, request_id, caller, destination, origins, files, steps, attempts, problem, next_attempt_at)
     values ('${id}', 'uploading', ${now}, null, 'old', 'r', 'loopback', 'local/blog', '["a"]', '[]', '[]', 0, null, 0)`,
  )
  await open.query(
    `insert into history (job_id, position, time, origin, url, key, size, content_type, sha256, delete_url, destination, caller, request_id)
     values ('${id}', 0, ${now}, 'a', 'u', '${id}', 1, 'text/plain', 's', null, 'local/blog', 'loopback', 'r')`,
  )
  await open.query(
    `insert into repetitions (key, fingerprint, owner, created_at, job_id, status, body) values ('${id}', 'f', 'old', ${now}, null, 200, '{}')`,
  )
  await open.query(
    `update jobs set state = 'finished', finished_at = ${now}, files = '[]', steps = '["history"]' where id = '${id}' and owner = 'old'`,
  )
}

it('there is a store of every schema', async () => {
  const names = (await readdir(STORES)).filter(name => name.endsWith('.sql')).sort()
  expect(names).toEqual(['postgres', 'sqlite'].flatMap(engine => SCHEMAS.map(one => `${engine}-${one}.sql`)))
})

/** The file is never changed: what it says means the same in every later version. */
it('a configuration of the first version is understood', async () => {
  const cwd = await makeDirectory()
  const file = fileURLToPath(new URL('fixtures/configurations/0.1.json', import.meta.url))
  const env = { HOME: cwd, UPLOAD_KEY: 'k3y-of-the-first-version', HOOK_SECRET: 's3cret-of-a-hook' }
  const { destinations, settings } = await loadConfig({ cwd, platform: 'linux', env, file })
  expect(destinations.map(({ type, name }) => `${type}/${name}`)).toEqual(['local/blog', 's3/archive'])
  expect(settings.limits.fileSize).toBe(20 * 1024 * 1024)
})
