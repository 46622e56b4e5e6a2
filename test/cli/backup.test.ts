import { copyFile, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { backUpSqlite } from '../../src/store/backup.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { formOf, post } from '../helpers/form.ts'
import { leaveOutOnWindows } from '../helpers/needs.ts'
import { spawnServer } from '../helpers/spawn-server.ts'
import { fillSqlite, openSqlite } from '../helpers/sqlite.ts'
import { startApp } from '../helpers/start-app.ts'
import { runCli } from './run-cli.ts'

let cwd: string
beforeEach(async () => {
  cwd = await makeDirectory()
})

const never = new AbortController().signal
const config = (more: object = {}) => ({
  server: { port: 0 },
  providers: { local: { Default: { directory: 'files', serve: true } } },
  ...more,
})
const leftIn = async (folder: string) => (await readdir(folder)).filter(name => /backup/.test(name))

/** @returns the number of rows of an intact database */
function countRows(path: string): number {
  const database = openSqlite(path)
  try {
    expect(database.prepare('pragma integrity_check').get()).toEqual({ integrity_check: 'ok' })
    return Number(database.prepare('select count(*) as count from rows').get()?.['count'])
  } finally {
    database.close()
  }
}

it('while the server stores files: a server with an empty folder and the copy has history, pending jobs and answers', async context => {
  leaveOutOnWindows(context, 'the hook is a shell command')
  const broken = join(cwd, 'broken')
  const hooks = [{ name: 'note', command: ['sh', '-c', '! [ -e "$0" ]', broken] }]
  const settings = config({ finalization: { hooks } })
  const start = (directory: string) =>
    startApp({ config: settings, directory, env: { XDG_DATA_HOME: directory } })
  const { url, server } = await start(cwd)
  const once = () => ({ body: formOf({ 'once.txt': 'once' }), headers: { 'idempotency-key': 'one-key' } })
  const answer = await post(`${url}/upload`, once())
  expect(answer).toMatchObject({ status: 200 })
  await writeFile(broken, '')
  const pending = await post(`${url}/upload`, { body: formOf({ 'later.txt': 'later' }) })
  expect(pending).toMatchObject({ status: 424 })

  expect(await runCli(['backup', 'store backup.db'], { cwd })).toEqual({
    code: 0,
    stdout: '',
    stderr: `Backed up "${join(cwd, 'upload-server/store.db')}" to "store backup.db": 2 history entries.\n`,
  })
  expect((await stat(join(cwd, 'store backup.db'))).mode & 0o777).toBe(0o600)
  expect(await leftIn(cwd)).toEqual(['store backup.db'])
  await server.stop()

  const directory = await makeDirectory()
  await mkdir(join(directory, 'upload-server'))
  await copyFile(join(cwd, 'store backup.db'), join(directory, 'upload-server/store.db'))
  const second = await start(directory)
  const repeated = await post(`${second.url}/upload`, once())
  // Its links lead to the server that answers.
  const pathsOf = (links: unknown) => (links as string[]).map(link => new URL(link).pathname)
  expect(repeated.status).toBe(200)
  expect(pathsOf(repeated.result)).toEqual(pathsOf(answer['result']))
  expect((await runCli(['history'], { cwd: directory })).stdout).toContain('once.txt')
  const { finalizationId } = pending as unknown as { finalizationId: string }
  await rm(broken)
  const finished = await post(`${second.url}/upload?finalizationId=${finalizationId}`)
  expect(finished).toMatchObject({ status: 200, result: [expect.stringContaining('/later-')] })
})

describe('a backup of a database', () => {
  it('that is written all the time ends, and has what was there at its start', async () => {
    const path = join(cwd, 'a.db')
    const { insert, close } = fillSqlite(path, 5000)
    const writing = setInterval(() => insert.run(), 1)
    await backUpSqlite(path, join(cwd, 'backup.db'), never)
    clearInterval(writing)
    close()
    expect(countRows(join(cwd, 'backup.db'))).toBeGreaterThanOrEqual(5000)
    expect(countRows(path)).toBeGreaterThan(countRows(join(cwd, 'backup.db')))
  })

  it('that is interrupted leaves nothing', async () => {
    const path = join(cwd, 'a.db')
    fillSqlite(path, 20_000).close()
    const interrupted = new AbortController()
    const running = backUpSqlite(path, join(cwd, 'backup.db'), interrupted.signal)
    const failed = expect(running).rejects.toMatchObject({ name: 'AbortError' })
    await expect.poll(() => leftIn(cwd), { interval: 1 }).toHaveLength(2)
    interrupted.abort()
    await failed
    expect(await leftIn(cwd)).toEqual([])
  })

  it('that another program has locked completely fails after some seconds', async () => {
    const path = join(cwd, 'a.db')
    const other = openSqlite(path)
    other.exec('create table rows (id integer); begin exclusive')
    const running = backUpSqlite(path, join(cwd, 'backup.db'), never)
    await expect(running).rejects.toThrow('is locked by another program. Try again in a moment.')
    other.close()
    expect(await leftIn(cwd)).toEqual([])
  }, 20_000)
})

it('the command ends at once on Ctrl-C', async context => {
  leaveOutOnWindows(context, 'there are no signals')
  const settings = config({ database: { path: 'a.db' } })
  await writeFile(join(cwd, 'upload-server.json'), JSON.stringify(settings))
  fillSqlite(join(cwd, 'a.db'), 60_000).close()
  const running = await spawnServer(['backup', 'backup.db'], { directory: cwd })
  running.url.catch(() => {})
  await expect.poll(() => leftIn(cwd), { interval: 1, timeout: 10_000 }).toHaveLength(2)
  running.process.kill('SIGINT')
  expect(await running.exit).toBe(130)
  expect(running.errors()).toBe('Interrupted. No backup was written.\n')
  expect(await leftIn(cwd)).toEqual([])
}, 20_000)
