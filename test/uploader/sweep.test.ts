import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it, onTestFinished } from 'vitest'
import type { Target } from '../../src/providers/contract.ts'
import type { Database } from '../../src/store/database.ts'
import { findFiles } from '../../src/store/history.ts'
import { overdue } from '../../src/store/removals.ts'
import { type Db, sql } from '../../src/store/sql.ts'
import { createSweeper, type SweeperDeps } from '../../src/uploader/sweep.ts'
import { addEntry } from '../helpers/stores.ts'
import { openProcess } from '../helpers/uploader.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const put = async () => ({ url: 'https://x.example/' })

/** A sweeper over destinations that remove as the test says. @param wrap the database as the sweeper sees it */
async function open(
  remove: NonNullable<Target['remove']>,
  change: Partial<SweeperDeps> = {},
  wrap = (database: Database) => database,
) {
  const expiring = { target: { put, remove, exists: async () => false }, common: { expiry: {} } }
  const { deps, database, directory, send } = await openProcess({ a: expiring, b: expiring })
  const told: { level: string; message: string; keys?: unknown; failed?: unknown }[] = []
  const note =
    (level: string) =>
    (message: string, details: { keys?: unknown; failed?: unknown } = {}) => {
      const { keys, failed } = details
      told.push({
        level,
        message,
        ...(keys !== undefined && { keys }),
        ...(failed !== undefined && { failed }),
      })
    }
  const sweeper = createSweeper({
    ...deps,
    ...{ database: wrap(database), everyMs: 20, timeoutMs: 1000, now: Date.now },
    mask: text => text.replace('s3cret', '***'),
    ...{ info: note('info'), warn: note('warn'), error: note('error') },
    ...change,
  })
  onTestFinished(sweeper.stop)
  const remember = (key: string, expiresAt: number, name = 'a') =>
    addEntry(database, {
      ...{ jobId: `job ${key} ${expiresAt}`, key, expiresAt },
      ...{ destination: `test/${name}`, location: `test/${name}/` },
    })
  const left = async () =>
    (await database.read(db => overdue(db, Date.now(), ['test/a', 'test/b'], 1000))).length
  return { database, directory, sweeper, told, remember, left, send }
}

it('a failure is told once for each destination in a round, masked, and tried again', async () => {
  let isDown = true
  const { sweeper, told, remember, left, database } = await open(async () => {
    if (isDown) throw new Error('no way with s3cret')
  })
  for (const key of ['1', '2', '3']) await remember(key, Date.now() - 1000)
  sweeper.start()
  await expect
    .poll(() => told)
    .toEqual([
      {
        ...{ level: 'warn', failed: 3 },
        message: expect.stringMatching(/^Could not delete expired files at test\/a: .*: no way with \*\*\*/),
      },
    ])
  isDown = false
  await database.tx(db => db.run(sql`update objects set retry_at = 0`))
  await expect.poll(left).toBe(0)
  // Said when the round is over, and in two rounds when one begins between the postponed ones.
  const removed = () => told.slice(1).flatMap(({ keys = [] }) => keys as string[])
  await expect.poll(() => removed().sort()).toEqual(['1', '2', '3'])
  for (const { level, message } of told.slice(1))
    expect({ level, message }).toEqual({ level: 'info', message: 'Deleted expired files' })
})

it('a file that is there for a week after its time is an error', async () => {
  const { sweeper, told, remember } = await open(() => Promise.reject(new Error('no')))
  await remember('old', Date.now() - 8 * DAY_MS)
  sweeper.start()
  await expect.poll(() => told).toMatchObject([{ level: 'error' }])
})

it('a destination that fails again and again holds up no other one, and is left alone until the next round', async () => {
  const tried = new Set<string>()
  const { sweeper, told, remember, left } = await open(async key => {
    tried.add(key)
    if (key.startsWith('bad')) throw new Error('no')
  })
  for (let n = 0; n < 60; n++) await remember(`bad ${n}`, n + 1)
  await remember('good', 1000, 'b')
  sweeper.start()
  await expect.poll(() => tried.has('good')).toBe(true)
  await expect.poll(() => told.find(({ failed }) => failed !== undefined)).toMatchObject({ failed: 32 })
  await expect.poll(left).toBe(60)
})

/** A database whose statements are looked at. @param look gets the text of each one, before it runs */
const watch = (db: Db, look: (text: string) => void): Db => ({
  ...db,
  run(query) {
    look(query.text)
    return db.run(query)
  },
  all(query) {
    look(query.text)
    return db.all(query)
  },
})

it('a removal that hangs is cut short at the end, and its key is free', async () => {
  let isReached = false
  const { sweeper, remember, send } = await open(
    (_key, signal) =>
      new Promise((_, reject) => {
        isReached = true
        signal.addEventListener('abort', () => reject(signal.reason))
      }),
    { timeoutMs: 60_000 },
  )
  await remember('a.txt', 1)
  sweeper.start()
  await expect.poll(() => isReached).toBe(true)
  const waiting = send({ 'a.txt': 'one' })
  await sweeper.stop()
  expect((await waiting).outcomes).toMatchObject([{ ok: true }])
})

it('a removal that hung was never given up on Node 20, and no file expired any more', async () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage: () => void = runInNewContext('gc')
  let isReached = false
  const { sweeper, told, remember, left } = await open(
    (key, signal) =>
      new Promise((resolve, reject) => {
        if (key !== 'hangs') return resolve()
        isReached = true
        signal.addEventListener('abort', () => reject(signal.reason))
      }),
    { timeoutMs: 300 },
  )
  await remember('hangs', 1)
  sweeper.start()
  await expect.poll(() => isReached).toBe(true)
  await new Promise(setImmediate)
  collectGarbage()
  await expect
    .poll(() => told, { timeout: 5000 })
    .toEqual([expect.objectContaining({ message: expect.stringContaining('it took longer than 300 ms') })])
  await remember('goes', 2)
  await expect.poll(left).toBe(1)
})

/** A database whose answer to the first transaction that runs such a statement is lost, although it was committed. */
function losing(statement: string) {
  const state = { lost: 0 }
  const wrap = (database: Database): Database => ({
    ...database,
    async tx(work) {
      let isIt = false
      const look = (text: string) => {
        isIt ||= text.startsWith(statement)
      }
      const result = await database.tx(db => work(watch(db, look)))
      if (isIt && state.lost++ === 0) throw new Error('the answer is lost')
      return result
    },
  })
  return { state, wrap }
}

it('what was uploaded again counted as removed when the answer of the database to the removal before was lost', async () => {
  const { wrap } = losing('delete from objects')
  const { database, sweeper, told, remember, left } = await open(async () => {}, {}, wrap)
  await remember('a', 1)
  sweeper.start()
  await expect.poll(() => told).toMatchObject([{ level: 'warn' }])
  await remember('a', Date.now() + DAY_MS)
  await remember('of a later round', 1)
  await expect.poll(left).toBe(0)
  expect(await database.read(db => findFiles(db, { isRemoved: false, limit: 9 }))).toMatchObject([
    { key: 'a' },
  ])
})

it('an object stayed locked until the server ended when the answer that had locked it was lost', async () => {
  const { state, wrap } = losing("update objects set state = 'removing'")
  const { sweeper, remember, left } = await open(async () => {}, {}, wrap)
  await remember('a', 1)
  sweeper.start()
  await expect.poll(left, { timeout: 5000 }).toBe(0)
  expect(state.lost).toBe(2)
})
