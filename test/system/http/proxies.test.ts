import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { type Body, inMemory } from '../../../src/body.ts'
import { type ConnectionSettings, createConnections } from '../../../src/http/connections.ts'
import { formBody } from '../../../src/http/form-body.ts'
import { createOutgoing } from '../../../src/http/proxy/outgoing.ts'
import { answering, clientBy } from '../../helpers/client-by-proxy.ts'
import { failureOf } from '../../helpers/failure-of.ts'
import { hasAll, type Needs, needsAll } from '../../helpers/needs.ts'
import { makeCertificate } from '../../servers/certificate.ts'
import {
  type OutgoingProxy,
  SQUID,
  startMicrosocks,
  startSquid,
  startTinyproxy,
  startTlsFront,
} from '../../servers/proxies.ts'

/** A proxy between clients and servers. */
interface Way {
  /** With the login. */
  readonly proxy: string
  /** Trusted for the proxy itself. */
  readonly caFile?: string
  /** Host and port, which messages name. */
  readonly host?: string
  /** Whether it needs a login. */
  readonly login?: readonly [user: string, password: string]
  stop(): Promise<unknown>
}

const LOGIN = ['me', 'w0rd0fProxy'] as const
/** tinyproxy takes no such password. */
const ODD_LOGIN = ['me', 'p@ss:wörd/?'] as const
const asUser = ([user, password]: readonly [string, string]) => `${user}:${encodeURIComponent(password)}@`

const OPENSSL = ['openssl', 'openssl'] as const
const TINYPROXY: Needs = [['tinyproxy', 'tinyproxy'], OPENSSL]
const MICROSOCKS: Needs = [['microsocks', 'microsocks'], OPENSSL]

let folder: string
let servers: Awaited<ReturnType<typeof startServers>>

/** On both `127.0.0.1` and `::1`. */
async function listen(server: Server | ReturnType<typeof createTcpServer>): Promise<number> {
  server.listen(0, '::')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** Servers for HTTP, HTTPS and plain TCP, which say what they got. */
async function startServers() {
  const { certFile: caFile, keyFile } = makeCertificate(folder, 'IP:127.0.0.1,IP:::1')
  let accepted = 0
  const echo: RequestListener = async (request, response) => {
    const { method, url, headers } = request
    response.end(JSON.stringify({ method, url, headers, length: (await buffer(request)).length }))
  }
  const plain = createServer(echo)
  const secure = createSecureServer({ cert: readFileSync(caFile), key: readFileSync(keyFile) }, echo)
  const tcp = createTcpServer(socket => socket.on('error', () => {}).pipe(socket))
  for (const server of [plain, secure, tcp]) server.on('connection', () => accepted++)
  const ports = await Promise.all([plain, secure, tcp].map(listen))
  const [http = 0, https = 0, raw = 0] = ports
  return {
    caFile,
    ports,
    http: `http://127.0.0.1:${http}`,
    https: `https://127.0.0.1:${https}`,
    raw: { host: '127.0.0.1', port: raw },
    accepted: () => accepted,
    async close() {
      plain.closeAllConnections()
      secure.closeAllConnections()
      for (const server of [plain, secure, tcp]) server.close()
    },
  }
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'upload-server-test-'))
  await chmod(folder, 0o777) // squid becomes another user
  if (hasAll([OPENSSL])) servers = await startServers()
})
afterAll(async () => {
  await servers?.close()
  await rm(folder, { recursive: true })
})

