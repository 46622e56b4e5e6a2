import { existsSync } from 'node:fs'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { beforeEach, describe, expect, it } from 'vitest'
import { openSqlite } from '../../../src/store/sqlite.ts'
import { runCli } from '../../cli/run-cli.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { startGate } from '../../helpers/gate.ts'
import { needs } from '../../helpers/needs.ts'
import { makePicture } from '../../helpers/picture.ts'
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

it('on a terminal there is a bar, and it leaves nothing behind', async () => {
  const server = await serve(async (req, res) => {
    const isSlow = (await text(req)).includes('filename="slow.txt"')
    if (!isSlow) res.end('{"success":true,"result":["https://img.example/b.txt"]}')
  })
  for (const name of ['slow.txt', 'b.txt']) await writeFile(join(cwd, name), 'x'.repeat(70_000))
  const { exitCode, stdout } = await runBuiltOnTerminal(
    ['upload', '--server', server.origin, 'b.txt', 'slow.txt'],
    [['1 of 2 files', '\u0003']],
    cwd,
  )
  expect(exitCode).toBe(130)
  expect(stdout).toMatch(/█{12}░{12} 1 of 2 files/)
  expect(stdout).toContain('[1/2] b.txt  68 KB')
})

it('a vault of many notes is worked through with a bar', async () => {
  await configure('stored')
  await mkdir(join(cwd, 'vault/img'), { recursive: true })
  for (let n = 0; n < 1000; n++) {
    const hasPicture = n % 5 === 0
    const folder = join(cwd, `vault/${n % 50}`)
    await mkdir(folder, { recursive: true })
    await writeFile(join(folder, `${n}.md`), `# ${n}\n\n${hasPicture ? `![[${n}.png]]` : 'Text'}\n`)
    if (hasPicture) await writeFile(join(cwd, `vault/img/${n}.png`), makePicture())
  }
  const { exitCode, stdout } = await runBuiltOnTerminal(['markdown', 'vault'], [], cwd)
  expect({ exitCode, stdout }).toEqual({
    exitCode: 0,
    stdout: expect.stringContaining('200 links in 200 of 1000 notes changed.'),
  })
  expect(stdout).toMatch(/█+░+ \d+ of 1000 notes/)
  expect(await readdir(join(cwd, 'stored'))).toHaveLength(200)
})
