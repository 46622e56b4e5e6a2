import { EventEmitter, once } from 'node:events'
import { chmod, mkdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { Target } from '../../../src/providers/contract.ts'
import { sftp } from '../../../src/providers/sftp/index.ts'
import { failureOf } from '../../helpers/failure-of.ts'
import { mountSmall } from '../../helpers/mount-small.ts'
import { hasAll, needsAll } from '../../helpers/needs.ts'
import { measureGrowth } from '../../helpers/peak-memory.ts'
import { contractAt, describeProvider, objectOf } from '../../helpers/provider-contract.ts'
import { closeWithoutRests, isTemporary, listFiles } from '../../helpers/remote-files.ts'
import { never, type Options, openTarget, put } from '../../helpers/target.ts'
import { OPENSSH_NEEDS, type OpenSsh, startOpenSsh } from '../../servers/openssh.ts'
import { PROFTPD_NEEDS } from '../../servers/proftpd.ts'
import { startProFtpdSftp } from '../../servers/proftpd-sftp.ts'
import { startProxy } from '../../servers/proxy.ts'
import { startWebFolder } from '../../servers/web-folder.ts'
import { loginOf, openSftp, persist } from './sftp/open-sftp.ts'

const MIB = 1024 * 1024

describeProvider(
  'sftp at OpenSSH with a key',
  async () => {
    const server = await startOpenSsh()
    const web = await startWebFolder(server.directory)
    const options = {
      ...loginOf(server),
      directory: 'www/bilder ä',
      urlPrefix: `${web.url}www/bilder%20%C3%A4`,
    }
    const openAt = (port: number, others: Options = {}) => openTarget(sftp, { ...options, port, ...others })
    return contractAt({ port: server.port, close: () => closeWithoutRests(server, web) }, openAt, {
      bad: { password: 'wrong-password', privateKeyFile: undefined },
      secrets: ['wrong-password'],
      fetch: web.fetch,
      without: { http: 'SFTP is no HTTP' },
    })
  },
  OPENSSH_NEEDS,
)

/** An object that gives its first megabyte, and the others when `go` is called. `sent` when it is asked for more. */
function pausedObject(key: string) {
  const events = new EventEmitter()
  const [sent, going] = [once(events, 'sent'), once(events, 'go')]
  const whole = objectOf(key, Buffer.alloc(3 * MIB))
  async function* read(signal: AbortSignal) {
    yield* whole.read(signal, { start: 0, end: MIB })
    events.emit('sent')
    await going
    yield* whole.read(signal, { start: MIB, end: whole.size })
  }
  return { object: { ...whole, read }, sent, go: () => events.emit('go') }
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
    target = await openSftp(loginOf(server))
  })
  afterAll(() => server?.close())

  const read = (key: string) => readFile(join(server.directory, key))
  const modeOf = async (path: string) => (await stat(join(server.directory, path))).mode & 0o7777

  it('needs memory for a part of a file alone, however large it is', {
    timeout: 60_000,
  }, async () => {
    const options = { ...loginOf(server), directory: 'large' }
    expect(await measureGrowth('sftp', options, 128)).toBeLessThan(64)
  })

  it('uses one connection for all puts, and none before the first', async () => {
    const proxy = await startProxy([server.port])
    onTestFinished(() => proxy.close())
    const own = await openSftp({ ...loginOf(server), port: proxy.port })
    expect(proxy.connections()).toBe(0)
    await Promise.all(Array.from({ length: 12 }, (_, i) => put(own, `${i}.bin`)))
    expect(proxy.connections()).toBe(1)
    await own.close?.()
    await expect.poll(proxy.connections).toBe(0)
    expect(await listFiles(server.directory)).toHaveLength(12)
  })

  it('fails every put under way when the connection breaks, as transient, and connects again', async () => {
    const paused = [0, 1, 2].map(i => pausedObject(`${i}.bin`))
    const failures = paused.map(({ object }) => failureOf(target.put(object, never())))
    await Promise.all(paused.map(({ sent }) => sent))
    server.killSessions()
    for (const { go } of paused) go()
    for (const error of await Promise.all(failures)) {
      expect(error).toMatchObject({ code: 'destination_failed', retryable: true })
      expect(error.message).toContain(`"sftp/Default" (127.0.0.1, port ${server.port})`)
    }
    expect((await listFiles(server.directory)).filter(isTemporary)).toHaveLength(3)
    await put(target, 'again.bin')
    await expect.poll(() => listFiles(server.directory)).toEqual(['again.bin'])
  })

  it('gives up at once on a server that says nothing any more, and closes', async () => {
    const proxy = await startProxy([server.port])
    onTestFinished(() => proxy.close())
    const own = await openSftp({ ...loginOf(server), port: proxy.port })
    const { object, go, sent } = pausedObject('a.bin')
    const abort = new AbortController()
    const storing = own.put(object, abort.signal)
    await sent
    proxy.silence()
    go()
    abort.abort()
    await expect(storing).rejects.toThrow('aborted')
    await own.close?.()
    await expect(put(own, 'b.bin')).rejects.toThrow()
    await expect.poll(proxy.connections, { timeout: 5000 }).toBe(0)
  })

  it.each(['0600', '666'])('gives files the mode %s, whatever the umask of the server', async mode => {
    const own = await openSftp({ ...loginOf(server), fileMode: mode })
    for (const content of ['first', 'second']) await put(own, 'a.bin', content)
    expect(await modeOf('a.bin')).toBe(Number.parseInt(mode, 8))
  })

  it.each(['0700', '0777', '2770'])('gives new folders the mode %s, and old ones none', async mode => {
    await mkdir(join(server.directory, 'old'), { mode: 0o755 })
    const own = await openSftp({ ...loginOf(server), directory: 'old/base', directoryMode: mode })
    await put(own, 'x/y/a.bin')
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
    const own = await openSftp({ ...loginOf(server), directory: path })
    await put(own, 'a.bin', 'bytes')
    await own.check?.(never())
    expect((await read(expected)).toString()).toBe('bytes')
    expect((await listFiles(server.directory)).filter(isTemporary)).toEqual([])
  })

  it('runs nothing in a shell: a name that is a command is a name (defect 17 of PicList)', async () => {
    const own = await openSftp({ ...loginOf(server), fileMode: '0640', directoryMode: '0750' })
    const name = '$(touch pwned)`touch pwned`";touch pwned;".png'
    await put(own, `${name}/${name}`)
    await expect.poll(() => listFiles(server.directory)).toEqual([name, `${name}/${name}`])
    expect(await modeOf(`${name}/${name}`)).toBe(0o640)
  })

  it('replaces a link, not what it leads to', async () => {
    await writeFile(join(server.directory, 'precious'), 'precious')
    await symlink('precious', join(server.directory, 'a.png'))
    await put(target, 'a.png', 'new')
    expect((await read('precious')).toString()).toBe('precious')
    expect((await read('a.png')).toString()).toBe('new')
  })

  it.each([
    ['a file where a folder is needed', 'a.png/b.png', 'a.png'],
    ['a folder where the file goes', 'folder', 'folder'],
  ])('says that there is %s', async (_, key, name) => {
    await writeFile(join(server.directory, 'a.png'), 'file')
    await mkdir(join(server.directory, 'folder'))
    const error = await failureOf(put(target, key))
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

  it('advises to look at the free space when the disk of the server is full, and leaves nothing half', async context => {
    await mountSmall(context, join(server.directory, 'small'), '2m')
    const own = await openSftp({ ...loginOf(server), directory: 'small' })
    await put(own, 'a.bin', 'before')
    const error = await failureOf(put(own, 'a.bin', Buffer.alloc(4 * MIB)))
    expect(error.message).toContain('Check its log, and the free space on its disk.')
    await expect.poll(() => listFiles(join(server.directory, 'small'))).toEqual(['a.bin'])
    expect((await read('small/a.bin')).toString()).toBe('before')
  })
})

