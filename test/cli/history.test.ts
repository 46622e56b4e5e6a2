import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import type { HistoryEntry } from '../../src/store/contract.ts'
import { postpone, takeDue } from '../../src/store/removals.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import { showMoment } from '../../src/times.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { formOf, post } from '../helpers/form.ts'
import { spawnServer } from '../helpers/spawn-server.ts'
import { addEntry, closed, jobAt } from '../helpers/stores.ts'
import { runBuilt, runCli } from './run-cli.ts'

const DAY_MS = 24 * 60 * 60 * 1000

let cwd: string
beforeEach(async () => {
  cwd = await makeDirectory()
})

/** What is remembered here is of no destination of the embedded default. */
const history = (...args: string[]) => runCli(['history', '--all', ...args], { cwd })
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

it('says that there is nothing when nothing was uploaded', async () => {
  expect(await history()).toEqual({ code: 0, stdout: '', stderr: 'No files found.\n' })
  expect(await history('--json')).toEqual({ code: 0, stdout: '[]\n', stderr: 'No files found.\n' })
})

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
  expect((await runBuilt(['history', ...args], { cwd })).code).toBe(0)
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

describe('lists only', () => {
  it.each([
    ['what is at a destination', ['--destination', 's3/blog'], ['new', 'old']],
    ['what is at the destinations of a provider', ['--destination', 's3'], ['new', 'other', 'old']],
    ['what is at none', ['--destination', 'blog'], []],
    ['what has a text in its name', ['--search', 'OTHER'], ['other']],
    ['what has a text in its address', ['--search', 'dog.png'], ['dog']],
    ['what has % in its name', ['--search', '%'], []],
    ['these bytes', ['--sha256', sha256('dog')], ['dog']],
    ['the last days', ['--since', '2d'], ['new', 'other', 'dog']],
    ['what came before a while', ['--until', '12h'], ['dog', 'old']],
    ['what came between', ['--since', '2d', '--until', '12h'], ['dog']],
    ['a name', ['--name', 'OTH'], ['other']],
    ['a link', ['--link', 'x/dog'], ['dog']],
    ['a caller', ['--caller', 'ALICE'], ['dog']],
    ['what came since a while', ['--since', '12h'], ['new', 'other']],
    ['what came since a day', ['--since', '2020-01-01'], ['new', 'other', 'dog', 'old']],
    ['the newest', ['--limit', '2'], ['new', 'other']],
    ['nothing', ['--limit', '0'], []],
    ['what fits all of them', ['--destination', 's3', '--since', '2d', '--limit', '1'], ['new']],
  ])('%s', async (_what, args, expected) => {
    const now = Date.now()
    await remember(
      { origin: 'old', time: now - 9 * DAY_MS },
      { origin: 'new', time: now },
      { origin: 'other', time: now - 1000, destination: 's3/other' },
      {
        origin: 'dog',
        time: now - DAY_MS,
        destination: 'local/x',
        sha256: sha256('dog'),
        url: 'https://x/dog.png',
        caller: 'proxy: alice',
      },
    )
    const { code, stdout } = await history('--json', ...args)
    expect(code).toBe(0)
    expect(JSON.parse(stdout).map((entry: HistoryEntry) => entry.origin)).toEqual(expected)
  })
})

it('tells scripts everything', async () => {
  await remember({ time: Date.UTC(2026, 10, 21), deleteUrl: 'https://x.example/delete' })
  const { stdout } = await history('--json')
  expect(JSON.parse(stdout)).toEqual([
    {
      time: '2026-11-21T00:00:00.000Z',
      jobId: jobAt(Date.UTC(2026, 10, 21), '0'),
      index: 0,
      origin: 'cat.png',
      url: 'https://x.example/2026/cat.png',
      key: '2026/cat.png',
      size: 1234,
      contentType: 'image/png',
      sha256: sha256('cat'),
      deleteUrl: 'https://x.example/delete',
      destination: 's3/blog',
      caller: 'loopback',
      requestId: 'r1',
    },
  ])
})

it('a name with escape sequences does not take over the terminal', async () => {
  const origin = '\u001b]0;title\u0007\u001b[2J\u009b31m\u007f\u202egnp.exe\r\n\tend.png'
  await remember({ origin })
  const controls = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/
  const lines = await history()
  expect(lines.stdout).not.toMatch(controls)
  expect(lines.stdout.trimEnd().split('\n')).toHaveLength(1)
  expect(lines.stdout).toContain('gnp.exe???end.png')
  const json = await history('--json')
  expect(json.stdout).not.toMatch(controls)
  expect(JSON.parse(json.stdout)[0].origin).toBe(origin)
})

