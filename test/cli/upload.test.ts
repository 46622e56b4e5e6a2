import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { eventually } from '../helpers/eventually.ts'
import { BIN, environmentIn, spawnServer } from '../helpers/spawn-server.ts'
import { openSqlite } from '../helpers/sqlite.ts'
import { startStubBucket } from '../helpers/stub-bucket.ts'
import { type CliOptions, type CliResult, runCli, runShell } from './run-cli.ts'

const PREFIX = 'https://img.example'

/** A working directory with two destinations that keep names, and some files. */
async function makePlace(extra: object = {}): Promise<string> {
  const cwd = await makeDirectory()
  const at = (name: string) => ({ directory: name, urlPrefix: `${PREFIX}/${name}` })
  const config = {
    default: 'local/one',
    providers: { local: { one: at('one'), two: at('two') } },
    keyTemplate: '{filename}{extname}',
    ...extra,
  }
  await writeFile(join(cwd, 'upload-server.json'), JSON.stringify(config))
  for (const name of ['a.txt', 'b.txt', 'c d.txt']) await writeFile(join(cwd, name), `content of ${name}`)
  return cwd
}

async function upload(args: string[], cwd: string, options: Partial<CliOptions> = {}): Promise<CliResult> {
  return runCli(['upload', '--quiet', ...args], { cwd, ...options })
}

const ok = (...lines: string[]) => ({ code: 0, stdout: lines.map(line => `${line}\n`).join(''), stderr: '' })

/** Every file below the folders of the two destinations, by name, with its text. */
async function stored(cwd: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const folder of ['one', 'two']) {
    const names = await readdir(join(cwd, folder)).catch(() => [])
    for (const name of names) found[`${folder}/${name}`] = await readFile(join(cwd, folder, name), 'utf8')
  }
  return found
}

describe('upload prints one link a line and nothing else', () => {
  it('for many files, in their order', async () => {
    const cwd = await makePlace()
    const names = Array.from({ length: 30 }, (_, index) => `${index}.bin`)
    for (const [index, name] of names.entries())
      await writeFile(join(cwd, name), randomBytes((30 - index) * 20_000))
    expect(await upload(names, cwd)).toEqual(ok(...names.map(name => `${PREFIX}/one/${name}`)))
  })

  it('for an address, also one on this machine', async () => {
    const cwd = await makePlace()
    const server = createServer((_, res) => res.end('from afar'))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/x/remote.txt?v=1`
    expect(await upload(['a.txt', address], cwd)).toEqual(
      ok(`${PREFIX}/one/a.txt`, `${PREFIX}/one/remote.txt`),
    )
    expect((await stored(cwd))['one/remote.txt']).toBe('from afar')
  })

  it('for an image that is the login page of one, with that reason', async () => {
    const cwd = await makePlace()
    const server = createServer((_, res) => res.end('<!doctype html><form>'))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/x.png`
    const { stderr } = await upload([address], cwd)
    expect(stderr).toContain('x.png" returned a web page instead of a file. It may require a login.')
  })
})

describe('what upload cannot store', () => {
  it('is a file whose history can not be saved, because the disk is full: it said "interrupted" and nothing else', async () => {
    const cwd = await makePlace({ database: { path: 'store.db' } })
    expect(await upload(['a.txt'], cwd)).toMatchObject({ code: 0 })
    const database = openSqlite(join(cwd, 'store.db'))
    onTestFinished(() => database.close())
    database.exec("create trigger full before insert on files begin select raise(abort, 'disk is full'); end")
    const { code, stdout, stderr } = await upload(['b.txt'], cwd)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^b\.txt: Could not save the history: disk is full/)
    database.exec('drop trigger full')
    expect(await upload(['b.txt'], cwd)).toMatchObject({ code: 0 })
  })
})

/** Has the built program upload five files, of which four are stored and the last one is under way. */
async function leaveFifth() {
  const bucket = await startStubBucket()
  const cwd = await makePlace({ default: 's3/one', providers: { s3: { one: bucket.options } } })
  const files = ['a.txt', 'b.txt', 'c d.txt', 'd.txt', 'e.txt']
  for (const name of files) await writeFile(join(cwd, name), name)
  bucket.hold()
  const child = spawn(process.execPath, [BIN, 'upload', ...files], { cwd, env: environmentIn(cwd) })
  const output = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  // Four go out at a time.
  await expect.poll(() => bucket.puts, { timeout: 20_000 }).toHaveLength(4)
  bucket.letGo()
  bucket.hold()
  await expect.poll(() => bucket.puts, { timeout: 20_000 }).toHaveLength(5)
  return { cwd, files, child, output, prefix: bucket.options['urlPrefix'] }
}

