import { chmod, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { Target } from '../../../src/providers/contract.ts'
import { ftp } from '../../../src/providers/ftp/index.ts'
import { failureOf } from '../../helpers/failure-of.ts'
import { mountSmall } from '../../helpers/mount-small.ts'
import { hasAll, needsAll } from '../../helpers/needs.ts'
import { contractAt, describeProvider } from '../../helpers/provider-contract.ts'
import { closeWithoutRests, listFiles } from '../../helpers/remote-files.ts'
import { never, type Options, open, openTarget, put } from '../../helpers/target.ts'
import { type FtpServer, PASSIVE_HOSTS, PASSIVE_PORTS } from '../../servers/ftp-server.ts'
import { PROFTPD_NEEDS } from '../../servers/proftpd.ts'
import { startProFtpdFtp } from '../../servers/proftpd-ftp.ts'
import { startProxy } from '../../servers/proxy.ts'
import { startVsftpd, VSFTPD_NEEDS } from '../../servers/vsftpd.ts'
import { startWebFolder } from '../../servers/web-folder.ts'

const MIB = 1024 * 1024

/** What it takes to be let in. */
const loginOf = ({ port, username, password, certFile, folder }: FtpServer): Options => ({
  ...{ host: '127.0.0.1', port, username, password, caFile: certFile, directory: folder },
  urlPrefix: 'https://img.example.com',
})

/** Data goes over other ports, to the host of the control connection: so all of them are on another address. */
function startFtpProxy({ port, passivePort }: FtpServer) {
  const passive = Array.from({ length: PASSIVE_PORTS }, (_, i) => passivePort + i)
  return startProxy([port, ...passive], PASSIVE_HOSTS[1])
}

/** A server until the end of the test. */
async function start(starting: Promise<FtpServer>): Promise<FtpServer> {
  const server = await starting
  onTestFinished(server.close)
  return server
}

describeProvider(
  'ftp at ProFTPD with explicit TLS',
  async () => {
    const server = await startProFtpdFtp('explicit')
    const [web, proxy] = [await startWebFolder(server.directory), await startFtpProxy(server)]
    const place = { directory: 'www/bilder ä', urlPrefix: `${web.url}www/bilder%20%C3%A4` }
    const openAt = (port: number, others: Options = {}) =>
      openTarget(ftp, { ...loginOf(server), ...place, port, ...others })
    const bad = { password: 'wrong-password' }
    const close = () => closeWithoutRests(server, proxy, web)
    return contractAt({ port: server.port, close }, openAt, {
      ...{ bad, secrets: [server.password, bad.password], fetch: web.fetch },
      breakable: async () => ({ ...proxy, target: await openAt(server.port, { host: PASSIVE_HOSTS[1] }) }),
      without: { http: 'FTP is no HTTP' },
    })
  },
  PROFTPD_NEEDS,
)

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
    target = await open(ftp, loginOf(server))
  })
  afterAll(() => server?.close())

  const read = (key: string) => readFile(join(server.directory, key))

  async function startWithProxy() {
    const proxy = await startFtpProxy(server)
    onTestFinished(() => proxy.close())
    return { proxy, own: await open(ftp, { ...loginOf(server), host: '127.0.0.2', connections: 2 }) }
  }

  it('opens no more connections than it may, and none before the first put', async () => {
    const { proxy, own } = await startWithProxy()
    expect(proxy.accepted()).toBe(0)
    const puts = Array.from({ length: 9 }, (_, i) => put(own, `${i}.bin`))
    await Promise.all(puts)
    expect(proxy.accepted() - puts.length).toBe(2)
    await own.close?.()
    await expect.poll(proxy.connections).toBe(0)
    expect(await listFiles(server.directory)).toHaveLength(9)
  })

  it('gives up at once on a server that says nothing any more, and closes', async () => {
    const { proxy, own } = await startWithProxy()
    await put(own, 'a.bin')
    proxy.silence()
    const abort = new AbortController()
    const storing = put(own, 'b.bin', 'bytes', abort.signal)
    setTimeout(() => abort.abort(), 50)
    await expect(storing).rejects.toThrow('aborted')
    await own.close?.()
    await expect(put(own, 'c.bin')).rejects.toThrow()
    await expect.poll(proxy.connections).toBe(0)
  })

  it('opens another connection when the server has closed the idle one', async () => {
    const { proxy, own } = await startWithProxy()
    for (const key of ['a.bin', 'b.bin', 'c.bin']) {
      await put(own, key)
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
    const error = await failureOf(put(target, key))
    expect(error).toMatchObject({ code: 'destination_failed', retryable: false })
    expect(error.message).toMatch(/^Could not store ".*" at ftp\/Default: 127\.0\.0\.1 returned 550/)
    await expect.poll(() => listFiles(server.directory)).toEqual(['a.png', 'folder', 'locked'])
    expect((await read('a.png')).toString()).toBe('file')
  })

  it.each<[string, Options & { readonly host?: string }, RegExp | undefined]>([
    ['its own certificate file', {}, undefined],
    ['any certificate', { caFile: undefined, insecureTls: true }, undefined],
    ['public authorities', { caFile: undefined }, /not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\)/],
    ['its own certificate for another name', { host: '127.0.0.3' }, /ALTNAME/],
    ['a file that is missing', { caFile: '/nowhere/absent.pem' }, /"caFile" cannot be read \(ENOENT\)/],
    [
      'a port without TLS from the start',
      { secure: 'implicit' },
      /the TLS handshake failed .* Check "secure"\./,
    ],
  ])('with %s', async (_, options, refusal) => {
    if (options.host !== undefined) {
      const proxy = await startProxy([server.port], options.host)
      onTestFinished(() => proxy.close())
    }
    const own = await open(ftp, { ...loginOf(server), ...options }, { warn: () => {} })
    if (refusal === undefined) return void (await own.check?.(never()))
    const error = await failureOf(put(own, 'a.bin'))
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
  ] as const)('at %s', async ([_, requires, begin, secure], context) => {
    needsAll(context, requires)
    const server = await start(begin())
    const target = await open(ftp, { ...loginOf(server), secure }, { warn: () => {} })
    await target.check?.(never())
    for (const content of ['', 'some bytes']) {
      await put(target, 'x/ü.txt', content)
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
    const server = await start(startProFtpdFtp('explicit', ['AllowOverwrite off']))
    const target = await open(ftp, loginOf(server))
    for (const content of ['first', 'second', 'third']) {
      await put(target, 'a/b.bin', content)
      expect(await readFile(join(server.directory, 'a/b.bin'), 'utf8')).toBe(content)
    }
    expect(await listFiles(server.directory)).toEqual(['a', 'a/b.bin'])
  })

  it.for([
    ['ProFTPD, which says 530', PROFTPD_NEEDS, () => startProFtpdFtp('explicit', ['MaxClientsPerUser 2'])],
    ['vsftpd, which says 421', VSFTPD_NEEDS, () => startVsftpd('explicit', ['max_per_ip=2'])],
  ] as const)('waits when it lets in fewer connections: %s', async ([_, requires, begin], context) => {
    needsAll(context, requires)
    const server = await start(begin())
    const target = await open(ftp, loginOf(server))
    const puts = Array.from({ length: 12 }, (_, i) => put(target, `${i}.bin`, Buffer.alloc(100_000, i)))
    await Promise.all(puts)
    expect(await listFiles(server.directory)).toHaveLength(12)
  })

  it('leaves nothing half on a full disk, and passes on what the server says of it', async context => {
    needsAll(context, PROFTPD_NEEDS)
    const server = await start(startProFtpdFtp('explicit'))
    await mountSmall(context, join(server.directory, 'small'), '2m')
    const target = await open(ftp, { ...loginOf(server), directory: 'small' })
    await put(target, 'a.bin', 'before')
    const error = await failureOf(put(target, 'a.bin', Buffer.alloc(4 * MIB)))
    expect(error).toMatchObject({ code: 'destination_failed', retryable: true })
    expect(error.message).toContain('returned 451')
    await expect.poll(() => listFiles(join(server.directory, 'small'))).toEqual(['a.bin'])
    expect(await readFile(join(server.directory, 'small/a.bin'), 'utf8')).toBe('before')
  })
})
