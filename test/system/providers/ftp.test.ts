import { chmod, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { ConnectionSettings } from '../../../src/http/connections.ts'
import type { Target } from '../../../src/providers/contract.ts'
import { ftp } from '../../../src/providers/ftp/index.ts'
import { failureOf } from '../../helpers/failure-of.ts'
import { mountSmall } from '../../helpers/mount-small.ts'
import { hasAll, needsAll } from '../../helpers/needs.ts'
import { type ContractSetup, describeProvider, objectOf } from '../../helpers/provider-contract.ts'
import { closeWithoutRests, listFiles } from '../../helpers/remote-files.ts'
import { type FtpServer, PASSIVE_HOSTS, PASSIVE_PORTS } from '../../servers/ftp-server.ts'
import { PROFTPD_NEEDS } from '../../servers/proftpd.ts'
import { startProFtpdFtp } from '../../servers/proftpd-ftp.ts'
import { startProxy } from '../../servers/proxy.ts'
import { startScriptedFtp } from '../../servers/scripted-ftp.ts'
import { startVsftpd, VSFTPD_NEEDS } from '../../servers/vsftpd.ts'
import { startWebFolder } from '../../servers/web-folder.ts'

const MIB = 1024 * 1024
const never = () => new AbortController().signal

type Options = ConnectionSettings & Record<string, unknown>

/** A target with the defaults of tests. Warnings fail the test unless they are expected. */
async function openFtp(
  options: Options,
  warn: (message: string) => void = message => expect.fail(message),
): Promise<Target> {
  const config = ftp.config.parse({ host: '127.0.0.1', urlPrefix: 'https://img.example.com', ...options })
  return await ftp.open(config, { ...options, name: 'Default', warn })
}

/** One that is closed when the test is over. */
async function openForTest(options: Options, warn?: (message: string) => void): Promise<Target> {
  const target = await openFtp(options, warn)
  onTestFinished(() => target.close?.())
  return target
}

/** What it takes to be let in. */
function loginOf({ port, username, password, certFile, folder }: FtpServer): Options {
  return { port, username, password, caFile: certFile, directory: folder }
}

/** Data goes over other ports, to the host of the control connection: so all of them are on another address. */
function startFtpProxy({ port, passivePort }: FtpServer) {
  const passive = Array.from({ length: PASSIVE_PORTS }, (_, i) => passivePort + i)
  return startProxy([port, ...passive], PASSIVE_HOSTS[1])
}

async function startContract(server: FtpServer, more: Options = {}): Promise<ContractSetup> {
  const web = await startWebFolder(server.directory)
  const proxy = await startFtpProxy(server)
  const directory = [server.folder, 'www/bilder ä'].filter(Boolean).join('/')
  const options = { ...loginOf(server), directory, urlPrefix: `${web.url}www/bilder%20%C3%A4`, ...more }
  return {
    target: await openFtp(options),
    fetch: web.fetch,
    secrets: [server.password, 'wrong-password'],
    withBadCredentials: () => openFtp({ ...options, password: 'wrong-password' }),
    breakable: async () => ({ ...proxy, target: await openFtp({ ...options, host: '127.0.0.2' }) }),
    farEnd: { port: server.port, open: port => openFtp({ ...options, port }) },
    without: { http: 'FTP is no HTTP' },
    close: () => closeWithoutRests(server, proxy, web),
  }
}

describeProvider(
  'ftp at ProFTPD with explicit TLS',
  async () => startContract(await startProFtpdFtp('explicit')),
  PROFTPD_NEEDS,
)
describe('options of ftp', () => {
  const minimal = { host: 'example.com', username: 'u', password: 'p', urlPrefix: 'https://img.example.com' }

  it('demand TLS and know no port', () => {
    expect(ftp.config.parse(minimal)).toEqual({
      ...minimal,
      secure: 'explicit',
      directory: '',
      atomic: true,
      connections: 4,
    })
  })

  it.each([
    ['host', 'ftp://example.com'],
    ['host', 'example.com/www'],
    ['port', 0],
    ['secure', true],
    ['password', ''],
    ['directory', '~/www'],
    ['directory', 'a\r\nDELE b'],
    ['connections', 0],
    ['urlPrefix', 'ftp://example.com'],
    ['urlPrefix', undefined],
  ])('refuse %s %j', (option, value) => {
    const { error } = ftp.config.safeParse({ ...minimal, [option]: value })
    expect(error?.issues.map(issue => issue.path)).toEqual([[option]])
  })

  it.each([
    [{ secure: 'none' }, 'without TLS'],
    [{ insecureTls: true }, '"insecureTls" disables certificate verification'],
  ])('warn when they are %j', async (options, words) => {
    const warnings: string[] = []
    await openForTest({ ...minimal, ...options }, message => warnings.push(message))
    expect(warnings).toEqual([expect.stringContaining(words)])
  })
})

describe('ftp at ProFTPD', () => {
  let server: FtpServer
  let target: Target

  beforeAll(async () => {
    if (hasAll(PROFTPD_NEEDS)) server = await startProFtpdFtp('explicit')
  })
  beforeEach(async context => {
    needsAll(context, PROFTPD_NEEDS)
    for (const entry of await readdir(server.directory))
      await rm(join(server.directory, entry), { recursive: true })
    target = await openForTest(loginOf(server))
  })
  afterAll(() => server?.close())

  const read = (key: string) => readFile(join(server.directory, key))

  it('opens no more connections than it may, and none before the first put', async () => {
    const proxy = await startFtpProxy(server)
    onTestFinished(() => proxy.close())
    const own = await openForTest({ ...loginOf(server), host: '127.0.0.2', connections: 2 })
    expect(proxy.accepted()).toBe(0)
    const puts = Array.from({ length: 9 }, (_, i) => own.put(objectOf(`${i}.bin`, Buffer.of(i)), never()))
    await Promise.all(puts)
    expect(proxy.accepted() - puts.length).toBe(2)
    await own.close?.()
    await expect.poll(proxy.connections).toBe(0)
    expect(await listFiles(server.directory)).toHaveLength(9)
  })

  it('gives up at once on a server that says nothing any more, and closes', async () => {
    const proxy = await startFtpProxy(server)
    onTestFinished(() => proxy.close())
    const own = await openForTest({ ...loginOf(server), host: '127.0.0.2' })
    await own.put(objectOf('a.bin', Buffer.of(1)), never())
    proxy.silence()
    const abort = new AbortController()
    const put = own.put(objectOf('b.bin', Buffer.of(1)), abort.signal)
    setTimeout(() => abort.abort(), 50)
    await expect(put).rejects.toThrow('aborted')
    await own.close?.()
    await expect(own.put(objectOf('c.bin', Buffer.of(1)), never())).rejects.toThrow()
    await expect.poll(proxy.connections).toBe(0)
  })

  it('opens another connection when the server has closed the idle one', async () => {
    const proxy = await startFtpProxy(server)
    onTestFinished(() => proxy.close())
    const own = await openForTest({ ...loginOf(server), host: '127.0.0.2' })
    for (const key of ['a.bin', 'b.bin', 'c.bin']) {
      await own.put(objectOf(key, Buffer.of(1)), never())
      server.killSessions()
      await expect.poll(proxy.connections).toBe(0)
      for (let turn = 0; turn < 50; turn++) await nextTurn()
    }
    expect(await listFiles(server.directory)).toEqual(['a.bin', 'b.bin', 'c.bin'])
  })

  it.each([
    ['a file where a folder is needed', 'a.png/b.png'],
    ['a folder where the file goes', 'folder'],
    ['a folder the user may not write to', 'locked/a.png'],
  ])('fails for good over %s', async (_, key) => {
    await writeFile(join(server.directory, 'a.png'), 'file')
    await mkdir(join(server.directory, 'folder'))
    await mkdir(join(server.directory, 'locked'))
    await chmod(join(server.directory, 'locked'), 0o555)
    const error = await failureOf(target.put(objectOf(key, Buffer.of(1)), never()))
    expect(error).toMatchObject({ code: 'destination_failed', retryable: false })
    expect(error.message).toMatch(/^Could not store ".*" at ftp\/Default: 127\.0\.0\.1 returned 550/)
    await expect.poll(() => listFiles(server.directory)).toEqual(['a.png', 'folder', 'locked'])
    expect((await read('a.png')).toString()).toBe('file')
  })

  it.each<[string, (file: string) => Options & { host?: string }, RegExp | undefined]>([
    ['its own certificate file', (file: string) => ({ caFile: file }), undefined],
    ['any certificate', () => ({ caFile: undefined, insecureTls: true }), undefined],
    ['public authorities', () => ({ caFile: undefined }), /not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\)/],
    [
      'its own certificate for another name',
      (file: string) => ({ caFile: file, host: '127.0.0.3' }),
      /ALTNAME/,
    ],
    [
      'a file that is missing',
      () => ({ caFile: join(tmpdir(), 'absent.pem') }),
      /"caFile" cannot be read \(ENOENT\)/,
    ],
    [
      'a port without TLS from the start',
      () => ({ secure: 'implicit' }),
      /the TLS handshake failed .* Check "secure"\./,
    ],
  ])('with %s', async (_, optionsOf, refusal) => {
    const options = optionsOf(server.certFile)
    if (options.host !== undefined) {
      const proxy = await startProxy([server.port], options.host)
      onTestFinished(() => proxy.close())
    }
    const own = await openForTest({ ...loginOf(server), ...options }, () => {})
    if (refusal === undefined) return void (await own.check?.(never()))
    const error = await failureOf(own.put(objectOf('a.bin', Buffer.of(1)), never()))
    expect(error.message).toMatch(refusal)
    expect(error.retryable).toBe(false)
  })
})

