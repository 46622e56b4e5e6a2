import { mkdir, readdir, realpath, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import type { HistoryEntry, Store } from '../../src/store/contract.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { needs } from '../helpers/needs.ts'
import { runOnTerminal } from '../helpers/pty.ts'
import { BIN } from '../helpers/spawn-server.ts'
import { runBuilt, runCli } from './run-cli.ts'

const DAY_MS = 24 * 60 * 60 * 1000

let cwd: string
let store: Store

beforeEach(async () => {
  cwd = await makeDirectory()
  const local = (name: string) => ({ directory: name, serve: true })
  const config = {
    default: 'local/main',
    store: { path: 'store.db' },
    providers: {
      local: { main: local('main'), copy: local('copy') },
      imgur: { a: { clientId: 'x' } },
    },
  }
  await writeFile(join(cwd, 'upload-server.json'), JSON.stringify(config))
  store = createSqliteStore(join(cwd, 'store.db'))
  onTestFinished(() => store.close())
})

const remove = (...args: string[]) => runCli(['remove', ...args], { cwd })
const linkOf = (key: string) => `http://127.0.0.1:36677/files/main/${key}`

/** Entries of one job, and their files. */
async function remember(jobId: string, ...changes: Partial<HistoryEntry>[]): Promise<void> {
  const history = changes.map((change, index): HistoryEntry => {
    const key = change.key ?? 'a.png'
    return {
      ...{ time: Date.now(), jobId, index, origin: key, url: linkOf(key), key, size: 3 },
      ...{ contentType: 'image/png', sha256: 'x', deleteUrl: undefined, destination: 'local/main' },
      ...{ caller: 'loopback', requestId: `request-${jobId}`, ...change },
    }
  })
  for (const { destination, key } of history) {
    const [type, name = ''] = destination.split('/')
    if (type !== 'local') continue
    await mkdir(join(cwd, name, key, '..'), { recursive: true })
    await writeFile(join(cwd, name, key), 'png')
  }
  await store.deliver(jobId, { state: 'finished', owner: 'me', files: [], steps: [], history, now: 1 })
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
  ['link', linkOf('a.png')],
  ['key', 'a.png'],
])('a %s goes with its copies, and all entries of it are marked', async (_, word) => {
  await remember('job1', {}, { ...COPY, key: 'other-name.png' })
  await remember('job2', { expiresAt: Date.now() + DAY_MS })
  await remember('job3', { key: 'b.png' })
  expect(await remove(word, '--yes')).toMatchObject({
    code: 0,
    stdout: 'removed   local/main  a.png\nremoved   local/copy  other-name.png\n',
  })
  expect(await files()).toEqual(['main/b.png'])
  expect((await store.history({ isRemoved: false, limit: 9 })).map(({ key }) => key)).toEqual(['b.png'])
  expect(await store.expiring(['local/main'])).toEqual([])
  expect((await remove(word, '--yes')).stderr).toContain('was already deleted')
})

it('what was removed already is said, and is no failure', async () => {
  await remember('job1', {})
  await remove('a.png', '--yes')
  for (const word of ['a.png', linkOf('a.png'), 'job1', 'request-job1']) {
    const { code, stdout, stderr } = await remove(word, '--yes')
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: '',
      stderr: expect.stringMatching(/: was already deleted at \d{4}-\d\d-\d\dT[\d:.]+Z\n$/),
    })
  }
})

it.each(['5s', '5', '1m', '2h', '3d'])('--older-than takes %s as every other time', async age => {
  await remember('job1', {}, { time: Date.now() - 4 * DAY_MS, key: 'old.png' })
  const { code, stdout } = await remove('--destination', 'local/main', '--older-than', age, '--dry-run')
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'remove    local/main  old.png\n' })
})

it.each(['job1', 'request-job1'])('of the job %s what another job names, too, stays', async word => {
  await remember('job1', { key: 'mine.png' }, { key: 'shared.png' })
  await remember('job2', { key: 'shared.png' })
  expect(await remove(word, '--yes')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('kept      local/main  shared.png: another upload shares it'),
  })
  expect(await files()).toEqual(['main/shared.png'])
  expect(await store.history({ isRemoved: true, limit: 9 })).toMatchObject([{ key: 'mine.png' }])
})