const WAYS: [name: string, requires: Needs, start: () => Promise<Way>][] = [
  ['no proxy', [OPENSSL], async () => ({ proxy: 'none', stop: async () => {} })],
  [
    'tinyproxy',
    TINYPROXY,
    async () => {
      const { host, stop } = await startTinyproxy(await mkdtemp(join(folder, 'proxy-')))
      return { proxy: `http://${host}`, host, stop }
    },
  ],
  [
    'tinyproxy with a login',
    TINYPROXY,
    async () => {
      const { host, stop } = await startTinyproxy(await mkdtemp(join(folder, 'proxy-')), { login: LOGIN })
      return { proxy: `http://${asUser(LOGIN)}${host}`, host, login: LOGIN, stop }
    },
  ],
  [
    'tinyproxy which is itself reached by TLS',
    TINYPROXY,
    async () => {
      const { host, stop } = await startTinyproxy(await mkdtemp(join(folder, 'proxy-')))
      const front = await startTlsFront(await mkdtemp(join(folder, 'front-')), host)
      const end = async () => {
        front.close()
        await stop()
      }
      return { proxy: `https://${front.host}`, host: front.host, caFile: front.caFile, stop: end }
    },
  ],
  [
    'squid with a login',
    [[SQUID, 'squid'], OPENSSL],
    async () => {
      const ports = [...servers.ports, 1]
      const { host, stop } = await startSquid(await mkdtemp(join(folder, 'squid-')), {
        login: ODD_LOGIN,
        ports,
      })
      return { proxy: `http://${asUser(ODD_LOGIN)}${host}`, host, login: ODD_LOGIN, stop }
    },
  ],
  [
    'microsocks with a login, which gets IP addresses',
    MICROSOCKS,
    async () => {
      const { host, stop } = await startMicrosocks({ login: ODD_LOGIN })
      return { proxy: `socks5://${asUser(ODD_LOGIN)}${host}`, host, login: ODD_LOGIN, stop }
    },
  ],
  [
    'microsocks, which gets hostnames',
    MICROSOCKS,
    async () => {
      const { host, stop } = await startMicrosocks()
      return { proxy: `socks5h://${host}`, host, stop }
    },
  ],
]