describe('ftp stores and checks', () => {
  it.for([
    ['ProFTPD with implicit TLS', PROFTPD_NEEDS, () => startProFtpdFtp('implicit'), 'implicit'],
    ['ProFTPD without TLS', PROFTPD_NEEDS, () => startProFtpdFtp('optional'), 'none'],
    ['vsftpd with explicit TLS', VSFTPD_NEEDS, () => startVsftpd('explicit'), 'explicit'],
    ['vsftpd with implicit TLS', VSFTPD_NEEDS, () => startVsftpd('implicit'), 'implicit'],
    ['vsftpd without TLS', VSFTPD_NEEDS, () => startVsftpd('optional'), 'none'],
  ] as const)('at %s', async ([_, requires, start, secure], context) => {
    needsAll(context, requires)
    const server = await start()
    onTestFinished(server.close)
    const target = await openForTest({ ...loginOf(server), secure }, () => {})
    await target.check?.(never())
    for (const content of ['', 'some bytes']) {
      await target.put(objectOf('x/ü.txt', Buffer.from(content)), never())
      expect(await readFile(join(server.directory, 'x/ü.txt'), 'utf8')).toBe(content)
    }
    expect(await listFiles(server.directory)).toEqual(['x', 'x/ü.txt'])
    await target.remove?.('x/ü.txt', never())
    expect(await target.exists?.('x/ü.txt', never())).toBe(false)
  })
})

