import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, ftruncateSync, openSync } from 'node:fs'
import { link, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { ForeignName } from '../../src/files/foreign-name.ts'
import { createOwnCheck } from '../../src/files/own-paths.ts'
import { findWindowsFault } from '../../src/files/windows-path.ts'
import { createCanceller } from '../../src/flow/cancellation.ts'
import { createPayloads } from '../../src/payload/index.ts'
import { createSpool } from '../../src/payload/spool.ts'
import type { Caller, Input } from '../../src/uploader/input.ts'
import { obtain } from '../../src/uploader/sources/index.ts'
import { openPath } from '../../src/uploader/sources/path.ts'
import { ask } from '../helpers/ask.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { eventually } from '../helpers/eventually.ts'
import { expectFailure } from '../helpers/expect-answer.ts'
import { type Answer, list, post, upload } from '../helpers/form.ts'
import { leaveOutOnWindows, needsLinux } from '../helpers/needs.ts'
import { openFilesBelow } from '../helpers/open-files.ts'
import { shareApp, startApp, type TestApp } from '../helpers/start-app.ts'

const KEY = 'k3y-0f-the-server'
/** A caller with a key, who does not count as a program of this machine. */
const KEYED = { 'X-Upload-Key': KEY, 'X-Forwarded-For': '203.0.113.9' }

/** Servers whose callers with a key may name files below `shared`, beside which a secret lies. */
const shared = shareApp({
  config: { server: { key: KEY }, sources: { path: { roots: ['shared'] } } },
  async prepare(directory) {
    await mkdir(join(directory, 'shared/sub'), { recursive: true })
    await mkdir(join(directory, 'outside'))
    await writeFile(join(directory, 'shared/a.txt'), 'shared')
    await writeFile(join(directory, 'outside/secret.txt'), 'private')
    const links = { 'shared/link.txt': '../outside/secret.txt', 'shared/folder': '../outside' }
    const more = {
      'outside/second': 'secret.txt',
      'shared/first': '../outside/second',
      'shared/dangling': '/nowhere/at/all',
    }
    for (const [link, to] of Object.entries({ ...links, ...more })) await symlink(to, join(directory, link))
  },
})
const places = () => ({
  app: shared(),
  root: join(shared().directory, 'shared'),
  outside: join(shared().directory, 'outside'),
})
const plain = shareApp()

const name = (app: TestApp, ...paths: string[]): Promise<Answer> =>
  post(`${app.url}/upload`, { ...list(...paths), headers: KEYED })

describe('attack: a key that may name one folder names a file outside of it', () => {
  it('the folder itself is open to it', async () => {
    const { app, root } = places()
    expect(await name(app, join(root, 'a.txt'))).toMatchObject({ status: 200, items: [{ size: 6 }] })
  })

  it.for<[how: string, path: string]>([
    ['by its name', 'OUT/secret.txt'],
    ['by ..', 'ROOT/../outside/secret.txt'],
    ['by .. behind a folder that is there', 'ROOT/sub/../../outside/secret.txt'],
    ['by .. behind one that is not', 'ROOT/nowhere/../../outside/secret.txt'],
    ['by a folder whose name begins alike', 'ROOT-of-others/secret.txt'],
    ['by a link to it', 'ROOT/link.txt'],
    ['by a link to its folder', 'ROOT/folder/secret.txt'],
    ['by a link to a link', 'ROOT/first'],
    ['by a link that leads nowhere, which would tell what is there', 'ROOT/dangling'],
    ['by a file: address', 'file://OUT/secret.txt'],
    ['by a file: address with an encoded ..', 'file://ROOT/%2e%2e/outside/secret.txt'],
    ['that is not there', 'OUT/nothing.txt'],
    ['of the system', '/etc/passwd'],
    ['of the kernel', '/proc/self/environ'],
    ['of another machine', '\\\\203.0.113.9\\share\\a.txt'],
    ['of another system', 'C:\\Windows\\win.ini'],
  ])('%s', async ([, path]) => {
    const { app, root, outside } = places()
    const answer = await name(app, path.replace('ROOT', root).replace('OUT', outside))
    expectFailure(answer, 403, 'source_forbidden')
    expect(answer).not.toHaveProperty('result')
  })
})

describe('attack: a program on this machine names what is no file', () => {
  it('by its name, another one, or a link', async () => {
    const app = plain()
    const link = join(app.directory, 'link')
    await symlink('/proc/self/environ', link)
    const kernel = ['/proc/self/environ', '/proc/1/../self/mem', '/sys/kernel/notes', '/dev/../proc/version']
    for (const path of [...kernel, '/dev/zero', link])
      expectFailure(await post(`${app.url}/upload`, list(path)), 403, 'source_forbidden')
  })

  it('a pipe that nobody writes to, a folder', async context => {
    leaveOutOnWindows(context, 'it has no named pipes among files')
    const app = plain()
    const pipe = join(app.directory, 'pipe')
    execFileSync('mkfifo', [pipe])
    const answer = await post(`${app.url}/upload`, list(pipe, app.directory))
    expectFailure(answer, 422, 'source_failed')
    expect(answer.errors).toHaveLength(2)
  })
})

describe('attack: somebody asks for the files of the server itself', () => {
  /** With a configuration, a `.env`, a key in a file, and a store, all beside what it stores and hands out. */
  const untidy = shareApp({
    config: {
      server: { key: '${file:key.txt}' },
      sources: { path: { roots: ['.'] } },
      database: { path: 'store.db' },
      keyTemplate: '{filename}{extname}',
      providers: { local: { Default: { directory: '.', serve: true, onConflict: 'replace' } } },
    },
    async prepare(directory) {
      await writeFile(join(directory, 'key.txt'), KEY)
      await writeFile(join(directory, '.env'), 'SOME_TOKEN=t0ken')
    },
  })
  beforeAll(async () => {
    expect(await upload(`${untidy().url}/upload`, { 'a.txt': 'hello' })).toMatchObject({ status: 200 })
  })
  const OWN = ['upload-server.json', '.env', 'key.txt', 'store.db', 'store.db-wal']

  it.each(OWN)(
    '%s: by its path, from this machine and with a key, or where its folder is handed out',
    async file => {
      const app = untidy()
      const path = join(app.directory, file)
      expectFailure(await post(`${app.url}/upload`, list(path)), 403, 'source_forbidden')
      expectFailure(await name(app, path), 403, 'source_forbidden')
      const reply = await ask(app.url, 'GET', `/files/Default/${file}`)
      expect([reply.status, reply.body.includes(KEY)]).toEqual([404, false])
      expect((await ask(app.url, 'GET', '/files/Default/a.txt')).body).toBe('hello')
    },
  )

  it('by a hard link to one', async () => {
    const app = untidy()
    const second = join(app.directory, 'second.json')
    await link(join(app.directory, 'upload-server.json'), second)
    expectFailure(await post(`${app.url}/upload`, list(second)), 403, 'source_forbidden')
    expect((await ask(app.url, 'GET', '/files/Default/second.json')).status).toBe(404)
  })

  it.each(['upload-server.json', 'key.txt', 'store.db', 'store.db-journal'])(
    'or stores its own in place of %s',
    async file => {
      const app = untidy()
      const before = await readFile(join(app.directory, 'upload-server.json'), 'utf8')
      const answer = await upload(`${app.url}/upload`, { [file]: 'mine' })
      expectFailure(answer, 502, 'destination_failed')
      expect(await readFile(join(app.directory, 'upload-server.json'), 'utf8')).toBe(before)
      expect(await readFile(join(app.directory, 'key.txt'), 'utf8')).toBe(KEY)
    },
  )
})

it('attack: somebody asks for the store in use once a reload has named another one', async () => {
  const app = await startApp({ config: { database: { path: 'first.db' } } })
  expect((await upload(`${app.url}/upload`, { 'a.txt': 'hello' })).status).toBe(200)
  await app.reload({ database: { path: 'second.db' } })
  for (const own of ['first.db', 'upload-server.json'])
    expectFailure(await post(`${app.url}/upload`, list(join(app.directory, own))), 403, 'source_forbidden')
})

describe('attack: a file changes while it is read', () => {
  async function openFile(size: number) {
    const path = join(await makeDirectory(), 'a.bin')
    await writeFile(path, Buffer.alloc(size, 'a'))
    return { path, source: await openPath(path, { roots: undefined, isOwn: createOwnCheck([]) }) }
  }

  it('it grows: what it had when it was opened is taken', async () => {
    const { path, source } = await openFile(1000)
    createWriteStream(path, { flags: 'a' }).end('more'.repeat(100_000))
    const bytes = await buffer(source.body)
    expect(bytes.length).toBe(1000)
  })

  it('it shrinks: that is a failure, not half a file', async () => {
    const { path, source } = await openFile(1_000_000)
    ftruncateSync(openSync(path, 'r+'), 10)
    await expect(buffer(source.body)).rejects.toThrow('became shorter')
  })

  it('it vanishes: it was opened, and is read to its end', async () => {
    const { path, source } = await openFile(1000)
    execFileSync('rm', [path])
    expect((await buffer(source.body)).length).toBe(1000)
  })
})

it('attack: a name that came to lead elsewhere is judged by what was opened', async () => {
  const directory = await makeDirectory()
  await writeFile(join(directory, '.env'), 'SECRET=1')
  await symlink('.env', join(directory, 'a.png'))
  const name = new ForeignName('a.png', { folders: [directory], advice: 'No' })
  const opened = openPath(join(directory, 'a.png'), {
    roots: undefined,
    isOwn: createOwnCheck([]),
    open: () => name.open(),
  })
  await expect(opened).rejects.toThrow(/it is a symlink to \.env, which begins with a dot\./)
})

describe('attack: a path of more folders than there are', () => {
  it.for([
    ['below the root, of two megabytes', 1_000_000, 400, 'invalid_request'],
    ['below the root, as long as one may be', 1800, 422, 'source_failed'],
    ['outside, of two megabytes', 1_000_000, 400, 'invalid_request'],
    ['outside, as long as one may be', 1800, 403, 'source_forbidden'],
  ] as const)('%s: answered at once', async ([where, depth, status, code]) => {
    const { app, root, outside } = places()
    const path = `${where.startsWith('below') ? root : outside}${'/a'.repeat(depth)}`
    expectFailure(await name(app, ...Array.from({ length: depth > 5000 ? 1 : 50 }, () => path)), status, code)
  })
})

it('attack: clients name a file by its path and leave while it is opened, until no more can be', async context => {
  needsLinux(context, 'open files are seen in /proc')
  const directory = await makeDirectory()
  const path = join(directory, 'a.bin')
  await writeFile(path, Buffer.alloc(1_000_000))
  const settings = { fileSize: 1e9, urlTimeoutMs: 1000, isOwn: createOwnCheck([]), env: {} }
  const caller: Caller = {
    name: 'key',
    admittedBy: 'key',
    sources: new Set(['path']),
    roots: [directory],
    addresses: 'public',
    destinations: undefined,
  }
  const spool = createSpool(join(directory, 'tmp'))
  for (let index = 0; index < 20; index++) {
    const leaving = createCanceller()
    const input: Input = { kind: 'path', origin: path, path }
    const from = { payloads: createPayloads(), spool, sources: settings }
    const destination = { spool: undefined }
    const obtained = obtain(input, { caller, destination, signal: leaving.signal }, from)
    leaving.abort(new Error('left'))
    await expect(obtained).rejects.toThrow('left')
    expect(openFilesBelow(directory)).not.toContain(path)
  }
})

it('attack: clients ask for a file and leave, until no more can be opened', async context => {
  needsLinux(context, 'open files are seen in /proc')
  const app = await startApp()
  const { result } = await upload(`${app.url}/upload`, { 'a.bin': Buffer.alloc(5_000_000) })
  const { pathname, port } = new URL(result[0] as string)
  const warnings: string[] = []
  const note = ({ message }: Error) => void warnings.push(message)
  process.on('warning', note)
  onTestFinished(() => void process.off('warning', note))
  for (let index = 0; index < 60; index++) {
    const socket = connect(Number(port), '127.0.0.1')
    await once(socket, 'connect')
    socket.write(`GET ${pathname} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    await sleep(index % 6)
    socket.resetAndDestroy()
  }
  await eventually(() =>
    expect(openFilesBelow(app.directory).filter(path => path.endsWith('.bin'))).toEqual([]),
  )
  expect(warnings).toEqual([])
})

describe('attack: a path of Windows', () => {
  const roots = ['C:\\shared', '\\\\files\\pictures']

  it.each([
    ['asks another machine, which gets the credentials of the server', '\\\\203.0.113.9\\share\\a.png'],
    ['the same with other slashes', '//203.0.113.9/share/a.png'],
    ['a share beside the allowed one', '\\\\files\\private\\a.png'],
    ['a device', '\\\\.\\PhysicalDrive0'],
    ['a pipe', '\\\\.\\pipe\\x'],
    ['the object tree', '\\\\?\\GLOBALROOT\\Device\\HarddiskVolume1\\a.png'],
    ['the object tree of the kernel', '\\??\\C:\\a.png'],
    ['a device in a folder', 'C:\\shared\\CON'],
    ['a device with an extension', 'C:\\shared\\com1.png'],
    ['a second data stream', 'C:\\shared\\a.png:hidden'],
    ['the first data stream by its name', 'C:\\shared\\a.png::$DATA'],
  ])('%s', (_, path) => {
    expect(findWindowsFault(path, roots, 'win32')).toBeTypeOf('string')
    expect(findWindowsFault(path, roots, 'linux')).toBeUndefined()
  })

  it.each(['C:\\shared\\a.png', 'c:/shared/a.png', '\\\\files\\pictures\\a.png', '//FILES/Pictures/b.png'])(
    '%s is none',
    path => expect(findWindowsFault(path, roots, 'win32')).toBeUndefined(),
  )

  it('a program on this machine may name shares', () => {
    expect(findWindowsFault('\\\\files\\private\\a.png', undefined, 'win32')).toBeUndefined()
  })
})
