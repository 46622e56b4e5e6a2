import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readdir, readFile, truncate, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { eventually } from '../helpers/eventually.ts'
import { download } from '../helpers/form.ts'
import { needsLinux } from '../helpers/needs.ts'
import { BIN, environmentIn, spawnServer } from '../helpers/spawn-server.ts'
import { openSqlite } from '../helpers/sqlite.ts'
import { startApp } from '../helpers/start-app.ts'
import { startStubBucket } from '../helpers/stub-bucket.ts'
import { serve } from '../uploader/sources/servers.ts'
import { runBuilt, runCli, runShell } from './run-cli.ts'

const KEEP_NAMES = { keyTemplate: '{path}/{filename}{extname}' }
const ONE = { local: { Default: { directory: 'one', urlPrefix: 'https://img.example' } } }

/** A working directory with a destination that keeps names, and some files. */
async function makePlace(
  config: object = {},
  files: Record<string, string> = { 'a.txt': 'a', 'b.txt': 'b', 'c d.txt': 'c' },
): Promise<string> {
  const cwd = await makeDirectory()
  await writeFile(
    join(cwd, 'upload-server.json'),
    JSON.stringify({ providers: ONE, ...KEEP_NAMES, ...config }),
  )
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(cwd, name)), { recursive: true })
    await writeFile(join(cwd, name), content)
  }
  return cwd
}

const upload = (args: string[], cwd: string, more: { env?: Record<string, string>; input?: Buffer } = {}) =>
  runCli(['upload', '--quiet', ...args], { cwd, ...more })

async function filesBelow(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => [])
  return entries.filter(entry => entry.isFile()).map(entry => join(entry.parentPath, entry.name))
}

function start(
  args: string[],
  cwd: string,
): { child: ChildProcess; output: Promise<[string, string, number]> } {
  const child = spawn(process.execPath, [BIN, 'upload', ...args], { cwd, env: environmentIn(cwd) })
  child.stdin.on('error', () => {})
  const output = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { child, output: output.then(([stdout, stderr, [code]]) => [stdout, stderr, code as number]) }
}

it('a file at an address of this machine is uploaded, its login page is not', async () => {
  const cwd = await makePlace()
  const { origin } = await serve((req, res) =>
    res.end(req.url === '/x.png' ? '<!doctype html><form>' : 'from afar'),
  )
  const { stdout, stderr } = await upload(['a.txt', `${origin}/x/remote.txt?v=1`, `${origin}/x.png`], cwd)
  expect(stdout).toBe('https://img.example/a.txt\nhttps://img.example/remote.txt\n')
  expect(await readFile(join(cwd, 'one/remote.txt'), 'utf8')).toBe('from afar')
  expect(stderr).toContain('x.png" returned a web page instead of a file. It may require a login.')
})

it.each([
  ['history', 'files', 'a.txt'],
  ['job', 'uploads', '-'],
])('where the %s can not be saved, it said "interrupted" and nothing else', async (_, table, file) => {
  const cwd = await makePlace({ database: { path: 'store.db' } })
  expect(await upload(['b.txt'], cwd)).toMatchObject({ code: 0 })
  const database = openSqlite(join(cwd, 'store.db'))
  onTestFinished(() => database.close())
  const fail = `select raise(abort, 'disk is full')`
  database.exec(`create trigger full before insert on ${table} begin ${fail}; end`)
  const input = randomBytes(3_000_000)
  const { code, stdout, stderr } = await upload([file], cwd, { input })
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toContain('disk is full')
  // No temporary file of standard input is left behind.
  expect((await filesBelow(cwd)).filter(path => /^\d+$/.test(basename(path)))).toEqual([])
  database.exec('drop trigger full')
  expect(await upload([file], cwd, { input })).toMatchObject({ code: 0 })
})

