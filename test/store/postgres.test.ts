import pg from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import { createPostgresStore } from '../../src/store/postgres.ts'
import { eventually } from '../helpers/eventually.ts'
import { closed, newDatabase, newJob, postgresOfFile } from '../helpers/stores.ts'

const postgres = postgresOfFile()

it.for([
  ['commit', false],
  ['rollback', true],
] as const)(
  'waits with a takeover for the %s of what a killed process was writing to PostgreSQL',
  async ([end, isTaken], context) => {
    const url = await newDatabase(await postgres(context))
    const store = closed(createPostgresStore(url))
    const job = newJob({ owner: 'gone' })
    await store.reserve('k', { fingerprint: 'print', owner: 'gone', seed: 's', createdAt: 9 })
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

it('refuses a wrong password of PostgreSQL without showing it', async context => {
  const server = await postgres(context)
  const store = closed(createPostgresStore(server.url.replace('pgpass', 'wrong-secret')))
  const failure = await store.begin(newJob()).catch(error => error as Error)
  expect(failure).toBeInstanceOf(Error)
  expect(String(failure)).not.toContain('wrong-secret')
})
