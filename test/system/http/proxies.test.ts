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
  readonly login?: Login
  stop(): Promise<unknown>
}

type Login = readonly [user: string, password: string]
const LOGIN: Login = ['me', 'w0rd0fProxy']
/** tinyproxy takes no such password. */
const ODD_LOGIN: Login = ['me', 'p@ss:wörd/?']
const asUser = ([user, password]: Login) => `${user}:${encodeURIComponent(password)}@`

const OPENSSL = ['openssl', 'openssl'] as const
const TINYPROXY: Needs = [['tinyproxy', 'tinyproxy'], OPENSSL]
const MICROSOCKS: Needs = [['microsocks', 'microsocks'], OPENSSL]

const { signal } = new AbortController()
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

const newFolder = () => mkdtemp(join(folder, 'proxy-'))

function wayOf(scheme: string, { host, stop }: Pick<OutgoingProxy, 'host' | 'stop'>, login?: Login): Way {
  const user = login ? asUser(login) : ''
  return { proxy: `${scheme}://${user}${host}`, host, stop, ...(login && { login }) }
}

const WAYS: [name: string, requires: Needs, start: () => Promise<Way>][] = [
  ['no proxy', [OPENSSL], async () => ({ proxy: 'none', stop: async () => {} })],
  ['tinyproxy', TINYPROXY, async () => wayOf('http', await startTinyproxy(await newFolder()))],
  [
    'tinyproxy with a login',
    TINYPROXY,
    async () => wayOf('http', await startTinyproxy(await newFolder(), { login: LOGIN }), LOGIN),
  ],
  [
    'tinyproxy which is itself reached by TLS',
    TINYPROXY,
    async () => {
      const { host, stop } = await startTinyproxy(await newFolder())
      const front = await startTlsFront(await newFolder(), host)
      const stopBoth = async () => {
        front.close()
        await stop()
      }
      return { ...wayOf('https', { host: front.host, stop: stopBoth }), caFile: front.caFile }
    },
  ],
  [
    'squid with a login',
    [[SQUID, 'squid'], OPENSSL],
    async () => {
      const options = { login: ODD_LOGIN, ports: [...servers.ports, 1] }
      return wayOf('http', await startSquid(await newFolder(), options), ODD_LOGIN)
    },
  ],
  [
    'microsocks with a login, which gets IP addresses',
    MICROSOCKS,
    async () => wayOf('socks5', await startMicrosocks({ login: ODD_LOGIN }), ODD_LOGIN),
  ],
  ['microsocks, which gets hostnames', MICROSOCKS, async () => wayOf('socks5h', await startMicrosocks())],
]

describe.each(WAYS)('by %s', (_, requires, start) => {
  let way: Way
  beforeAll(async () => {
    if (hasAll(requires)) way = await start()
  })
  beforeEach(context => needsAll(context, requires))
  afterAll(() => way?.stop())

  function connect(more: ConnectionSettings = {}, proxy = way.proxy) {
    const general = createOutgoing({ proxy: 'none', noProxy: [], caFile: way.caFile }, {})
    const connections = createConnections({
      caFile: servers.caFile,
      outgoing: general.with(proxy),
      ...more,
    })
    onTestFinished(connections.close)
    return connections
  }
  const put = (url: string, body: Body, { http } = connect()) =>
    http.send({ method: 'PUT', url: `${url}/a?b=c`, body }, signal)

  it.each(['http', 'https'] as const)(
    'requests arrive by %s over few connections, without the login of the proxy',
    async scheme => {
      const connections = connect()
      const before = servers.accepted()
      for (let i = 0; i < 10; i++) {
        const reply = (await put(servers[scheme], inMemory(Buffer.alloc(300_000)), connections)).json()
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
    const socket = await connect().dial(servers.raw, signal)
    onTestFinished(() => void socket.destroy())
    socket.write('hello')
    const [received] = await once(socket, 'data')
    expect(String(received)).toBe('hello')
  })

  it('a certificate that is not trusted is refused', async () => {
    const error = await failureOf(put(servers.https, inMemory([]), connect({ caFile: undefined })))
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
      const ask = () => failureOf(put(url, inMemory(Buffer.alloc(10)), connect({}, proxy)))
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
  async function ended(starting: Promise<OutgoingProxy>): Promise<OutgoingProxy> {
    const proxy = await starting
    onTestFinished(() => proxy.stop())
    return proxy
  }
  const tinyproxy = async () => ended(startTinyproxy(await newFolder()))
  const microsocks = () => ended(startMicrosocks())

  it('tinyproxy: plain HTTP names its server in each request, and needs no tunnel', async context => {
    needsAll(context, TINYPROXY)
    const proxy = await tinyproxy()
    await clientBy(`http://${proxy.host}`).put(servers.http, 'hello')
    expect(proxy.log()).toContain(`PUT ${servers.http}/a?b=c HTTP/1.1`)
    expect(proxy.tunnels()).toBe(0)
  })

  it('by TLS: a proxy with an unknown certificate, or without TLS, is named', async context => {
    needsAll(context, TINYPROXY)
    const front = await startTlsFront(await newFolder(), (await tinyproxy()).host)
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