it('kill -9 leaves no printed link that the history does not know', async () => {
  const { child, output } = await leaveFifth()
  child.kill('SIGKILL')
  const [stdout] = await output
  expect(stdout).toBe('')
})

describe('Ctrl-C', () => {
  it('leaves nothing half, says what was stored and what to repeat, and ends with 130', async () => {
    const { cwd, files, child, output, prefix } = await leaveFifth()
    const before = filesBelow(cwd)
    child.kill('SIGINT')
    const [stdout, stderr, [code]] = await output
    const links = files.slice(0, 4).map(name => `${prefix}/${encodeURIComponent(name)}\n`)
    expect({ code, stdout }).toEqual({ code: 130, stdout: links.join('') })
    expect(stderr.match(/: the upload was interrupted$/gm)).toHaveLength(1)
    expect(stderr).toContain(`1 of 5 files failed. Try again: upload-server upload e.txt`)
    expect(filesBelow(cwd).filter(path => !before.includes(path) && !path.includes('store.db'))).toEqual([])
  })

  it('ends reading standard input', async () => {
    const cwd = await makePlace()
    const before = filesBelow(cwd)
    const child = spawn(process.execPath, [BIN, 'upload', '-', 'a.txt'], { cwd, env: environmentIn(cwd) })
    child.stdin.on('error', () => {})
    child.stdin.write(randomBytes(3_000_000))
    const exit = once(child, 'close')
    await eventually(() => expect(filesBelow(cwd).some(path => /\/\d+$/.test(path))).toBe(true))
    child.kill('SIGINT')
    expect(await exit).toEqual([130, null])
    expect(filesBelow(cwd)).toEqual(before)
  })
})

function filesBelow(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
}

describe('links to what the server hands out itself', () => {
  async function linkWith(config: object): Promise<CliResult> {
    const cwd = await makeDirectory()
    await writeFile(join(cwd, 'upload-server.json'), JSON.stringify(config))
    await writeFile(join(cwd, 'a.txt'), 'x')
    return upload(['a.txt'], cwd)
  }

  const keyTemplate = '{filename}{extname}'
  const isDown = 'it is not running'
  const isUnreached = 'no upload server responds at https://i.example/up/'

  it.each([
    [{ port: 1 }, 'http://127.0.0.1:1/files/Default/a.txt\n', isDown],
    [{ host: '0.0.0.0', port: 1234 }, 'http://127.0.0.1:1234/files/Default/a.txt\n', isDown],
    [{ host: '::', port: 1 }, 'http://[::1]:1/files/Default/a.txt\n', isDown],
    [{ publicUrl: 'https://i.example/up' }, 'https://i.example/up/files/Default/a.txt\n', isUnreached],
    [{ publicUrl: 'https://i.example/up/' }, 'https://i.example/up/files/Default/a.txt\n', isUnreached],
    [{ host: '/run/upload.sock' }, 'http://localhost/files/Default/a.txt\n', isDown],
  ])('begin as configured, and are said to be dead while no server runs: %j', async (server, link, why) => {
    expect(await linkWith({ keyTemplate, server })).toEqual({
      code: 0,
      stdout: link,
      stderr: `These links work only while the server is running, and ${why}. Start it with: upload-server\n`,
    })
  })

  it('lead to the port that the server really has, while it runs', async () => {
    const other = createServer((_req, res) => void res.end('another program'))
    await new Promise<void>(resolve => other.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void other.close())
    const { port } = other.address() as AddressInfo
    const cwd = await makeDirectory()
    await writeFile(join(cwd, 'a.txt'), 'hello')
    const env = { UPLOAD_SERVER_PORT: String(port) }
    const server = await spawnServer([], { directory: cwd, env })
    const url = await server.url
    expect(url).not.toContain(`:${port}`)
    const running = await upload(['a.txt'], cwd, { env })
    expect(running).toMatchObject({ code: 0, stderr: '' })
    expect(await (await fetch(running.stdout.trim())).text()).toBe('hello')
    expect(await runCli(['heartbeat'], { cwd, env })).toMatchObject({ code: 0, stdout: `${url} is up\n` })

    // Killed, it leaves its address behind.
    server.process.kill('SIGKILL')
    await server.exit
    const down = await upload(['a.txt'], cwd, { env })
    expect(down.stderr).toContain(isDown)
    expect(down.stdout).toContain(`http://127.0.0.1:${port}/`)
  })

  it('are said to be dead when another server answers at the address', async () => {
    const picgo = createServer((_req, res) => void res.end('{"success":true,"result":"alive"}'))
    await new Promise<void>(resolve => picgo.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void picgo.close())
    const { port } = picgo.address() as AddressInfo
    const { code, stderr } = await linkWith({ server: { port } })
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringContaining(`the server at http://127.0.0.1:${port}/ uses another database`),
    })
  })

  it('a server that was stopped leaves no address', async () => {
    const server = await spawnServer(['--port', '0'])
    const url = await server.url
    const file = join(server.directory, 'upload-server/store.db-server')
    expect(JSON.parse(await eventually(() => readFile(file, 'utf8')))).toMatchObject({ url })
    server.process.kill('SIGTERM')
    await server.exit
    expect(existsSync(file)).toBe(false)
  })

  it('a second server of the same data folder, which has ended, leaves the entry of the first', async () => {
    const first = await spawnServer(['--port', '0'])
    const url = await first.url
    const second = await spawnServer(['--port', '0'], { directory: first.directory })
    expect(await second.url).not.toBe(url)
    second.process.kill('SIGTERM')
    await second.exit
    await writeFile(join(first.directory, 'a.txt'), 'hello')
    const { stdout, stderr } = await upload(['a.txt'], first.directory)
    expect(stderr).toBe('')
    expect(await (await fetch(stdout.trim())).text()).toBe('hello')
  })

  it('do not lead to a server that runs without their destination, unless they say so', async () => {
    const server = await spawnServer(['--port', '0'])
    const [cwd, url] = [server.directory, await server.url]
    await writeFile(join(cwd, 'a.txt'), 'x')
    const local = { other: { directory: 'other', serve: true } }
    await writeFile(join(cwd, 'b.json'), JSON.stringify({ server: { port: 1 }, providers: { local } }))
    const { stdout, stderr } = await upload(['a.txt', '-c', 'b.json'], cwd)
    expect(stdout).not.toContain(url)
    expect(stderr).toContain('the running server does not have the destination "local/other"')
  })
})