/** Has the built program upload five files, of which four are stored and the last one is under way. */
async function leaveFifth() {
  const bucket = await startStubBucket()
  const files = ['a.txt', 'b.txt', 'c d.txt', 'd.txt', 'e.txt']
  const contents = Object.fromEntries(files.map(name => [name, name]))
  const cwd = await makePlace({ providers: { s3: { one: bucket.options } } }, contents)
  bucket.hold()
  const running = start(files, cwd)
  // Four go out at a time.
  await expect.poll(() => bucket.puts, { timeout: 20_000 }).toHaveLength(4)
  bucket.letGo()
  bucket.hold()
  await expect.poll(() => bucket.puts, { timeout: 20_000 }).toHaveLength(5)
  return { cwd, files, ...running, prefix: bucket.options['urlPrefix'] }
}

/** A server that stores every file but those whose names begin with "slow", which it never answers. */
async function startHalf() {
  let reached = () => {}
  const slow = new Promise<void>(resolve => {
    reached = resolve
  })
  const { origin } = await serve(async (req, res) => {
    const name = /filename="([^"]+)"/.exec(await text(req))?.[1] ?? ''
    if (name.startsWith('slow')) reached()
    else res.end(JSON.stringify({ success: true, result: [`https://img.example/${name}`] }))
  })
  const big = 'x'.repeat(70_000)
  return { origin, slow, cwd: await makePlace({}, { 'slow.txt': big, 'b.txt': big, 'c.txt': big }) }
}

it('kill -9 leaves no printed link that the history does not know', async () => {
  const { child, output } = await leaveFifth()
  child.kill('SIGKILL')
  const [stdout] = await output
  expect(stdout).toBe('')
})

it('a link is printed as soon as its turn has come', async () => {
  const { origin, slow, cwd } = await startHalf()
  const { child, output } = start(['--server', origin, 'b.txt', 'slow.txt'], cwd)
  const [first] = await once(child.stdout!, 'data')
  expect(String(first)).toBe('https://img.example/b.txt\n')
  await slow
  child.kill('SIGKILL')
  await output
})

describe('Ctrl-C', () => {
  it('leaves nothing half, says what was stored and what to repeat, and ends with 130', async () => {
    const { cwd, files, child, output, prefix } = await leaveFifth()
    const before = await filesBelow(cwd)
    child.kill('SIGINT')
    const [stdout, stderr, code] = await output
    const links = files.slice(0, 4).map(name => `${prefix}/${encodeURIComponent(name)}\n`)
    expect({ code, stdout }).toEqual({ code: 130, stdout: links.join('') })
    expect(stderr.match(/: the upload was interrupted$/gm)).toHaveLength(1)
    expect(stderr).toContain(`1 of 5 files failed. Try again: upload-server upload e.txt`)
    const after = await filesBelow(cwd)
    expect(after.filter(path => !before.includes(path) && !path.includes('store.db'))).toEqual([])
  })

  it('ends reading standard input', async () => {
    const cwd = await makePlace()
    const before = await filesBelow(cwd)
    const { child, output } = start(['-', 'a.txt'], cwd)
    child.stdin?.write(randomBytes(3_000_000))
    await eventually(async () =>
      expect((await filesBelow(cwd)).some(path => /^\d+$/.test(basename(path)))).toBe(true),
    )
    child.kill('SIGINT')
    expect((await output)[2]).toBe(130)
    expect(await filesBelow(cwd)).toEqual(before)
  })

  it('prints what is stored behind what is not, and says what is not', async () => {
    const { origin, slow, cwd } = await startHalf()
    const args = ['--server', origin, '--junit', 'j.xml', 'b.txt', 'slow.txt', 'c.txt']
    const { child, output } = start(args, cwd)
    let said = ''
    child.stderr?.on('data', chunk => {
      said += chunk
    })
    await Promise.all([slow, expect.poll(() => said, { timeout: 10_000 }).toContain('[2/3] ')])
    child.kill('SIGINT')
    const [stdout, stderr, code] = await output
    expect({ code, stdout }).toEqual({
      code: 130,
      stdout: 'https://img.example/b.txt\nhttps://img.example/c.txt\n',
    })
    expect(stderr).toMatch(
      /^slow\.txt: the upload was interrupted\n1 of 3 files failed\. Try again: .* slow\.txt\n$/m,
    )
    expect(await readFile(join(cwd, 'j.xml'), 'utf8')).toContain('<failure type="interrupted"')
  })
})

