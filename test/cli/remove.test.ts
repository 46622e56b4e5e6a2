import { mkdir, readdir, realpath, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, expect, it } from 'vitest'
import type { HistoryEntry } from '../../src/store/contract.ts'
import type { Database } from '../../src/store/database.ts'
import { findFiles, type HistoryFilter } from '../../src/store/history.ts'
import { sql } from '../../src/store/sql.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import { begin } from '../../src/store/uploads.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { upload } from '../helpers/form.ts'
import { startApp } from '../helpers/start-app.ts'
import { addEntry, closed, jobAt, newOwnerIn, newUpload } from '../helpers/stores.ts'
import { startStubBucket } from '../helpers/stub-bucket.ts'
import { runCli } from './run-cli.ts'

const DAY_MS = 24 * 60 * 60 * 1000

let cwd: string
let database: Database

beforeEach(async () => {
  cwd = await makeDirectory()
  const local = (name: string) => ({ directory: name, serve: true })
  const config = {
    default: 'local/main',
    database: { path: 'store.db' },
    providers: {
      local: { main: local('main'), copy: local('copy') },
      imgur: { a: { clientId: 'x' } },
    },
  }
  await writeFile(join(cwd, 'upload-server.json'), JSON.stringify(config))
  database = closed(openSqlite(join(cwd, 'store.db')))
})

const remove = (...args: string[]) => runCli(['remove', ...args], { cwd })
const linkOf = (key: string) => `http://127.0.0.1:36677/files/main/${key}`

const find = (filter: HistoryFilter) => database.read(db => findFiles(db, filter))

const locationOf = async (name: string) => `file:${await realpath(cwd)}/${name}/`

const START = Date.now()
const idOfJob = (job: string) => jobAt(START, job)

/** Entries of one job, and their files. */
async function remember(job: string, ...changes: Partial<HistoryEntry>[]): Promise<void> {
  for (const [index, change] of changes.entries()) {
    const { key = 'a.png', destination = 'local/main' } = change
    const [type, name = ''] = destination.split('/')
    if (type === 'local') {
      await mkdir(join(cwd, name, key, '..'), { recursive: true })
      await writeFile(join(cwd, name, key), 'png')
    }
    await addEntry(database, {
      ...{ jobId: jobAt(change.time ?? START, job), requestId: `request-${job}`, index, origin: key, key },
      ...{ url: linkOf(key), destination, location: await locationOf(name), ...change },
    })
  }
}

async function files(): Promise<string[]> {
  const lists = ['main', 'copy'].map(async folder =>
    (await readdir(join(cwd, folder), { recursive: true, withFileTypes: true }).catch(() => []))
      .filter(entry => entry.isFile())
      .map(entry => join(entry.parentPath, entry.name).slice(cwd.length + 1)),
  )
  return (await Promise.all(lists)).flat().sort()
}

const COPY = { index: 0, destination: 'local/copy' }

it.each([
  ['remove', 'link', linkOf('a.png')],
  ['delete', 'key', 'a.png'],
  ['rm', 'key', 'a.png'],
])('%s: a %s goes with its copies, and all entries of it are marked', async (name, _, word) => {
  await remember('job1', {}, { ...COPY, key: 'other-name.png' })
  await remember('job2', { expiresAt: Date.now() + DAY_MS })
  await remember('job3', { key: 'b.png' })
  expect(await runCli([name, word, '--yes'], { cwd })).toMatchObject({
    code: 0,
    stdout: 'removed   local/main  a.png\nremoved   local/copy  other-name.png\n',
  })
  expect(await files()).toEqual(['main/b.png'])
  expect((await find({ isRemoved: false, limit: 9 })).map(({ key }) => key)).toEqual(['b.png'])
  const due = sql`select name from objects where expires_at is not null`
  expect(await database.read(db => db.all(due))).toEqual([])
  // What was removed already is said, and is no failure.
  for (const again of [word, idOfJob('job1'), 'request-job1'])
    expect(await remove(again, '--yes')).toMatchObject({
      ...{ code: 0, stdout: '' },
      stderr: expect.stringMatching(/: was already deleted at \d{4}-\d\d-\d\d [\d:]+\n$/),
    })
})

it.each([
  ['id', () => idOfJob('job1')],
  ['request id', () => 'request-job1'],
])('of the upload with this %s what another upload names, too, stays', async (_, word) => {
  await remember('job1', { key: 'mine.png' }, { key: 'shared.png' })
  await remember('job2', { key: 'shared.png' })
  expect(await remove(word(), '--yes')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('kept      local/main  shared.png: another upload shares it'),
  })
  expect(await files()).toEqual(['main/shared.png'])
  expect(await find({ isRemoved: true, limit: 9 })).toMatchObject([{ key: 'mine.png' }])
})