describe('sftp at a server without the extensions of OpenSSH', () => {
  it('replaces a file all the same', async context => {
    needsAll(context, OPENSSH_NEEDS)
    const server = await startOpenSsh('-P posix-rename,fsync,limits')
    onTestFinished(server.close)
    const target = await openSftp(loginOf(server))
    for (const content of ['first', 'second']) {
      await put(target, 'a/b.bin', content)
      expect(await readFile(join(server.directory, 'a/b.bin'), 'utf8')).toBe(content)
    }
    await expect.poll(() => listFiles(server.directory)).toEqual(['a', 'a/b.bin'])
  })
})

it('sftp at ProFTPD with a password stores and checks, and says where it may not write', async context => {
  needsAll(context, PROFTPD_NEEDS)
  const server = await startProFtpdSftp()
  onTestFinished(server.close)
  const { port, username, password, fingerprint } = server
  const target = await openSftp({ port, username, password, hostFingerprint: fingerprint })
  await target.check?.(never())
  for (const content of ['', 'some bytes', 'others']) {
    await put(target, 'x/ü.txt', content)
    expect(await readFile(join(server.directory, 'x/ü.txt'), 'utf8')).toBe(content)
  }
  await target.remove?.('x/ü.txt', never())
  expect(await target.exists?.('x/ü.txt', never())).toBe(false)
  await mkdir(join(server.directory, 'locked'))
  await chmod(join(server.directory, 'locked'), 0o555)
  for (const key of ['locked/a.bin', 'locked/x/a.bin']) {
    const error = await failureOf(put(target, key))
    expect(error).toMatchObject({ code: 'destination_failed', retryable: false })
    expect(error.message).toContain('permission denied')
  }
  server.killSessions()
  await persist(() => put(target, 'a.bin'))
})