describe('links to what the server hands out itself', () => {
  const served = { local: { Default: { directory: 'served', serve: true } } }
  const isDown = 'it is not running'

  it.each<[object, string, string]>([
    [{ host: '0.0.0.0', port: 1234 }, 'http://127.0.0.1:1234/files/Default/a.txt\n', isDown],
    [{ host: '::', port: 1 }, 'http://[::1]:1/files/Default/a.txt\n', isDown],
    [{ host: '/run/upload.sock' }, 'http://localhost/files/Default/a.txt\n', isDown],
    ...['https://i.example/up', 'https://i.example/up/'].map((publicUrl): [object, string, string] => [
      { publicUrl },
      'https://i.example/up/files/Default/a.txt\n',
      'no upload server responds at https://i.example/up/',
    ]),
  ])('begin as configured, and are said to be dead while no server runs: %j', async (server, link, why) => {
    expect(await upload(['a.txt'], await makePlace({ server, providers: served }))).toEqual({
      code: 0,
      stdout: link,
      stderr: `These links work only while the server is running, and ${why}. Start it with: upload-server\n`,
    })
  })

  it('lead to the port that the server really has, while it runs', async () => {
    const { port } = await serve((_req, res) => void res.end('another program'))
    const cwd = await makePlace({ providers: served })
    const env = { UPLOAD_SERVER_PORT: String(port) }
    const server = await spawnServer([], { directory: cwd, env })
    const url = await server.url
    expect(url).not.toContain(`:${port}`)
    const running = await upload(['a.txt'], cwd, { env })
    expect(running).toMatchObject({ code: 0, stderr: '' })
    expect((await download(running.stdout.trim())).toString()).toBe('a')
    expect(await runCli(['heartbeat'], { cwd, env })).toMatchObject({ code: 0, stdout: `${url} is up\n` })

    // Killed, it leaves its row behind.
    server.process.kill('SIGKILL')
    await server.exit
    const down = await upload(['a.txt'], cwd, { env })
    expect(down.stderr).toContain(isDown)
    expect(down.stdout).toContain(`http://127.0.0.1:${port}/`)
  })

  it('are said to be dead when another server answers at the address', async () => {
    const picgo = await serve((_req, res) => void res.end('{"success":true,"result":"alive"}'))
    const cwd = await makePlace({ server: { port: picgo.port }, providers: served })
    const { code, stderr } = await upload(['a.txt'], cwd)
    expect(code).toBe(0)
    expect(stderr).toContain(`the server at ${picgo.origin}/ uses another database`)
  })

  it('lead to no server without their destination, nor to one that was stopped, but to the one that is left', async () => {
    const first = await spawnServer(['--port', '0'])
    const { directory: cwd } = first
    const url = await first.url
    const second = await spawnServer(['--port', '0'], { directory: cwd })
    expect(await second.url).not.toBe(url)
    second.process.kill('SIGTERM')
    await second.exit
    await writeFile(join(cwd, 'a.txt'), 'hello')
    const { stdout, stderr } = await upload(['a.txt'], cwd)
    expect(stderr).toBe('')
    expect((await download(stdout.trim())).toString()).toBe('hello')

    const local = { other: { directory: 'other', serve: true } }
    await writeFile(join(cwd, 'b.json'), JSON.stringify({ server: { port: 1 }, providers: { local } }))
    const other = await upload(['a.txt', '-c', 'b.json'], cwd)
    expect(other.stdout).not.toContain(url)
    expect(other.stderr).toContain('the running server does not have the destination "local/other"')

    first.process.kill('SIGKILL')
    await first.exit
    expect((await upload(['a.txt'], cwd)).stderr).toContain('it is not running')
  })
})