describe('ftp at an FTP server with limits', () => {
  it('removes the file that is in the way where the server does not replace it', async context => {
    needsAll(context, PROFTPD_NEEDS)
    const server = await startProFtpdFtp('explicit', ['AllowOverwrite off'])
    onTestFinished(server.close)
    const target = await openForTest(loginOf(server))
    for (const content of ['first', 'second', 'third']) {
      await target.put(objectOf('a/b.bin', Buffer.from(content)), never())
      expect(await readFile(join(server.directory, 'a/b.bin'), 'utf8')).toBe(content)
    }
    expect(await listFiles(server.directory)).toEqual(['a', 'a/b.bin'])
  })

  it.for([
    ['ProFTPD, which says 530', PROFTPD_NEEDS, () => startProFtpdFtp('explicit', ['MaxClientsPerUser 2'])],
    ['vsftpd, which says 421', VSFTPD_NEEDS, () => startVsftpd('explicit', ['max_per_ip=2'])],
  ] as const)('waits when it lets in fewer connections: %s', async ([_, requires, start], context) => {
    needsAll(context, requires)
    const server = await start()
    onTestFinished(server.close)
    const target = await openForTest(loginOf(server))
    const puts = Array.from({ length: 12 }, (_, i) =>
      target.put(objectOf(`${i}.bin`, Buffer.alloc(100_000, i)), never()),
    )
    await Promise.all(puts)
    expect(await listFiles(server.directory)).toHaveLength(12)
  })

  it('leaves nothing half on a full disk, and passes on what the server says of it', async context => {
    needsAll(context, PROFTPD_NEEDS)
    const server = await startProFtpdFtp('explicit')
    onTestFinished(server.close)
    await mountSmall(context, join(server.directory, 'small'), '2m')
    const target = await openForTest({ ...loginOf(server), directory: 'small' })
    await target.put(objectOf('a.bin', Buffer.from('before')), never())
    const error = await failureOf(target.put(objectOf('a.bin', Buffer.alloc(4 * MIB)), never()))
    expect(error).toMatchObject({ code: 'destination_failed', retryable: true })
    expect(error.message).toContain('returned 451')
    await expect.poll(() => listFiles(join(server.directory, 'small'))).toEqual(['a.bin'])
    expect(await readFile(join(server.directory, 'small/a.bin'), 'utf8')).toBe('before')
  })
})