it('a client that chose the request id of another one loses nothing of either', async () => {
  await remember('job1', { key: 'hers.png', caller: 'alice', requestId: 'r1' })
  await remember('job2', { key: 'his.png', caller: 'mallory', requestId: 'r1' })
  await remember('job3', { key: 'more.png', caller: 'mallory', requestId: 'r1' })
  const { code, stderr } = await remove('r1', '--yes')
  expect(code).toBe(1)
  expect(stderr).toBe(
    `r1: 2 clients have uploaded with this request id. Specify the id of an upload: ${idOfJob('job3')} of "mallory", ${idOfJob('job2')} of "mallory", ${idOfJob('job1')} of "alice".\n`,
  )
  expect(await files()).toEqual(['main/hers.png', 'main/his.png', 'main/more.png'])
})

it('leaves a copy that another file has, too', async () => {
  await remember('job1', { key: 'a.png' }, { ...COPY, key: 'same.png' })
  await remember('job2', { key: 'b.png' }, { ...COPY, key: 'same.png' })
  expect((await remove('a.png', '--yes')).code).toBe(0)
  expect(await files()).toEqual(['copy/same.png', 'main/b.png'])
})

it('old files of a destination go, below a folder, unless they were uploaded again since, in any number', async () => {
  const time = Date.now() - 31 * DAY_MS
  const many = Array.from({ length: 300 }, (_, n) => `ci/${n}.png`)
  const old = [...many, 'ci2/other.png', 'old.png'].map(key => ({ key, time }))
  await remember('job1', ...old)
  await remember('job2', { key: 'ci/7.png' }, { key: 'ci/new.png' })
  const select = ['--destination', 'local', '--older-than', '30d', '--path', '/ci/']
  const before = await files()
  const dry = await remove(...select, '--dry-run')
  expect(dry).toMatchObject({ code: 0, stdout: expect.stringContaining('remove    local/main  ci/8.png\n') })
  expect(dry.stdout.match(/^remove /gm)).toHaveLength(299)
  expect(await files()).toEqual(before)
  expect((await remove(...select, '--yes')).code).toBe(0)
  expect(await files()).toEqual(['main/ci/7.png', 'main/ci/new.png', 'main/ci2/other.png', 'main/old.png'])
})

it('a host that only gave an address that removes has it printed', async () => {
  const deleteUrl = 'https://host.example/delete/1'
  await remember('job1', { destination: 'imgur/a', key: 'x.png', deleteUrl })
  expect(await remove('x.png', '--yes')).toMatchObject({
    code: 1,
    stdout: `by hand   imgur/a  x.png: ${deleteUrl}\n`,
  })
})

it('what an upload is at is not removed', async () => {
  await remember('job1', {})
  const { id: owner } = await newOwnerIn(database)
  const wanted = {
    ...{ destination: 'local/main', location: await locationOf('main'), key: 'a.png', sha256: 'x' },
    onConflict: 'replace' as const,
    ...{ isContentKey: false, dedupe: false, expiresAt: null },
  }
  const sent = [{ index: 0, size: 1, wanted: [wanted] }]
  await begin(database, newUpload({ id: 'job2', owner }), { id: 'job2', claimed: new Set() }, sent, {})
  expect(await remove('a.png', '--yes')).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^FAILED .*right now/),
  })
  expect(await files()).toEqual(['main/a.png'])
})

it.each([
  ['{filename}{extname}', 'replace'],
  ['{sha256}{extname}', 'replace'],
])('an object was removed while it was uploaded (%s)', async (keyTemplate, onConflict) => {
  const bucket = await startStubBucket()
  const s3 = { ci: { ...bucket.options, onConflict } }
  const app = await startApp({ config: { keyTemplate, limits: { retries: 0 }, providers: { s3 } } })
  const send = () => upload(`${app.url}/upload`, { 'a.txt': 'one' })
  const { result } = await send()
  const rm = () =>
    runCli(['remove', String(result[0]), '--yes'], {
      cwd: app.directory,
      env: { XDG_DATA_HOME: join(app.directory, 'data') },
    })
  bucket.hold()
  const again = send()
  await expect.poll(() => bucket.puts).toHaveLength(2)
  expect(await rm()).toMatchObject({ code: 1, stdout: expect.stringMatching(/^FAILED .*right now/) })
  bucket.letGo()
  expect(await again).toMatchObject({ status: 200, result })
  expect([...bucket.objects.keys()]).toEqual([bucket.puts[0]])
  expect(await rm()).toMatchObject({ code: 0, stdout: expect.stringMatching(/^removed /) })
  expect([...bucket.objects.keys()]).toEqual([])
})

it.each([
  [['a.png'], /Add --yes/],
  [['--yes'], /Specify links, object keys or ids/],
  [['a.png', '--older-than', '1d', '--destination', 'local', '--yes'], /Specify links/],
  [['--older-than', '1d', '--yes'], /Specify links/],
  [['a.png', '--path', 'x', '--yes'], /--path requires/],
  [['--older-than', 'soon'], /Must be a time such as/],
  [['a.png', '--destination', 's3', '--yes'], /not a destination of this configuration/],
  [['../main/a.png', '--yes'], /not found in the upload history/],
  [['%', '--yes'], /not found in the upload history/],
])('attack: %j removes nothing', async (args, message) => {
  await remember('job1', {})
  expect(await remove(...args)).toMatchObject({ code: 1, stderr: expect.stringMatching(message) })
  expect(await files()).toEqual(['main/a.png'])
})