describe('output of the built program that cannot be written', () => {
  it.each(['head -1', 'true'])('a reader that goes away sees no stack trace: | %s', async reader => {
    const cwd = await makePlace()
    const command = `{ upload_server upload -q a.txt b.txt 'c d.txt'; echo "ended with $?" >&2; } | ${reader}`
    const { stderr } = await runShell(command, { cwd })
    expect(stderr).toBe('ended with 0\n')
    expect(await readdir(join(cwd, 'one'))).toHaveLength(3)
  })

  it('messages that nobody reads end nothing', async () => {
    const cwd = await makePlace()
    const command =
      '{ upload_server upload absent.txt a.txt 3>&1 >out; echo "ended with $?" >out2; } 2>&1 | true'
    await runShell(command, { cwd })
    expect(await readFile(join(cwd, 'out'), 'utf8')).toBe(`https://img.example/a.txt\n`)
    expect(await readFile(join(cwd, 'out2'), 'utf8')).toBe('ended with 3\n')
  })

  it('a full disk is a failure', async () => {
    const command = 'upload_server upload -q a.txt >/dev/full; echo "ended with $?" >&2'
    const { stderr } = await runShell(command, { cwd: await makePlace() })
    expect(stderr).toMatch(/^Could not write the output: ENOSPC.*\nended with 1\n$/)
  })
})

