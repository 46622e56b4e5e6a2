import pg from 'pg'
import { expect, it, onTestFinished, type TestContext } from 'vitest'
import { openPostgres } from '../../../src/store/postgres.ts'
import { sql } from '../../../src/store/sql.ts'
import type { NewUpload } from '../../../src/store/upload-rows.ts'
import { begin } from '../../../src/store/uploads.ts'
import { eventually } from '../../helpers/eventually.ts'
import {
  addEntry,
  closed,
  kill,
  newDatabase,
  newOwnerIn,
  newUpload,
  postgresOfFile,
} from '../../helpers/stores.ts'

const postgres = postgresOfFile()
const urlOf = async (context: TestContext) => newDatabase(await postgres(context))

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client(url)
  await client.connect()
  onTestFinished(() => client.end())
  return client
}

it('refuses a wrong password of PostgreSQL without showing it', async context => {
  const server = await postgres(context)
  const database = closed(openPostgres(server.url.replace('pgpass', 'wrong-secret')))
  const failure = await addEntry(database).catch(error => error as Error)
  expect(failure).toBeInstanceOf(Error)
  expect(String(failure)).not.toContain('wrong-secret')
})

it('uses tables of PostgreSQL that were made for it, without the right to create some', async context => {
  const url = await urlOf(context)
  await closed(openPostgres(url)).tx(db => db.now())
  const client = await connect(url)
  const role = `r${new URL(url).pathname.slice(1)}`
  await client.query(`create role ${role} login password 'p'; revoke create on schema public from public;
    grant select, insert, update, delete on all tables in schema public to ${role}`)
  const limited = new URL(url)
  Object.assign(limited, { username: role, password: 'p' })
  await addEntry(closed(openPostgres(limited.href)))
})

it('a query that PostgreSQL does not finish in time ends, and its connection is not used again', async context => {
  const url = await urlOf(context)
  const database = closed(openPostgres(url, 300))
  const slow = database.tx(async db => {
    await db.run(sql`insert into owners values ('of the slow one', 1)`)
    await db.all(sql`select pg_sleep(30)`)
  })
  await expect(slow).rejects.toMatchObject({
    code: 'database_unavailable',
    message: expect.stringContaining('did not finish a query in time'),
  })
  expect(await database.read(db => db.all(sql`select id from owners`))).toEqual([])
  expect(database.problem()).toBeDefined()
  await addEntry(database)
  expect(database.problem()).toBeUndefined()
})

it('transactions that block each other in PostgreSQL are repeated', async context => {
  const database = closed(openPostgres(await urlOf(context)))
  await database.tx(db => db.run(sql`insert into owners values ('a', 0), ('b', 0)`))
  const add = (ids: readonly string[]) =>
    database.tx(async db => {
      for (const id of ids) {
        await db.run(sql`update owners set seen_at = seen_at + 1 where id = ${id}`)
        await db.all(sql`select pg_sleep(0.05)`)
      }
    })
  await Promise.all([add(['a', 'b']), add(['b', 'a'])])
  expect(await database.read(db => db.all(sql`select seen_at from owners`))).toEqual([
    { seen_at: 2 },
    { seen_at: 2 },
  ])
})

it.for([
  ['commit', 'known'],
  ['rollback', 'begun'],
] as const)(
  'a repeated request waits for the %s of what a killed process was writing to PostgreSQL',
  async ([end, expected], context) => {
    const url = await urlOf(context)
    const database = closed(openPostgres(url))
    const [me, gone] = [await newOwnerIn(database), await newOwnerIn(database)]
    const request = (upload: NewUpload) => ({ key: 'k', fingerprint: 'f', seed: `seed of ${upload.id}` })
    const start = (upload: NewUpload) =>
      begin(database, upload, { id: upload.id, claimed: new Set() }, [], { request: request(upload) })
    const upload = newUpload({ owner: gone.id, createdAt: Date.now() })
    await start(upload)
    await kill(database, gone.id)
    const killed = await connect(url)
    await killed.query('begin')
    await killed.query(`select 1 from requests for update`)
    await killed.query(`update uploads set state = 'done', outcomes = '{"files":[{}]}' where id = $1`, [
      upload.id,
    ])
    const repeating = start(newUpload({ owner: me.id, createdAt: Date.now() }))
    await eventually(async () => {
      expect((await killed.query('select 1 from pg_locks where not granted')).rowCount).toBe(1)
    })
    await killed.query(end)
    expect((await repeating).is).toBe(expected)
  },
)