it.each([
  ['62c8', 1],
  ['62C8C6D0', 1],
  [`62c8c6d0${'f'.repeat(56)}`, 1],
  ['62c9', 0],
])('finds bytes by their hash, or by how it begins: %s', async (hash, count) => {
  await remember({ sha256: `62c8c6d0${'f'.repeat(56)}` }, { sha256: `62d0${'0'.repeat(60)}` })
  expect(JSON.parse((await history('--sha256', hash, '--json')).stdout)).toHaveLength(count)
})

describe('prune', () => {
  it('forgets nothing without --yes where nobody can be asked', async () => {
    await remember({ time: Date.now() - 9 * DAY_MS })
    expect(await prune('5d', '--all')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'Could not ask for confirmation without a terminal. Add --yes to delete the entries.\n',
    })
    expect(JSON.parse((await history('--json')).stdout)).toHaveLength(1)
  })

  it.each([['--search', 'x'], ['--until', '7d'], ['--json']])(
    'deletes nothing instead of everything because it ignores %s',
    async (...filter) => {
      await remember({ time: Date.now() - 9 * DAY_MS })
      const after = await prune('0d', '--all', ...filter, '--yes')
      expect(after).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(`error: unknown option '${filter[0]}'`),
      })
      const before = await history(...filter, 'prune', '0d', '--all', '--yes')
      expect(before).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^--[\w-]+ must be written after "prune"\.$/m),
      })
      expect(JSON.parse((await history('--json')).stdout)).toHaveLength(1)
    },
  )

  it('removes what is older, and no file', async () => {
    const files = join(cwd, 'upload-server', 'files')
    await mkdir(files, { recursive: true })
    await writeFile(join(files, 'cat.png'), 'cat')
    const now = Date.now()
    await remember(
      { origin: 'a', time: now - 31 * DAY_MS },
      { origin: 'b', time: now - 40 * DAY_MS },
      { origin: 'c', time: now - 29 * DAY_MS },
    )
    expect(await prune('30d', '--all', '--yes')).toEqual({
      code: 0,
      stdout: '',
      stderr: 'Deleted 2 entries older than 30d from the history. The files are kept.\n',
    })
    expect(await prune('29d', '--all', '--yes')).toMatchObject({
      stderr: expect.stringMatching(/^Deleted 1 entry older/),
    })
    expect(JSON.parse((await history('--json')).stdout)).toEqual([])
    expect(await readdir(files)).toEqual(['cat.png'])
  })
})

it('of the built program knows what a running server and the command line have stored', async () => {
  const server = await spawnServer(['--port', '0'], { directory: cwd })
  const url = await server.url
  const answer = await post(`${url}/upload`, { body: formOf({ 'a.txt': 'one', 'b.txt': 'two' }) })
  await writeFile(join(cwd, 'c.txt'), 'three')
  const { stdout: link } = await runBuilt(['upload', 'c.txt'], { cwd })
  const { stdout } = await runBuilt(['history', '--json'], { cwd })
  const entries = JSON.parse(stdout) as Record<string, unknown>[]
  expect(entries.map(entry => [entry['caller'], entry['index'], entry['url'], entry['sha256']])).toEqual([
    ['command line', 0, link.trim(), sha256('three')],
    ['loopback', 1, answer.result[1], sha256('two')],
    ['loopback', 0, answer.result[0], sha256('one')],
  ])
  expect(entries[1]?.['requestId']).toBe(answer.headers.get('x-request-id'))
  for (const path of ['/history', '/files/Default/store.db', '/files/Default/..%2fstore.db']) {
    expect((await fetch(url + path)).status).toBe(404)
  }
})

it.each([
  [['--limit', '-1'], /whole number/],
  [['--sha256', '62c'], /4 to 64 hexadecimal digits/],
  [['--sha256', 'cat.png'], /4 to 64 hexadecimal digits/],
  [['--since', 'tomorrow'], /Must be a time such as/],
  [['--until', '2026-02-30'], /Must be a time such as/],
  [['--unknown'], /unknown option/],
  [['--yes'], /unknown option/],
  [['expird'], /unknown command 'expird'.*"expired"/],
  [['--caller', 'x', 'quotas'], /^--caller must be written after "quotas"/],
  [['expired', '--caller', 'nobody'], /unknown option '--caller'/],
  [['quotas', '--all'], /unknown option '--all'/],
  [['prune'], /missing required argument 'age'/],
  [['prune', ''], /^"" is not an age such as/],
  [['prune', '365', '--yes'], /^"365" is not an age such as/], // It would be taken for seconds elsewhere.
  [['prune', '1d', '--all', '--yes', '--destination', 's3'], /provider\/configName/],
])('refuses %j', async (args, message) => {
  expect(await runCli(['history', ...args], { cwd })).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(message),
  })
})

