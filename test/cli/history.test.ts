import { createHash } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import type { HistoryEntry } from '../../src/store/contract.ts'
import { postpone, takeDue } from '../../src/store/removals.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import { showMoment } from '../../src/times.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { formOf, post } from '../helpers/form.ts'
import { startApp } from '../helpers/start-app.ts'
import { addEntry, closed, jobAt } from '../helpers/stores.ts'
import { runBuilt, runCli } from './run-cli.ts'

const DAY_MS = 24 * 60 * 60 * 1000

let cwd: string
beforeEach(async () => {
  cwd = await makeDirectory()
})

/** What is remembered here is of no destination of the embedded default. */
const history = (...args: string[]) => runCli(['history', '--all', ...args], { cwd })
const list = async (...args: string[]): Promise<HistoryEntry[]> =>
  JSON.parse((await history('--json', ...args)).stdout)
const expired = (...args: string[]) => runCli(['history', 'expired', ...args], { cwd })
const prune = (...args: string[]) => runCli(['history', 'prune', ...args], { cwd })
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

const openDatabase = () => closed(openSqlite(join(cwd, 'upload-server', 'store.db')))

/** Puts entries into the database of the embedded default, each of its own upload and object. */
async function remember(...changes: Partial<HistoryEntry>[]): Promise<void> {
  const database = openDatabase()
  for (const [n, change] of changes.entries()) {
    const { destination = 's3/blog' } = change
    await addEntry(database, {
      ...{ jobId: jobAt(change.time ?? Date.now(), `${n}`), destination, location: `${destination}/${n}/` },
      ...{ url: 'https://x.example/2026/cat.png', key: '2026/cat.png', size: 1234 },
      ...{ origin: 'cat.png', sha256: sha256('cat'), ...change },
    })
  }
  await database.close()
}

it.each([
  ['history'],
  ['history', 'expired'],
  ['history', 'prune', '0d', '--yes'],
  ['remove', 'a.png', '--yes'],
  ['remove', 'a.png', '--dry-run'],
  ['finalize'],
])('no database is created by %s %s, of which a backup would succeed', async (...args) => {
  await runCli(args, { cwd })
  expect(await readdir(join(cwd, 'upload-server')).catch(() => [])).not.toContain('store.db')
  const { code, stderr } = await runCli(['backup', 'backup.db'], { cwd })
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('There is no database at') })
})

it.each([[], ['expired'], ['quotas']])('reading changes no byte: %s', async (...args) => {
  await remember({})
  const path = join(cwd, 'upload-server', 'store.db')
  const before = await readFile(path)
  expect((await runCli(['history', ...args], { cwd })).code).toBe(0)
  expect((await readFile(path)).equals(before)).toBe(true)
  // Only the SQLite of Node removes its empty log.
  expect(await readFile(`${path}-wal`).catch(() => Buffer.of())).toHaveLength(0)
})

it('lists what was stored, newest first, with local times', async () => {
  await remember(
    {
      ...{ time: Date.UTC(2026, 10, 21, 9, 5, 7), caller: 'proxy: alice', key: 'gone.png' },
      removedAt: Date.UTC(2026, 10, 23),
    },
    {
      ...{ time: Date.UTC(2026, 10, 22), origin: '猫 😀.png', size: 5_000_000_000 },
      ...{ destination: 'local/Default', expiresAt: Date.UTC(2027, 0, 1) },
    },
    { time: Date.UTC(2026, 10, 20) },
  )
  expect(await runBuilt(['history', '--all'], { cwd, env: { TZ: 'Asia/Kolkata' } })).toEqual({
    code: 0,
    stderr: '',
    stdout:
      '2026-11-22 05:30:00  local/Default  5000000000  loopback      expires 2027-01-01 05:30:00  猫 😀.png  https://x.example/2026/cat.png\n' +
      '2026-11-21 14:35:07  s3/blog              1234  proxy: alice  removed 2026-11-23 05:30:00  cat.png  https://x.example/2026/cat.png\n' +
      '2026-11-20 05:30:00  s3/blog              1234  loopback      never expires                cat.png  https://x.example/2026/cat.png\n',
  })
})