describe('upload --server', () => {
  it('keeps the order of files, addresses and standard input, and goes on after what fails', async () => {
    const app = await startApp({ config: KEEP_NAMES })
    const { origin: other } = await serve((req, res) => {
      if (req.url?.includes('absent')) res.writeHead(404)
      res.end(`from ${req.url}`)
    })
    const names = `${other}/1.txt a.txt absent.txt ${other}/absent.txt - ${other}/2.txt b.txt`.split(' ')
    const at = ['--server', app.url, '--retry-max-time', '0']
    const { code, stdout, stderr } = await upload([...at, ...names], await makePlace(), {
      input: Buffer.from('piped'),
    })
    expect(code).toBe(3)
    const links = stdout.trimEnd().split('\n')
    const contents = await Promise.all(links.map(async link => String(await download(link))))
    expect(contents).toEqual(['from /1.txt', 'a', 'piped', 'from /2.txt', 'b'])
    expect(stderr).toMatch(new RegExp(`^absent\\.txt: .*not exist\n${other}/absent\\.txt: .*404`, 'm'))
    expect(stderr).toContain(
      `2 of 7 files failed. Try again: upload-server upload --quiet ${at.join(' ')} absent.txt ${other}/absent.txt\n`,
    )
  })

  it('names of any kind go through: spaces, quotes, Chinese, line feeds, what a shell would take for its own', async () => {
    const names = [
      ...['a b.txt', `it's "quoted".txt`, '截图 1.txt', 'l\n::error::ine.txt', '$(id) `id`.txt', '-v.txt'],
      ...['[1] {a,b}*.txt', 'a;type=x,b.txt', '%41#?&=+.txt'],
    ]
    const app = await startApp()
    const cwd = await makePlace({}, Object.fromEntries(names.map(name => [`in/${name}`, name])))
    const at = ['--server', app.url, '--format', 'json']
    const asFolder = await upload([...at, 'in'], cwd)
    const input = Buffer.from(names.map(name => `in/${name}\0`).join(''))
    for (const { code, stdout } of [asFolder, await upload([...at, '--files-from', '-'], cwd, { input })]) {
      expect(code).toBe(0)
      const results = JSON.parse(stdout) as { name: string; url: string }[]
      expect(results.map(({ name }) => name.replace(/^in\//, '')).sort()).toEqual([...names].sort())
      for (const { name, url } of results) expect(`in/${await download(url)}`).toBe(name)
    }
  })

  it('a report finds its pictures where its folders are kept', async () => {
    const app = await startApp({ config: KEEP_NAMES })
    const report = { 'out/report/index.html': '<img src="img/a%20b.png">', 'out/report/img/a b.png': 'a' }
    const cwd = await makePlace({}, report)
    const folders = ['--path', 'runs/7', '--keep-folders', '--strip-components', '1']
    const { code, stdout } = await upload(['--server', app.url, ...folders, 'out'], cwd)
    expect(code).toBe(0)
    const [page = ''] = stdout.split('\n')
    expect(page).toMatch(/\/runs\/7\/report\/index\.html$/)
    expect((await download(new URL('img/a%20b.png', page).href)).toString()).toBe('a')
  })

  it('the built program sends the key of its environment, and an option wins', async () => {
    const app = await startApp({ config: { server: { key: 'clé 0123' }, auth: { loopbackExempt: false } } })
    const cwd = await makePlace()
    for (const [key, args] of [
      ['clé 0123', []],
      ['wrong', ['--key', 'clé 0123']],
    ] as const) {
      const env = { UPLOAD_SERVER_KEY: key }
      const result = await runBuilt(['upload', '-q', '--server', app.url, ...args, 'a.txt'], { cwd, env })
      expect(result).toMatchObject({ code: 0, stderr: '' })
    }
  })

  it('never has a large file in memory', async context => {
    needsLinux(context, '/proc')
    const app = await startApp({ config: { limits: { fileSize: '1GB' } } })
    // Not maxRSS, which begins at what the process that started it had.
    const tellPeak = `import { readFileSync } from 'node:fs'
      process.on('exit', () => console.error('peak', /VmHWM:\\s+(\\d+)/.exec(readFileSync('/proc/self/status'))[1]))`
    const env = { NODE_OPTIONS: `--import "data:text/javascript,${encodeURIComponent(tellPeak)}"` }
    const cwd = await makePlace()
    await truncate(join(cwd, 'a.txt'), 128 * 1024 * 1024)
    const { code, stderr } = await runBuilt(['upload', '-q', '--server', app.url, 'a.txt'], { cwd, env })
    expect(code).toBe(0)
    expect(Number(/^peak (\d+)$/m.exec(stderr)?.[1])).toBeLessThan(180 * 1024)
  })

  const keyed = { server: { key: 'right' }, auth: { loopbackExempt: false } }
  it.each<[string, object, number, RegExp]>([
    ['as too large', { limits: { fileSize: '1MB' } }, 1, /^a\.txt: "a\.txt" is larger than 1 MB/],
    ['without its key', keyed, 5, /^a\.txt: Missing or/],
  ])('is told why a large file is refused %s while it is on its way', async (_, config, code, said) => {
    const app = await startApp({ config: { ...config } })
    const cwd = await makePlace()
    await truncate(join(cwd, 'a.txt'), 60_000_000)
    const result = await upload(['--server', app.url, 'a.txt'], cwd)
    expect(result).toMatchObject({ code, stderr: expect.stringMatching(said) })
  })

  it('counts many that failed for one reason, and repeats no line that no shell takes', async () => {
    const names = Array.from({ length: 900 }, (_, n) => `not-there-${n}.txt`)
    const { stderr } = await upload(['--server', 'http://127.0.0.1:9/', ...names], await makePlace())
    expect(stderr).toBe('not-there-0.txt and 899 others: the file does not exist\n900 of 900 files failed.\n')
  })
})

it('attack: a list in a cloned repository names secrets, URLs and files elsewhere', async () => {
  const cwd = await makePlace({}, { 'a.txt': 'a', '.git/config': 's', 'sub/.npmrc': 's', '../secret': 's' })
  const app = await startApp()
  const refused = [
    ...['../secret', join(cwd, '../secret'), `file://${cwd}/a.txt`, `${app.url}/health`],
    ...['.git/config', 'sub/.npmrc', '{.npmrc,x}'],
  ]
  await writeFile(join(cwd, 'list'), ['a.txt', ...refused].join('\n'))
  for (const to of [[], ['--server', app.url]]) {
    const { code, stdout, stderr } = await upload(['--files-from', 'list', '--format', 'json', ...to], cwd)
    const results = JSON.parse(stdout) as { name: string; url?: string; code?: string }[]
    expect(results.map(({ name, url }) => [name, url !== undefined])).toEqual([
      ['a.txt', true],
      ...refused.map(name => [name, false]),
    ])
    expect(results.slice(1, -1).map(one => one.code)).toEqual(refused.slice(1).map(() => 'source_forbidden'))
    expect(code).toBe(3)
    expect(stderr).toMatch(/7 of 8 files failed\.\n$/) // no command that would name them as arguments
  }
})