describe.each(WAYS)('by %s', (_, requires, start) => {
  let way: Way
  beforeAll(async () => {
    if (hasAll(requires)) way = await start()
  })
  beforeEach(context => needsAll(context, requires))
  afterAll(() => way?.stop())

  const settings = (more: ConnectionSettings = {}, proxy = way.proxy): ConnectionSettings => {
    const general = createOutgoing({ proxy: 'none', noProxy: [], caFile: way.caFile }, {})
    return { caFile: servers.caFile, outgoing: general.with(proxy), ...more }
  }
  function put(url: string, body: Body, used = settings()) {
    const { http, close } = createConnections(used)
    onTestFinished(close)
    return http.send({ method: 'PUT', url: `${url}/a?b=c`, body }, new AbortController().signal)
  }

  it.each(['http', 'https'] as const)(
    'requests arrive by %s over few connections, without the login of the proxy',
    async scheme => {
      const { http, close } = createConnections(settings())
      onTestFinished(close)
      const before = servers.accepted()
      for (let i = 0; i < 10; i++) {
        const request = { method: 'PUT', url: `${servers[scheme]}/a?b=c`, body: Buffer.alloc(300_000) }
        const reply = (await http.send(request, new AbortController().signal)).json()
        expect(reply).toMatchObject({ method: 'PUT', url: '/a?b=c', length: 300_000 })
        expect((reply as { headers: object }).headers).not.toHaveProperty('proxy-authorization')
      }
      // HTTP proxies decide themselves how they forward plain HTTP.
      if (scheme === 'https') expect(servers.accepted()).toBe(before + 1)
    },
  )

  it('a form arrives whole', async () => {
    const content = { ...inMemory(Buffer.alloc(3_000_000)), contentType: 'image/png' }
    const form = formBody([], [{ field: 'file', fileName: 'a.png', content }])
    for (const url of [servers.http, servers.https])
      expect((await put(url, form)).json()).toMatchObject({ length: form.size })
  })

  it('a connection for another protocol arrives', async () => {
    const connections = createConnections(settings())
    const socket = await connections.dial(servers.raw, new AbortController().signal)
    onTestFinished(() => void socket.destroy())
    socket.write('hello')
    const [received] = await once(socket, 'data')
    expect(String(received)).toBe('hello')
  })

  it('a certificate that is not trusted is refused', async () => {
    const error = await failureOf(put(servers.https, inMemory([]), settings({ caFile: undefined })))
    expect(error.message).toContain('127.0.0.1')
    expect(error.message).toContain("can't be reached: its certificate is not trusted")
    expect(error).toMatchObject({ retryable: false })
  })

  it('a server that is not there is a transient failure', async () => {
    for (const url of ['http://127.0.0.1:1', 'https://127.0.0.1:1']) {
      const error = await failureOf(put(url, inMemory([])))
      // While a body is on its way, the answer of a proxy may be lost to the end of the connection.
      const words = way.host ? /the proxy ".*" (could not |can't be used: it closed)/ : /refuses connections/
      expect(error.message).toMatch(words)
      expect(error.retryable).toBe(true)
    }
  })

  it.each([
    ['missing', ''],
    ['wrong', 'me:wrong-p4ssword@'],
  ])('a login that is %s is told, and no server is asked', async (_, login) => {
    if (!way.login) return
    const proxy = way.proxy.replace(asUser(way.login), login)
    const before = servers.accepted()
    for (const url of [servers.http, servers.https]) {
      const ask = () => failureOf(put(url, inMemory(Buffer.alloc(10)), settings({}, proxy)))
      let error = await ask()
      // While a body is on its way, the answer of a proxy may be lost to the end of the connection.
      for (let i = 0; i < 5 && error.message.includes('it closed the connection'); i++) error = await ask()
      // tinyproxy answers 401 to a tunnel in some versions.
      expect(error.message).toMatch(
        /the proxy ".*" (requires a user name and a password|rejected the user name or password|refuses to connect)/,
      )
      expect(error.message).toContain(way.host)
      expect(error.message).not.toContain('p4ssword')
      expect(error.retryable).toBe(false)
    }
    expect(servers.accepted()).toBe(before)
  })
})

describe('what only one of them does', () => {
  async function tinyproxy(): Promise<OutgoingProxy> {
    const proxy = await startTinyproxy(await mkdtemp(join(folder, 'proxy-')))
    onTestFinished(() => proxy.stop())
    return proxy
  }
  async function microsocks(): Promise<OutgoingProxy> {
    const proxy = await startMicrosocks()
    onTestFinished(() => proxy.stop())
    return proxy
  }

  it('tinyproxy: plain HTTP names its server in each request, and needs no tunnel', async context => {
    needsAll(context, TINYPROXY)
    const proxy = await tinyproxy()
    await clientBy(`http://${proxy.host}`).put(servers.http, 'hello')
    expect(proxy.log()).toContain(`PUT ${servers.http}/a?b=c HTTP/1.1`)
    expect(proxy.tunnels()).toBe(0)
  })

  it('by TLS: a proxy with an unknown certificate, or without TLS, is named', async context => {
    needsAll(context, TINYPROXY)
    const front = await startTlsFront(await mkdtemp(join(folder, 'front-')), (await tinyproxy()).host)
    onTestFinished(() => front.close())
    // "insecureTls" is about servers.
    const client = clientBy(`https://${front.host}`, { insecureTls: true })
    for (const url of [servers.http, servers.https])
      expect((await failureOf(client.put(url))).message).toContain(
        `the proxy "${front.host}" can't be used: its certificate is not trusted`,
      )
    const other = await answering('HTTP/1.1 400 Bad Request\r\n\r\n')
    const noTls = await failureOf(clientBy(`https://${other.host}`).put(servers.http))
    expect(noTls.message).toContain('the TLS handshake failed')
  })

  it.for(['socks5', 'socks5h'])('%s: who resolves hostnames', async (protocol, context) => {
    needsAll(context, MICROSOCKS)
    const proxy = await microsocks()
    await clientBy(`${protocol}://${proxy.host}`).put(servers.http.replace('127.0.0.1', 'localhost'))
    expect(proxy.log().includes('localhost')).toBe(protocol === 'socks5h')
  })

  it('IPv6 servers are reached, and those that are not are no fault of a server', async context => {
    needsAll(context, MICROSOCKS)
    const proxy = await microsocks()
    const client = clientBy(`socks5://${proxy.host}`, { caFile: servers.caFile })
    expect((await client.put(servers.https.replace('127.0.0.1', '[::1]'))).status).toBe(200)
    const error = await failureOf(client.put('http://[::1]:1'))
    expect(error.message).toContain('could not connect to [::1]:1 (ConnectionRefused)')
    expect(error.retryable).toBe(true)
  })

  it('attack: a name of more than 255 bytes ends the process', async context => {
    needsAll(context, MICROSOCKS)
    const long = `http://${'a.'.repeat(150)}example`
    const error = await failureOf(clientBy(`socks5h://${(await microsocks()).host}`).put(long))
    expect(error.message).toMatch(/supports no hostname, .* of more than 255 bytes/)
  })
})