describe('ftp at a server that', () => {
  const password = 'very secret, sent by mistake'

  async function start(script: Parameters<typeof startScriptedFtp>[0], options: Options = {}, faults = {}) {
    const server = await startScriptedFtp(script, faults)
    onTestFinished(server.close)
    const login = { port: server.port, secure: 'none', username: 'u', password, ...options }
    const target = await openForTest(login, () => {})
    const put = (content = 'bytes') => target.put(objectOf('x/a.bin', Buffer.from(content)), never())
    return { server, put, target }
  }

  it('has a home with quotes in its name, and no SIZE', async () => {
    const { server, put } = await start({ PWD: '257 "/home/""u""" is here', SIZE: '502 What?' })
    await put()
    expect([...server.files]).toEqual([['/home/"u"/x/a.bin', Buffer.from('bytes')]])
    expect(server.commands).toContain('OPTS UTF8 ON')
  })

  it('answers 213 with a text for an empty file: it is stored, and found', async () => {
    const { server, put, target } = await start({ SIZE: '213 File is empty' })
    await put('')
    expect([...server.files]).toEqual([['/x/a.bin', Buffer.alloc(0)]])
    expect(await target.exists?.('x/a.bin', never())).toBe(true)
  })

  it('has no SIZE: a file is looked up in its folder', async () => {
    const { put, target } = await start({ SIZE: '500 What?', MLSD: '500 What?', FEAT: '500 What?' })
    await put()
    const names = ['x/a.bin', 'x/a', 'x/b.bin', 'x']
    const found = await Promise.all(names.map(name => target.exists?.(name, never())))
    expect(found).toEqual([true, false, false, false])
  })

  it('removes no files, and says 550 as for one that is missing: is not believed', async () => {
    const { put, target } = await start({ DELE: '550 No' })
    await put()
    await expect(target.remove?.('x/a.bin', never())).rejects.toThrow('returned 550 No')
  })

  it('has no EPSV, and names another machine by PASV: only its port is used (FTP bounce)', async () => {
    const { server, put } = await start({ EPSV: '502 What?' })
    await put()
    expect(server.files.get('/x/a.bin')?.toString()).toBe('bytes')
  })

  it('cannot rename, and takes no name with a leading dot: does with "atomic": false', async () => {
    const script = {
      RNFR: '502 What?',
      STOR: (path: string) => (path.includes('/.') ? '553 No such name' : undefined),
    }
    const error = await failureOf((await start(script)).put())
    expect(error.message).toContain('or allows no names with a leading dot, set "atomic" to false')
    const { server, put, target } = await start(script, { atomic: false })
    await target.check?.(never())
    await put()
    await put('other')
    expect([...server.files]).toEqual([['/x/a.bin', Buffer.from('other')]])
  })

  it.each([
    ['550 The specified network name is no longer available.', true],
    ['553 No such name', false],
  ])('resets the data connection, and says %s: is worth another try: %s', async (reason, retryable) => {
    const { put } = await start({}, {}, { resets: 1, reason })
    const error = await failureOf(put('a'.repeat(4 * MIB)))
    expect(error).toMatchObject({ retryable, message: expect.stringContaining(reason) })
  })

  it('lost some of the bytes: says so as transient, and keeps its hands off the file', async () => {
    const { server, put } = await start({ SIZE: '213 4' })
    const error = await failureOf(put())
    expect(error).toMatchObject({ code: 'destination_failed', retryable: true })
    expect(error.message).toContain('stored 4 of 5 bytes')
    expect(server.commands.filter(command => command.startsWith('RN'))).toEqual([])
    await expect.poll(() => server.files.size).toBe(0)
  })

  it('resets the data connection without a word: is named, and worth another try', async () => {
    const server = await startScriptedFtp({}, { resets: 1 })
    onTestFinished(server.close)
    const login = { port: server.port, secure: 'none', username: 'u', password }
    const target = await openForTest(login, () => {})
    const object = objectOf('a.bin', Buffer.alloc(4 * MIB, 'a'))
    const error = await failureOf(target.put(object, never()))
    expect(error).toMatchObject({ code: 'destination_failed', retryable: true })
    expect(error.message).toContain("127.0.0.1 can't be reached, or closed the connection")
    await target.put(object, never())
    expect(server.files.get('/a.bin')?.length).toBe(object.size)
  })

  it('repeats the password in its answer: is not quoted', async () => {
    const { put } = await start({ PASS: rest => `530 "${rest}" is wrong` })
    const error = await failureOf(put())
    expect(error.message).toContain('returned 530 "[secret]" is wrong (the user name or password is wrong')
    expect(error.retryable).toBe(false)
  })

  it.each([
    [
      'has no TLS',
      { AUTH: '502 What?' },
      { secure: 'explicit' },
      'destination_failed',
      false,
      'does not offer TLS',
    ],
    ['is busy', { greeting: '421 Too many' }, {}, 'destination_failed', true, 'returned 421 Too many'],
    ['is closed', { USER: '530 Not now' }, {}, 'destination_failed', false, 'returned 530 Not now'],
    ['has no data port', { EPSV: '425 No', PASV: '425 No' }, {}, 'destination_failed', true, '425 No'],
    ['is full', { STOR: '452 No space' }, {}, 'insufficient_storage', false, '452 No space'],
    ['has a quota', { STOR: '552 Quota' }, {}, 'insufficient_storage', false, '552 Quota'],
    ['is in trouble', { STOR: '451 Oh no' }, {}, 'destination_failed', true, '451 Oh no'],
    [
      'takes no such name',
      { STOR: '553 No' },
      {},
      'destination_failed',
      false,
      'the server does not accept this file name',
    ],
    [
      'cannot rename',
      { RNFR: '502 What?' },
      {},
      'destination_failed',
      false,
      'returned 502 What? If the server can\'t rename files, or allows no names with a leading dot, set "atomic" to false.',
    ],
    [
      'is a web page',
      { STOR: '550 <b>See</b> https://x.org' },
      {},
      'destination_failed',
      false,
      '550 See x.org',
    ],
  ])('%s', async (_, script, options, code, retryable, words) => {
    const { put } = await start(script as Record<string, string>, options)
    const error = await failureOf(put())
    expect(error).toMatchObject({ code, retryable })
    expect(error.message).toContain(words)
    expect(error.message).not.toMatch(/https?:\/\//)
  })
})