describe('output of the built program that cannot be written', () => {
  it.each(['head -0', 'head -1', 'true'])(
    'a reader that goes away sees no stack trace: | %s',
    async reader => {
      const cwd = await makePlace()
      const command = `{ upload_server upload -q a.txt b.txt 'c d.txt'; echo "ended with $?" >&2; } | ${reader}`
      const { stderr } = await runShell(command, { cwd })
      expect(stderr).toBe('ended with 0\n')
      expect(Object.keys(await stored(cwd))).toHaveLength(3)
    },
  )

  it('messages that nobody reads end nothing', async () => {
    const cwd = await makePlace()
    const command =
      '{ upload_server upload absent.txt a.txt 3>&1 >out; echo "ended with $?" >out2; } 2>&1 | true'
    await runShell(command, { cwd })
    expect(await readFile(join(cwd, 'out'), 'utf8')).toBe(`${PREFIX}/one/a.txt\n`)
    expect(await readFile(join(cwd, 'out2'), 'utf8')).toBe('ended with 3\n')
  })

  it('a full disk is a failure', async () => {
    const cwd = await makePlace()
    const { stderr } = await runShell('upload_server upload -q a.txt >/dev/full; echo "ended with $?" >&2', {
      cwd,
    })
    expect(stderr).toMatch(/^Could not write the output: ENOSPC.*\nended with 1\n$/)
  })
})

it('upload leaves no temporary file of standard input behind if the job cannot be saved', async () => {
  const cwd = await makePlace({ database: { path: 'jobs.db' } })
  expect((await upload(['a.txt'], cwd)).code).toBe(0)
  const database = openSqlite(join(cwd, 'jobs.db'))
  database.exec(`CREATE TRIGGER full BEFORE INSERT ON uploads BEGIN SELECT RAISE(ABORT, 'no room'); END`)
  database.close()
  const { code, stdout, stderr } = await upload(['-'], cwd, { input: randomBytes(3_000_000) })
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toContain('no room')
  const names = await readdir(cwd, { recursive: true })
  expect(names.filter(name => /^\d+$/.test(basename(name)))).toEqual([])
})