it('says why, and where it is, when there is no way to open the store', async () => {
  await writeFile(join(cwd, 'upload-server'), 'in the way')
  const { code, stdout, stderr } = await history()
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toMatch(/^.*(?:ENOTDIR|EEXIST).*\n.*\n$/)
  expect(stderr).toContain(`\n${join(cwd, 'upload-server', 'store.db')}: `)
})

describe('a store that configurations share', () => {
  it('shows each its own destinations, and says that there are others', async () => {
    await remember({ origin: 'theirs' }, { origin: 'mine', destination: 'local/Default' })
    const own = (...args: string[]) => runCli(['history', ...args], { cwd })
    expect(JSON.parse((await own('--json')).stdout)).toMatchObject([{ origin: 'mine' }])
    const none = await own('--name', 'theirs')
    expect(none).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining('Other destinations have some: add --all'),
    })
  })

  it('forgets their own entries alone, or those of one destination', async () => {
    const time = Date.now() - 9 * DAY_MS
    await remember({ time }, { time, destination: 's3/other' }, { time, destination: 'local/Default' })
    const own = await prune('5d', '--yes')
    expect(own.stderr).toMatch(/^Deleted 1 entry older/)
    expect((await prune('5d', '--all', '--yes', '--destination', 's3/other')).stderr).toMatch(
      /^Deleted 1 entry older/,
    )
    expect(JSON.parse((await history('--json')).stdout)).toMatchObject([{ destination: 's3/blog' }])
  })

  it('keeps with --all what links through another server need', async () => {
    const time = Date.now() - 9 * DAY_MS
    const url = 'https://up.example/links/s3/drafts/2026/cat.png'
    await remember({ time }, { time, url, destination: 's3/drafts' })
    expect((await prune('5d', '--all', '--yes')).stderr).toMatch(/^Deleted 1 entry older/)
    expect(JSON.parse((await history('--json')).stdout)).toMatchObject([{ destination: 's3/drafts' }])
  })

  it('tells with --all what should be gone elsewhere, and without it that there is something', async () => {
    await remember({ key: 'late.png', expiresAt: Date.UTC(2026, 0, 1) })
    const own = await expired()
    expect(own).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining('Other destinations have some: add --all'),
    })
    expect((await expired('--all')).stdout).toContain('s3/blog  late.png')
    expect((await expired('--all', '--destination', 's3/blog')).stdout).toContain('late.png')
    const other = await expired('--all', '--destination', 's3/other')
    expect(other).toMatchObject({ stdout: '', stderr: 'No expired files are left.\n' })
  })
})

it.each([['expired'], ['prune', '0d', '--yes'], []])(
  'a mistyped destination is no empty one: %j',
  async (...args) => {
    const { code, stderr } = await runCli(['history', ...args, '--destination', 'locl'], { cwd })
    expect(stderr).toBe(
      '"locl" is not a destination of this configuration. Add --all to search other destinations, too.\n',
    )
    expect(code).toBe(1)
  },
)

it('expired tells what should be gone, and why it is not', async () => {
  await remember(
    { destination: 'local/Default', key: 'late.png', expiresAt: Date.UTC(2026, 0, 1) },
    { destination: 'local/Default', key: 'soon.png', expiresAt: Date.now() + DAY_MS },
  )
  const database = openDatabase()
  const wanted = { owner: 'me', among: ['local/Default'], now: Date.now(), limit: 1, longestPauseMs: DAY_MS }
  const [late] = await takeDue(database, wanted)
  await postpone(database, 'me', late!.name, { retryAt: Date.now() + DAY_MS, problem: 'it is down' })
  const { stdout } = await expired()
  expect(stdout).toBe(
    `due ${showMoment(Date.UTC(2026, 0, 1))}  local/Default  late.png  1 attempts failed: it is down\n`,
  )
  expect(JSON.parse((await expired('--json')).stdout)).toMatchObject([{ problem: 'it is down' }])
})
