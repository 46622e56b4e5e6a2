import { existsSync } from 'node:fs'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runCli } from './cli/run-cli.ts'
import { makeDirectory } from './helpers/directory.ts'
import { download, formOf, post } from './helpers/form.ts'
import { openSqlite } from './helpers/sqlite.ts'
import { startApp, type TestApp } from './helpers/start-app.ts'

const EVERY_MS = 100
const TEMPLATE = { keyTemplate: '{filename}{extname}' }
const SERVED = { serve: true, ...TEMPLATE }
const EXPIRING = { expiry: { default: 'never' } }

type Locals = Record<string, Record<string, unknown>>

/** Destinations of kind "local". One called "sweep", with a folder of its own, tells when the sweeper has been at work. */
async function start(locals: Locals, directory?: string): Promise<TestApp> {
  const local = { ...locals, sweep: { directory: 'sweep', ...EXPIRING } }
  const options = Object.entries(local).map(([name, one]) => [
    name,
    { ...SERVED, onConflict: 'replace', ...one },
  ])
  return startApp({
    directory: directory ?? (await makeDirectory()),
    config: {
      cleanup: { interval: `${EVERY_MS}ms` },
      default: `local/${Object.keys(locals)[0]}`,
      sources: { url: { allowPrivate: true } },
      providers: { local: Object.fromEntries(options) },
    },
  })
}

interface Item {
  readonly imgUrl: string
  readonly expiresAt?: string
}

async function send(
  app: TestApp,
  to: string,
  query = '',
  files: Record<string, string> = { 'a.txt': 'one' },
): Promise<Item> {
  const answer = await post(`${app.url}/upload?configName=${to}${query}`, { body: formOf(files) })
  expect(answer).toMatchObject({ status: 200, success: true })
  return (answer as unknown as { items: [Item] }).items[0]
}

/** Until the test says that it has passed. */
const SOON = '&expires=1h'

const read = async ({ imgUrl }: Item) => (await download(imgUrl)).toString()

/** What expires soon is due. @returns when the sweeper has been at work */
async function sweep(app: TestApp): Promise<void> {
  const name = `${Date.now()}.txt`
  const item = await send(app, 'sweep', SOON, { [name]: name })
  expect(item.expiresAt).toBeDefined()
  const database = openSqlite(join(app.directory, 'data', 'upload-server', 'store.db'))
  database.exec(`update objects set expires_at = 1 where expires_at < ${Date.now() + 2 * 60 * 60 * 1000}`)
  database.close()
  await expect.poll(() => existsSync(join(app.directory, 'sweep', name))).toBe(false)
}

const cli = (app: TestApp, ...args: string[]) =>
  runCli(args, { cwd: app.directory, env: { XDG_DATA_HOME: join(app.directory, 'data') } })

it.each<[string, Locals, before?: (directory: string) => Promise<unknown>]>([
  ['one folder', { A: { directory: 'x' }, B: { directory: 'x', ...EXPIRING } }],
  [
    'a folder and one below it',
    { A: { directory: 'x', keyTemplate: 'b/{filename}{extname}' }, B: { directory: 'x/b', ...EXPIRING } },
  ],
  [
    'a folder and a link to it',
    { A: { directory: 'x' }, B: { directory: 'link/x', ...EXPIRING } },
    directory => symlink(directory, join(directory, 'link')),
  ],
  [
    'a folder and a mirror there',
    { A: { directory: 'x' }, B: { directory: 'y', mirrors: ['local/A'], ...EXPIRING } },
  ],
])('the file of one destination was removed by the expiry of another: %s', async (_, locals, before) => {
  const directory = await makeDirectory()
  await before?.(directory)
  const app = await start(locals, directory)
  const kept = await send(app, 'A')
  await send(app, 'B', SOON)
  await sweep(app)
  expect(await read(kept)).toBe('one')
})

it('what "upload" printed as JSON did not say when a file goes', async () => {
  const app = await start({ A: { directory: 'x', ...EXPIRING } })
  await writeFile(join(app.directory, 'a.txt'), 'one')
  const args = ['upload', 'a.txt', '--expires', '1d', '--format', 'json']
  const here = JSON.parse((await cli(app, ...args)).stdout)
  expect(Date.parse(here[0].expiresAt)).toBeGreaterThan(Date.now())
  const there = JSON.parse((await cli(app, ...args, '--expires', '1h', '--server', app.url)).stdout)
  expect(there[0].expiresAt).toBe(here[0].expiresAt)
})

it('a file of the folder that a destination has by now went, since one of that name was due where it had been', async () => {
  const directory = await makeDirectory()
  const before = await start({ A: { directory: 'x', ...EXPIRING } }, directory)
  await send(before, 'A', SOON)
  await before.server.stop()
  await mkdir(join(directory, 'y'))
  await writeFile(join(directory, 'y', 'a.txt'), 'of somebody else')
  const app = await start({ A: { directory: 'y', ...EXPIRING } }, directory)
  await sweep(app)
  expect(existsSync(join(directory, 'y', 'a.txt'))).toBe(true)
  expect((await cli(app, 'history', 'expired')).stdout).toContain('it was stored at file:')
  expect((await cli(app, 'remove', 'a.txt', '--yes')).stdout).toMatch(/^FAILED .*where no destination/)
})