it('lists only what the filters say', async () => {
  const now = Date.now()
  const dog = { origin: 'dog', destination: 'local/x', url: 'https://x/dog.png', caller: 'proxy: alice' }
  await remember(
    { origin: 'old', time: now - 9 * DAY_MS },
    { origin: 'new', time: now },
    { origin: 'other', time: now - 1000, destination: 's3/other' },
    { ...dog, time: now - DAY_MS, sha256: sha256('dog') },
  )
  const cases: [string, string[]][] = [
    ['--destination s3/blog', ['new', 'old']],
    ['--destination s3', ['new', 'other', 'old']],
    ['--destination blog', []],
    ['--search OTHER', ['other']],
    ['--search dog.png', ['dog']],
    ['--search %', []],
    [`--sha256 ${sha256('dog')}`, ['dog']],
    [`--sha256 ${sha256('dog').slice(0, 4).toUpperCase()}`, ['dog']],
    ['--since 2d', ['new', 'other', 'dog']],
    ['--until 12h', ['dog', 'old']],
    ['--since 2d --until 12h', ['dog']],
    ['--name OTH', ['other']],
    ['--link x/dog', ['dog']],
    ['--caller ALICE', ['dog']],
    ['--since 2020-01-01', ['new', 'other', 'dog', 'old']],
    ['--limit 2', ['new', 'other']],
    ['--limit 0', []],
    ['--destination s3 --since 2d --limit 1', ['new']],
  ]
  for (const [args, expected] of cases)
    expect([args, (await list(...args.split(' '))).map(({ origin }) => origin)]).toEqual([args, expected])
})

it('a name with escape sequences does not take over the terminal', async () => {
  const origin = '\u001b]0;title\u0007\u001b[2J\u009b31m\u007f\u202egnp.exe\r\n\tend.png'
  await remember({ origin })
  const controls = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/
  const { stdout } = await history()
  expect(stdout).not.toMatch(controls)
  expect(stdout.trimEnd().split('\n')).toEqual([expect.stringContaining('gnp.exe???end.png')])
  const json = await history('--json')
  expect(json.stdout).not.toMatch(controls)
  expect(JSON.parse(json.stdout)[0].origin).toBe(origin)
})

it('knows what a running server and the command line have stored, and tells scripts everything', async () => {
  const app = await startApp({ directory: cwd, env: { XDG_DATA_HOME: cwd } })
  const { url } = app
  const answer = await post(`${url}/upload`, { body: formOf({ 'a.txt': 'one', 'b.txt': 'two' }) })
  await writeFile(join(cwd, 'c.txt'), 'three')
  const { stdout: link } = await runCli(['upload', 'c.txt'], { cwd })
  const entries = await list()
  expect(entries.map(({ caller, index, url, sha256 }) => [caller, index, url, sha256])).toEqual([
    ['command line', 0, link.trim(), sha256('three')],
    ['loopback', 1, answer.result[1], sha256('two')],
    ['loopback', 0, answer.result[0], sha256('one')],
  ])
  expect(entries[1]).toEqual({
    ...{ time: expect.stringMatching(/^\d{4}-.*Z$/), jobId: expect.any(String), index: 1, origin: 'b.txt' },
    ...{ url: answer.result[1], key: expect.any(String), size: 3, contentType: 'text/plain' },
    ...{ sha256: sha256('two'), destination: 'local/Default', caller: 'loopback' },
    requestId: answer.headers.get('x-request-id'),
  })
  for (const path of ['/history', '/files/Default/store.db', '/files/Default/..%2fstore.db'])
    expect((await fetch(url + path)).status).toBe(404)
})