it('a client that chose the request id of another one loses nothing of either', async () => {
  await remember('job1', { key: 'hers.png', caller: 'alice', requestId: 'r1' })
  await remember('job2', { key: 'his.png', caller: 'mallory', requestId: 'r1' })
  await remember('job3', { key: 'more.png', caller: 'mallory', requestId: 'r1' })
  const { code, stderr } = await remove('r1', '--yes')
  expect(code).toBe(1)
  expect(stderr).toBe(
    'r1: 2 clients have uploaded with this request id. Specify the id of an upload: job3 of "mallory", job2 of "mallory", job1 of "alice".\n',
  )
  expect(await files()).toEqual(['main/hers.png', 'main/his.png', 'main/more.png'])
})

it('of the built program leaves a copy that another file has, too', async () => {
  await remember('job1', { key: 'a.png' }, { ...COPY, key: 'same.png' })
  await remember('job2', { key: 'b.png' }, { ...COPY, key: 'same.png' })
  expect((await runBuilt(['remove', 'a.png', '--yes'], { cwd })).code).toBe(0)
  expect(await files()).toEqual(['copy/same.png', 'main/b.png'])
})

it('old files of a destination go, below a folder, unless they were uploaded again since', async () => {
  const time = Date.now() - 31 * DAY_MS
  const old = ['ci/old.png', 'ci/again.png', 'ci2/other.png', 'old.png'].map(key => ({ key, time }))
  await remember('job1', ...old)
  await remember('job2', { key: 'ci/again.png' }, { key: 'ci/new.png' })
  const select = ['--destination', 'local/main', '--older-than', '30d', '--path', '/ci/']
  const before = await files()
  expect(await remove(...select, '--dry-run')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('remove    local/main  ci/old.png\n'),
  })
  expect(await files()).toEqual(before)
  expect((await remove(...select, '--yes')).code).toBe(0)
  expect(await files()).toEqual(before.filter(file => file !== 'main/ci/old.png'))
})

it('more old files than fit into one look go, all of them', async () => {
  const time = Date.now() - 31 * DAY_MS
  const many = Array.from({ length: 1100 }, (_, n) => ({ key: `${n}.png`, time }))
  await remember('job1', ...many)
  await remember('job2', { key: '7.png' })
  expect((await remove('--destination', 'local', '--older-than', '30d', '--yes')).code).toBe(0)
  expect(await files()).toEqual(['main/7.png'])
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
  const object = `file:${await realpath(join(cwd, 'main'))}/a.png`
  const hold = { destination: 'local/main', key: 'a.png', object, content: 'x' }
  await store.lockObject({ ...hold, holder: 'job2', owner: 'me', now: 1 })
  expect(await remove('a.png', '--yes')).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^FAILED .*right now/),
  })
  expect(await files()).toEqual(['main/a.png'])
})

it('a person is asked, and shown what would go', async context => {
  needs(context, 'python3', 'python3')
  await remember('job1', {})
  const ask = (answer: string) =>
    runOnTerminal(
      ['env', `HOME=${cwd}`, process.execPath, BIN, 'remove', 'a.png', '-c', 'upload-server.json'],
      [['Permanently delete this file?', answer]],
      cwd,
    )
  const no = await ask('n')
  expect(no).toMatchObject({ exitCode: 1, stdout: expect.stringContaining('remove    local/main  a.png') })
  expect(await files()).toEqual(['main/a.png'])
  expect((await ask('y')).exitCode).toBe(0)
  expect(await files()).toEqual([])
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

it.each(['delete', 'rm'])('%s is another name of the command', async name => {
  await remember('job1', {})
  expect(await runCli([name, linkOf('a.png'), '--yes'], { cwd })).toMatchObject({
    code: 0,
    stdout: 'removed   local/main  a.png\n',
  })
  expect(await files()).toEqual([])
})
