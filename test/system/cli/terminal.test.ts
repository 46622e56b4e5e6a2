import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { beforeEach, describe, expect, it } from 'vitest'
import { openSqlite } from '../../../src/store/sqlite.ts'
import { runCli } from '../../cli/run-cli.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { startGate } from '../../helpers/gate.ts'
import { needs } from '../../helpers/needs.ts'
import { runBuiltOnTerminal, runOnTerminal } from '../../helpers/pty.ts'
import { BIN } from '../../helpers/spawn-server.ts'
import { addEntry, closed } from '../../helpers/stores.ts'
import { serve } from '../../uploader/sources/servers.ts'

let cwd: string
beforeEach(async context => {
  needs(context, 'python3', 'python3')
  cwd = await makeDirectory()
})

/** A destination of the working directory, whose files keep their names. */
async function configure(name: string): Promise<void> {
  const providers = { local: { [name]: { directory: name, urlPrefix: 'https://img.example' } } }
  const config = { default: `local/${name}`, providers, keyTemplate: '{filename}{extname}' }
  await writeFile(join(cwd, 'upload-server.json'), JSON.stringify(config))
}

it('a person is asked, and shown what would go', async () => {
  await configure('main')
  await writeFile(join(cwd, 'a.png'), 'png')
  await runCli(['upload', 'a.png'], { cwd })
  const isStored = () => existsSync(join(cwd, 'main/a.png'))
  const ask = (answer: string) =>
    runBuiltOnTerminal(['remove', 'a.png'], [['Permanently delete this file?', answer]], cwd)
  const no = await ask('n')
  expect(no).toMatchObject({ exitCode: 1, stdout: expect.stringContaining('remove    local/main  a.png') })
  expect(isStored()).toBe(true)
  expect((await ask('y')).exitCode).toBe(0)
  expect(isStored()).toBe(false)
})

describe('a store that configurations share', () => {
  it('asks a person before it forgets, and says how much that would be', async () => {
    const database = closed(openSqlite(join(cwd, 'upload-server/store.db')))
    const old = Date.now() - 9 * 24 * 60 * 60 * 1000
    for (const [n, time] of [old, old, Date.now()].entries())
      await addEntry(database, { time, destination: 's3/blog', location: `${n}/` })
    await database.close()
    const list = async () => JSON.parse((await runCli(['history', '--all', '--json'], { cwd })).stdout)
    const prune = (answer: string) =>
      runBuiltOnTerminal(
        ['history', 'prune', '5d', '--all'],
        [['Delete 2 entries older than 5d from the history?', answer]],
        cwd,
      )
    expect((await prune('n')).exitCode).toBe(1)
    expect(await list()).toHaveLength(3)
    expect((await prune('y')).exitCode).toBe(0)
    expect(await list()).toHaveLength(1)
  })
})

describe('what upload cannot store', () => {
  it.for([
    ['cat x |', ''],
    ['', '< x'],
  ])('on a terminal, %j is not ignored in favour of the clipboard', async ([before, after]) => {
    await writeFile(join(cwd, 'x'), 'x')
    const command = `${before} "${process.execPath}" "${BIN}" upload ${after}`
    const { exitCode, stdout } = await runOnTerminal(['sh', '-c', command], [], cwd)
    expect(stdout).toContain('add "-": upload-server upload - --name image.png')
    expect(exitCode).toBe(2)
  })
})

describe('Ctrl-C', () => {
  it('ends it on a terminal, too, where a line says what goes on', async () => {
    const { url } = await startGate()
    const steps = [[`Uploading ${url}`, '\u0003']] as const
    const { exitCode, stdout } = await runBuiltOnTerminal(['upload', url], steps, cwd)
    expect(stdout).toContain(`${url}: the upload was interrupted`)
    expect(exitCode).toBe(130)
  })
})

it('on a terminal, each file that is stored has a line at once', async () => {
  const server = await serve(async (req, res) => {
    const isSlow = (await text(req)).includes('filename="slow.txt"')
    if (!isSlow) res.end('{"success":true,"result":["https://img.example/b.txt"]}')
  })
  for (const name of ['slow.txt', 'b.txt']) await writeFile(join(cwd, name), 'x'.repeat(70_000))
  const args = ['upload', '--server', server.origin, 'b.txt', 'slow.txt']
  const { exitCode } = await runBuiltOnTerminal(args, [['[1/2] b.txt  68 KB', '\u0003']], cwd)
  expect(exitCode).toBe(130)
})

it.each([
  [[], 'Uploading b.txt …'],
  [['--quiet'], 'https://'],
])('on a terminal, a slow upload with %j begins with %j', async (more, first) => {
  const server = await serve((_, res) => {
    setTimeout(() => res.end('{"success":true,"result":["https://img.example/b.txt"]}'), 1000)
  })
  await writeFile(join(cwd, 'b.txt'), 'x')
  const args = ['upload', '--server', server.origin, ...more, 'b.txt']
  const { exitCode, stdout } = await runBuiltOnTerminal(args, [], cwd)
  expect([exitCode, stdout.slice(0, first.length)]).toEqual([0, first])
})