describe('prune', () => {
  it('forgets nothing without --yes where nobody can be asked', async () => {
    await remember({ time: Date.now() - 9 * DAY_MS })
    expect(await prune('5d', '--all')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'Could not ask for confirmation without a terminal. Add --yes to delete the entries.\n',
    })
    expect(await list()).toHaveLength(1)
  })

  it.each([['--search', 'x'], ['--until', '7d'], ['--json']])(
    'deletes nothing instead of everything because it ignores %s',
    async (...filter) => {
      await remember({ time: Date.now() - 9 * DAY_MS })
      const after = await prune('0d', '--all', ...filter, '--yes')
      expect(after.stderr).toContain(`error: unknown option '${filter[0]}'`)
      const before = await history(...filter, 'prune', '0d', '--all', '--yes')
      expect(before.stderr).toMatch(/^--[\w-]+ must be written after "prune"\.$/m)
      expect([after.code, before.code]).toEqual([1, 1])
      expect(await list()).toHaveLength(1)
    },
  )

  it('removes what is older, and keeps with --all what links through another server need', async () => {
    const now = Date.now()
    const url = 'https://up.example/links/s3/drafts/2026/cat.png'
    await remember(
      { origin: 'a', time: now - 31 * DAY_MS },
      { origin: 'b', time: now - 40 * DAY_MS },
      { origin: 'c', time: now - 29 * DAY_MS },
      { origin: 'd', time: now - 40 * DAY_MS, url },
    )
    const said = (what: string, age: string) =>
      `Deleted ${what} older than ${age} from the history. The files are kept.\n`
    expect(await prune('30d', '--all', '--yes')).toEqual({
      code: 0,
      stdout: '',
      stderr: said('2 entries', '30d'),
    })
    expect((await prune('29d', '--all', '--yes')).stderr).toBe(said('1 entry', '29d'))
    expect(await list()).toMatchObject([{ origin: 'd' }])
  })

  it('forgets the entries of its own configuration alone, or those of one destination', async () => {
    const time = Date.now() - 9 * DAY_MS
    await remember({ time }, { time, destination: 's3/other' }, { time, destination: 'local/Default' })
    expect((await prune('5d', '--yes')).stderr).toMatch(/^Deleted 1 entry older/)
    const other = await prune('5d', '--all', '--yes', '--destination', 's3/other')
    expect(other.stderr).toMatch(/^Deleted 1 entry older/)
    expect(await list()).toMatchObject([{ destination: 's3/blog' }])
  })
})

it('a store that configurations share shows each its own destinations, and says that there are others', async () => {
  await remember({ origin: 'theirs' }, { origin: 'mine', destination: 'local/Default' })
  const own = (...args: string[]) => runCli(['history', ...args], { cwd })
  expect(JSON.parse((await own('--json')).stdout)).toMatchObject([{ origin: 'mine' }])
  expect(await own('--name', 'theirs')).toMatchObject({
    ...{ code: 0, stdout: '' },
    stderr: expect.stringContaining('Add --all to include other destinations'),
  })
})

describe('expired', () => {
  it('tells what should be gone, and why it is not', async () => {
    const destination = 'local/Default'
    await remember(
      { destination, key: 'late.png', expiresAt: Date.UTC(2026, 0, 1) },
      { destination, key: 'soon.png', expiresAt: Date.now() + DAY_MS },
    )
    const database = openDatabase()
    const wanted = { owner: 'me', among: [destination], now: Date.now(), limit: 1, longestPauseMs: DAY_MS }
    const [late] = await takeDue(database, wanted)
    await postpone(database, 'me', late!.name, { retryAt: Date.now() + DAY_MS, problem: 'it is down' })
    expect((await expired()).stdout).toBe(
      `due ${showMoment(Date.UTC(2026, 0, 1))}  local/Default  late.png  1 attempts failed: it is down\n`,
    )
    expect(JSON.parse((await expired('--json')).stdout)).toMatchObject([{ problem: 'it is down' }])
  })

  it('tells with --all what should be gone elsewhere, and without it that there is something', async () => {
    await remember({ key: 'late.png', expiresAt: Date.UTC(2026, 0, 1) })
    expect(await expired()).toMatchObject({
      ...{ code: 0, stdout: '' },
      stderr: expect.stringContaining('Add --all to include other destinations'),
    })
    expect((await expired('--all')).stdout).toContain('s3/blog  late.png')
    expect((await expired('--all', '--destination', 's3/blog')).stdout).toContain('late.png')
    const other = await expired('--all', '--destination', 's3/other')
    expect(other).toMatchObject({ stdout: '', stderr: 'No expired files are left.\n' })
  })
})
