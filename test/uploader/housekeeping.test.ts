import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import type { Target } from '../../src/providers/contract.ts'
import { sql } from '../../src/store/sql.ts'
import { readUpload } from '../../src/store/upload-rows.ts'
import { createHousekeeping } from '../../src/uploader/housekeeping.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { lockSqlite } from '../helpers/sqlite.ts'
import { addEntry, kill } from '../helpers/stores.ts'
import { openProcess, type TestDestination, type TestProcess } from '../helpers/uploader.ts'

const DAY_MS = 24 * 60 * 60 * 1000
/** Pause between two rounds, in milliseconds. */
const ROUND_MS = 20
const put: Target['put'] = async ({ key }) => ({ url: `https://x.example/${key}` })

async function start({ deps }: TestProcess) {
  // Two signs of life of this process: those of others can be relied on.
  for (let i = 0; i < 2; i++) await deps.owner.beat().catch(() => {})
  const housekeeping = createHousekeeping(deps, ROUND_MS)
  onTestFinished(() => housekeeping.stop())
  housekeeping.adopt(deps.destinations, 7)
  return housekeeping
}

/** Has a process of its own begin an upload of `a.txt` and be killed before the destination has answered. */
async function leaveUpload(more: Partial<Target> = {}, common: TestDestination['common'] = {}) {
  let isReached = false
  const hangs = () => {
    isReached = true
    return new Promise<never>(() => {})
  }
  const killed = await openProcess({ one: { target: { put: hangs, ...more }, common } })
  void killed.send({ 'a.txt': 'one' }).catch(() => {})
  await expect.poll(() => isReached).toBe(true)
  await kill(killed.database, killed.owner.id)
  return killed
}

const objectsOf = ({ database }: TestProcess) =>
  database.read(db => db.all(sql`select state, holder, expires_at from objects`))

it('what a process that is gone was uploading is reported, and its quota is given back', async () => {
  const killed = await leaveUpload()
  const here = await openProcess({ one: { target: { put } } }, {}, killed.directory)
  await start(here)
  const uploads = () => here.database.read(db => db.all(sql`select state, reserved, problem from uploads`))
  const problem = 'The process ended during the upload.'
  await expect.poll(uploads).toEqual([{ state: 'failed', reserved: '[]', problem }])
  expect(here.warnings).toMatchObject([
    { message: expect.stringContaining('An upload was interrupted'), details: { origins: ['a.txt'] } },
  ])
})

/** What the destination says of an object that a killed process was sending, and what becomes of it. */
const LEFT: [string, Partial<Target>, boolean[], unknown[]][] = [
  ['nothing is there', {}, [false, false], []],
  [
    'it is there, and nothing was before',
    {},
    [false, true],
    [{ state: 'storing', expires_at: expect.any(Number) }],
  ],
  [
    'it is there, and can not be removed',
    { remove: undefined as never },
    [false, true],
    [{ expires_at: null }],
  ],
]
it.each(LEFT)('the object of a killed process when %s', async (_, more, answers, expected) => {
  const looks = [...answers]
  const exists = async () => looks.shift() ?? false
  const target = { remove: async () => {}, exists, ...more }
  const killed = await leaveUpload(target)
  const here = await openProcess({ one: { target: { put, ...target } } }, {}, killed.directory)
  await start(here)
  await expect.poll(() => looks).toEqual([])
  await expect.poll(() => objectsOf(here)).toMatchObject(expected)
})

it('the destination of a killed process did not respond: other content gets another key, the same content this one', async () => {
  const looks = [() => false, () => expect.fail('it is down')]
  const exists = async () => looks.shift()?.() ?? false
  const killed = await leaveUpload({ exists })
  const here = await openProcess({ one: { target: { put, exists } } }, {}, killed.directory)
  await start(here)
  await expect.poll(() => looks).toEqual([])
  await expect.poll(() => objectsOf(here)).toMatchObject([{ state: 'storing', holder: '' }])
  const keyOf = async (content: string) => (await here.send({ 'a.txt': content })).outcomes[0]
  expect(await keyOf('two')).toMatchObject({ key: 'a-2.txt' })
  expect(await keyOf('one')).toMatchObject({ key: 'a.txt' })
})

it('pending uploads are finished, also those that were planned by a clock that has been set back, and one that fails keeps no other from its turn', async () => {
  const directory = await makeDirectory()
  const command = ['sh', '-c', 'test -e "$0/$UPLOAD_ID"', directory]
  const hooks = [{ name: 'picky', command, timeoutMs: 20_000 }]
  const here = await openProcess({ one: { target: { put } } }, { hooks }, directory)
  for (const name of ['a.txt', 'b.txt', 'c.txt']) await here.send({ [name]: name }).catch(() => {})
  const rows = await here.database.read(db => db.all<{ id: string }>(sql`select id from uploads order by id`))
  const ids = rows.map(({ id }) => id)
  for (const id of ids.slice(1)) await writeFile(join(directory, id), '')
  await here.database.tx(async db => {
    await db.run(sql`update uploads set due_at = ${await db.now()}`)
    await db.run(sql`update uploads set due_at = due_at + ${30 * DAY_MS} where id = ${ids[2]!}`)
  })
  await start(here)
  const states = () =>
    Promise.all(ids.map(id => here.database.read(async db => (await readUpload(db, id))?.state)))
  await expect.poll(states).toEqual(['stored', 'done', 'done'])
})

it('says once that uploads fail for the database, and once that it is back, while nobody uploads', async () => {
  const here = await openProcess({ one: { target: { put } } })
  await addEntry(here.database)
  const unlock = lockSqlite(join(here.directory, 'store.db'))
  await start(here)
  const messages = () => here.warnings.map(({ message }) => message)
  const down = expect.stringContaining("The database of the server can't be used, and uploads fail: ")
  await expect.poll(messages).toEqual([down])
  unlock()
  await expect.poll(messages).toEqual([down, 'The database of the server can be used again'])
  expect(here.database.problem()).toBeUndefined()
})

/** Adds an old idempotency key, which the first round deletes at its end. @returns reads the keys */
async function addOldKey({ database }: TestProcess) {
  await database.tx(db =>
    db.run(
      sql`insert into requests (key, fingerprint, upload, seed, created_at) values ('k', 'f', 'u', 's', 1)`,
    ),
  )
  return () => database.read(db => db.all(sql`select key from requests`))
}

it('nothing is taken from others while it is not known whether they could give a sign of life', async () => {
  const killed = await leaveUpload()
  const here = await openProcess({ one: { target: { put } } }, {}, killed.directory)
  const oldKeys = await addOldKey(here)
  const owner = { ...here.owner, isContinuous: () => false }
  await start({ ...here, deps: { ...here.deps, owner } })
  await expect.poll(oldKeys).toEqual([])
  expect(await here.database.read(db => db.all(sql`select state from uploads`))).toEqual([
    { state: 'uploading' },
  ])
})
