import { chmod, mkdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { orAborted } from '../../../src/flow/cancellation.ts'
import type { Target, UploadObject } from '../../../src/providers/contract.ts'
import { sftp } from '../../../src/providers/sftp/index.ts'
import { failureOf } from '../../helpers/failure-of.ts'
import { mountSmall } from '../../helpers/mount-small.ts'
import { hasAll, needsAll } from '../../helpers/needs.ts'
import { measureGrowth } from '../../helpers/peak-memory.ts'
import { type ContractSetup, describeProvider, objectOf } from '../../helpers/provider-contract.ts'
import { closeWithoutRests, isTemporary, listFiles } from '../../helpers/remote-files.ts'
import { OPENSSH_NEEDS, type OpenSsh, startOpenSsh } from '../../servers/openssh.ts'
import { PROFTPD_NEEDS } from '../../servers/proftpd.ts'
import { startProFtpdSftp } from '../../servers/proftpd-sftp.ts'
import { startProxy } from '../../servers/proxy.ts'
import { startWebFolder } from '../../servers/web-folder.ts'
import { loginOf, type Options, openForTest, openSftp, persist } from './sftp/open-sftp.ts'

const MIB = 1024 * 1024
const never = () => new AbortController().signal

async function startContract(
  server: { directory: string; port: number; close(): Promise<void> },
  login: Options,
  bad: Options,
  secrets: string[],
): Promise<ContractSetup> {
  const web = await startWebFolder(server.directory)
  const proxy = await startProxy([server.port])
  const options = { ...login, directory: 'www/bilder ä', urlPrefix: `${web.url}www/bilder%20%C3%A4` }
  return {
    target: await openSftp(options),
    fetch: web.fetch,
    secrets,
    withBadCredentials: () => openSftp({ ...options, ...bad }),
    breakable: async () => ({ ...proxy, target: await openSftp({ ...options, port: proxy.port }) }),
    farEnd: { port: server.port, open: port => openSftp({ ...options, port }) },
    without: { http: 'SFTP is no HTTP' },
    close: () => closeWithoutRests(server, proxy, web),
  }
}

describeProvider(
  'sftp at OpenSSH with a key',
  async () => {
    const server = await startOpenSsh()
    const bad = { password: 'wrong-password', privateKeyFile: undefined }
    return startContract(server, loginOf(server), bad, ['wrong-password'])
  },
  OPENSSH_NEEDS,
)

it('sftp stores and checks at ProFTPD with a password', async context => {
  needsAll(context, PROFTPD_NEEDS)
  const server = await startProFtpdSftp()
  onTestFinished(server.close)
  const { port, username, password, fingerprint } = server
  const target = await openForTest({ port, username, password, hostFingerprint: fingerprint })
  await target.check?.(never())
  for (const content of ['', 'some bytes', 'others']) {
    await target.put(objectOf('x/ü.txt', Buffer.from(content)), never())
    expect(await readFile(join(server.directory, 'x/ü.txt'), 'utf8')).toBe(content)
  }
  await target.remove?.('x/ü.txt', never())
  expect(await target.exists?.('x/ü.txt', never())).toBe(false)
})

describe('options of sftp', () => {
  const minimal = { host: 'example.com', username: 'u', urlPrefix: 'https://img.example.com', password: 'p' }
  const validate = (options: Options) => sftp.validate?.(sftp.config.parse({ ...minimal, ...options }))

  it.each<[string, Options, string | undefined]>([
    ['a password', {}, undefined],
    ['a key', { password: undefined, privateKey: 'k' }, undefined],
    ['an agent', { password: undefined, agent: '/run/agent' }, undefined],
    ['a key and a password', { privateKeyFile: 'k', passphrase: 'x' }, undefined],
    ['nothing', { password: undefined }, 'Set "password"'],
    ['two keys', { privateKey: 'k', privateKeyFile: 'k' }, 'not both'],
    ['a passphrase without a key', { passphrase: 'x' }, '"passphrase" needs'],
  ])('log in with %s: %j', (_, options, complaint) => {
    const said = validate(options)
    if (complaint === undefined) expect(said).toBeUndefined()
    else expect(said).toContain(complaint)
  })

  it.each([
    ['host', 'sftp://example.com'],
    ['host', 'example.com/www'],
    ['host', 'user@example.com'],
    ['host', ''],
    ['port', 0],
    ['port', 65_536],
    ['port', '22'],
    ['username', ''],
    ['password', ''],
    ['hostFingerprint', 'MD5:16:27:ac:a5:76:28:2d:36:63:1b:56:4d:eb:df:a6:48'],
    ['hostFingerprint', 'SHA256:short'],
    ['hostFingerprint', []],
    ['directory', '~/www'],
    ['directory', 'a\nb'],
    ['urlPrefix', 'sftp://example.com'],
    ['urlPrefix', undefined],
    ['fileMode', '444'],
    ['fileMode', 'rw-r--r--'],
    ['directoryMode', '0655'],
  ])('refuse %s %j', (option, value) => {
    const { error } = sftp.config.safeParse({ ...minimal, [option]: value })
    expect(error?.issues.map(issue => issue.path)).toEqual([[option]])
    expect(error?.issues[0]?.message).not.toBe('Invalid input')
  })
})

/** An object that gives its first megabyte and then waits until `go` is called. `sent` when it is asked for more. */
function pausedObject(
  key: string,
  bytes: Buffer,
): { object: UploadObject; go: () => void; sent: Promise<void> } {
  let onSent = () => {}
  const sent = new Promise<void>(resolve => {
    onSent = resolve
  })
  let go = () => {}
  const goes = new Promise<void>(resolve => {
    go = resolve
  })
  async function* read(signal: AbortSignal) {
    yield bytes.subarray(0, MIB)
    onSent()
    await orAborted(goes, signal)
    yield bytes.subarray(MIB)
  }
  return { object: { ...objectOf(key, bytes), read }, go, sent }
}

describe('sftp at OpenSSH', () => {
  let server: OpenSsh
  let target: Target

  beforeAll(async () => {
    if (hasAll(OPENSSH_NEEDS)) server = await startOpenSsh()
  })
  beforeEach(async context => {
    needsAll(context, OPENSSH_NEEDS)
    await rm(server.directory, { recursive: true })
    await mkdir(server.directory)
    target = await openForTest(loginOf(server))
  })
  afterAll(() => server?.close())

  const read = (key: string) => readFile(join(server.directory, key))
  const modeOf = async (path: string) => (await stat(join(server.directory, path))).mode & 0o7777

  it('needs memory for a part of a file alone, however large it is', {
    timeout: 60_000,
  }, async () => {
    const options = { ...loginOf(server), host: '127.0.0.1', directory: 'large', urlPrefix: 'https://x.org' }
    expect(await measureGrowth('sftp', options, 128)).toBeLessThan(64)
  })

  it('uses one connection for all puts, and none before the first', async () => {
    const proxy = await startProxy([server.port])
    onTestFinished(() => proxy.close())
    const own = await openForTest({ ...loginOf(server), port: proxy.port })
    expect(proxy.connections()).toBe(0)
    await Promise.all(
      Array.from({ length: 12 }, (_, i) => own.put(objectOf(`${i}.bin`, Buffer.of(i)), never())),
    )
    expect(proxy.connections()).toBe(1)
    await own.close?.()
    await expect.poll(proxy.connections).toBe(0)
    expect(await listFiles(server.directory)).toHaveLength(12)
  })

  it('fails every put under way when the connection breaks, as transient, and connects again', async () => {
    const paused = [0, 1, 2].map(i => pausedObject(`${i}.bin`, Buffer.alloc(3 * MIB)))
    const failures = paused.map(({ object }) => failureOf(target.put(object, never())))
    await Promise.all(paused.map(({ sent }) => sent))
    server.killSessions()
    for (const { go } of paused) go()
    for (const error of await Promise.all(failures)) {
      expect(error).toMatchObject({ code: 'destination_failed', retryable: true })
      expect(error.message).toContain(`"sftp/Default" (127.0.0.1, port ${server.port})`)
    }
    expect((await listFiles(server.directory)).filter(isTemporary)).toHaveLength(3)
    await target.put(objectOf('again.bin', Buffer.of(1)), never())
    await expect.poll(() => listFiles(server.directory)).toEqual(['again.bin'])
  })

  it('gives up at once on a server that says nothing any more, and closes', async () => {
    const proxy = await startProxy([server.port])
    onTestFinished(() => proxy.close())
    const own = await openForTest({ ...loginOf(server), port: proxy.port })
    const { object, go, sent } = pausedObject('a.bin', Buffer.alloc(3 * MIB))
    const abort = new AbortController()
    const put = own.put(object, abort.signal)
    await sent
    proxy.silence()
    go()
    abort.abort()
    await expect(put).rejects.toThrow('aborted')
    await own.close?.()
    await expect(own.put(objectOf('b.bin', Buffer.of(1)), never())).rejects.toThrow()
    await expect.poll(proxy.connections, { timeout: 5000 }).toBe(0)
  })

  it.each(['0600', '0644', '666', '0777'])(
    'gives files the mode %s, whatever the umask of the server',
    async mode => {
      const own = await openForTest({ ...loginOf(server), fileMode: mode })
      for (const content of ['first', 'second'])
        await own.put(objectOf('a.bin', Buffer.from(content)), never())
      expect(await modeOf('a.bin')).toBe(Number.parseInt(mode, 8))
    },
  )

  it.each(['0700', '0777', '2770'])('gives new folders the mode %s, and old ones none', async mode => {
    await mkdir(join(server.directory, 'old'), { mode: 0o755 })
    const own = await openForTest({ ...loginOf(server), directory: 'old/base', directoryMode: mode })
    await own.put(objectOf('x/y/a.bin', Buffer.of(1)), never())
    expect(await modeOf('old')).toBe(0o755)
    for (const path of ['old/base', 'old/base/x', 'old/base/x/y'])
      expect(await modeOf(path)).toBe(Number.parseInt(mode, 8))
  })

  it.each([
    ['', 'a.bin'],
    ['.', 'a.bin'],
    ['./x/', 'x/a.bin'],
    ['x//', 'x/a.bin'],
    ['absolute/', 'absolute/a.bin'],
  ])('stores below the directory %j', async (directory, expected) => {
    const path = directory.startsWith('absolute') ? `${join(server.directory, directory)}` : directory
    const own = await openForTest({ ...loginOf(server), directory: path })
    await own.put(objectOf('a.bin', Buffer.from('bytes')), never())
    await own.check?.(never())
    expect((await read(expected)).toString()).toBe('bytes')
    expect((await listFiles(server.directory)).filter(isTemporary)).toEqual([])
  })

  it('runs nothing in a shell: a name that is a command is a name (defect 17 of PicList)', async () => {
    const own = await openForTest({ ...loginOf(server), fileMode: '0640', directoryMode: '0750' })
    const name = '$(touch pwned)`touch pwned`";touch pwned;".png'
    await own.put(objectOf(`${name}/${name}`, Buffer.of(1)), never())
    await expect.poll(() => listFiles(server.directory)).toEqual([name, `${name}/${name}`])
    expect(await modeOf(`${name}/${name}`)).toBe(0o640)
  })

  it('replaces a link, not what it leads to', async () => {
    await writeFile(join(server.directory, 'precious'), 'precious')
    await symlink('precious', join(server.directory, 'a.png'))
    await target.put(objectOf('a.png', Buffer.from('new')), never())
    expect((await read('precious')).toString()).toBe('precious')
    expect((await read('a.png')).toString()).toBe('new')
  })

  it.each([
    ['a file where a folder is needed', 'a.png/b.png', 'a.png'],
    ['a folder where the file goes', 'folder', 'folder'],
  ])('says that there is %s', async (_, key, name) => {
    await writeFile(join(server.directory, 'a.png'), 'file')
    await mkdir(join(server.directory, 'folder'))
    const error = await failureOf(target.put(objectOf(key, Buffer.of(1)), never()))
    expect(error).toMatchObject({ code: 'destination_failed', retryable: false })
    expect(error.message).toContain(`named "${name}" already exists`)
    expect(error.message).not.toContain(server.directory)
    await expect.poll(() => listFiles(server.directory)).toEqual(['a.png', 'folder'])
  })

  it('refuses a body that is shorter or longer than it says', async () => {
    for (const size of [1, MIB + 1]) {
      const object = { ...objectOf('a.bin', Buffer.alloc(MIB)), size }
      const error = await failureOf(target.put(object, never()))
      expect(error.retryable).toBe(true)
    }
    await expect.poll(() => listFiles(server.directory)).toEqual([])
  })

  it('says that the disk of the server is full, and leaves nothing half', async context => {
    await mountSmall(context, join(server.directory, 'small'), '2m')
    const own = await openForTest({ ...loginOf(server), directory: 'small' })
    await own.put(objectOf('a.bin', Buffer.from('before')), never())
    const error = await failureOf(own.put(objectOf('a.bin', Buffer.alloc(4 * MIB)), never()))
    expect(error).toMatchObject({ code: 'insufficient_storage' })
    expect(error.message).toContain('is full')
    await expect.poll(() => listFiles(join(server.directory, 'small'))).toEqual(['a.bin'])
    expect((await read('small/a.bin')).toString()).toBe('before')
  })
})

describe('sftp at a server without the extensions of OpenSSH', () => {
  it('replaces a file all the same', async context => {
    needsAll(context, OPENSSH_NEEDS)
    const server = await startOpenSsh('-P posix-rename,fsync,statvfs,limits')
    onTestFinished(server.close)
    const target = await openForTest(loginOf(server))
    for (const content of ['first', 'second']) {
      await target.put(objectOf('a/b.bin', Buffer.from(content)), never())
      expect(await readFile(join(server.directory, 'a/b.bin'), 'utf8')).toBe(content)
    }
    await expect.poll(() => listFiles(server.directory)).toEqual(['a', 'a/b.bin'])
  })
})

describe('sftp at ProFTPD', () => {
  it('says that the user may not write there', async context => {
    needsAll(context, PROFTPD_NEEDS)
    const server = await startProFtpdSftp()
    onTestFinished(server.close)
    const { port, username, password, fingerprint } = server
    const target = await openForTest({ port, username, password, hostFingerprint: fingerprint })
    await mkdir(join(server.directory, 'locked'))
    await chmod(join(server.directory, 'locked'), 0o555)
    for (const key of ['locked/a.bin', 'locked/x/a.bin']) {
      const error = await failureOf(target.put(objectOf(key, Buffer.of(1)), never()))
      expect(error).toMatchObject({ code: 'destination_failed', retryable: false })
      expect(error.message).toContain('permission denied')
    }
    server.killSessions()
    await persist(() => target.put(objectOf('a.bin', Buffer.of(1)), never()))
  })
})
