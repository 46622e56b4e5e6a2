import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { createHttpClient, type HttpRequest } from '../../../src/http/client.ts'
import { createOutgoing } from '../../../src/http/proxy/outgoing.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { failureOf } from '../../helpers/failure-of.ts'
import { needs } from '../../helpers/needs.ts'
import { makeCertificate } from '../../servers/certificate.ts'
import { type OutgoingProxy, startMicrosocks, startTinyproxy, startTlsFront } from '../../servers/proxies.ts'

const signal = new AbortController().signal

const echo: RequestListener = async (request, response) => {
  const { method, url, headers } = request
  response.end(JSON.stringify({ method, url, headers, body: await text(request) }))
}

interface Listening {
  readonly url: string
  readonly caFile: string
  /** Connections so far. */
  accepted(): number
}

async function listen(handle: RequestListener, isSecure = false, host = '127.0.0.1'): Promise<Listening> {
  const { certFile, keyFile } = isSecure
    ? makeCertificate(await makeDirectory(), 'IP:127.0.0.1,IP:::1,DNS:localhost')
    : { certFile: '', keyFile: '' }
  const server = isSecure
    ? createSecureServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, handle)
    : createServer(handle)
  let accepted = 0
  server.on('connection', () => accepted++)
  server.listen(0, host)
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const name = host.includes(':') ? `[${host}]` : host
  return { url: `http${isSecure ? 's' : ''}://${name}:${port}`, caFile: certFile, accepted: () => accepted }
}

/** A client with a proxy of its own, so that servers of this machine are reached through it. */
function clientBy(proxy: string, caFile?: string, trusted?: string) {
  const outgoing = createOutgoing({ proxy: 'none', noProxy: [], caFile: trusted }, {}).with(proxy)
  const client = createHttpClient({ caFile, outgoing })
  onTestFinished(() => client.close())
  return {
    put: (url: string, body = 'x') => client.send({ method: 'PUT', url: `${url}/a?b=c`, body }, signal),
    /** Has no body that an early refusal would leave unread, which may cost the refusal itself. */
    get: (url: string) => client.send({ method: 'GET', url }, signal),
    send: (request: HttpRequest, signal: AbortSignal) => client.send(request, signal),
    close: () => client.close(),
  }
}

async function tinyproxy(): Promise<OutgoingProxy> {
  const proxy = await startTinyproxy(await makeDirectory())
  onTestFinished(() => proxy.stop())
  return proxy
}

async function microsocks(): Promise<OutgoingProxy> {
  const proxy = await startMicrosocks()
  onTestFinished(() => proxy.stop())
  return proxy
}

/** A proxy that does to each connection what it is told. */
async function evil(handle: (socket: Socket) => void): Promise<{ host: string; sockets: Socket[] }> {
  const sockets: Socket[] = []
  const server = createTcpServer(socket => {
    sockets.push(socket.on('error', () => {}))
    handle(socket)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, sockets }
}

const answering = (answer: string) => evil(socket => socket.once('data', () => socket.end(answer)))

afterEach(() => {
  vi.useRealTimers()
})

describe('what only one of them does', () => {
  it('tinyproxy: plain HTTP names its server in each request, and needs no tunnel', async context => {
    needs(context, 'tinyproxy', 'tinyproxy')
    const [proxy, server] = [await tinyproxy(), await listen(echo)]
    await clientBy(`http://${proxy.host}`).put(server.url, 'hello')
    expect(proxy.log()).toContain(`PUT ${server.url}/a?b=c HTTP/1.1`)
    expect(proxy.tunnels()).toBe(0)
  })

  it('by TLS: a proxy with an unknown certificate, or without TLS, is named', async context => {
    needs(context, 'tinyproxy', 'tinyproxy')
    const [proxy, plain] = [await tinyproxy(), await listen(echo)]
    const front = await startTlsFront(await makeDirectory(), proxy.host)
    onTestFinished(() => front.close())
    const untrusted = await failureOf(clientBy(`https://${front.host}`).put(plain.url))
    expect(untrusted.message).toContain(
      `the proxy "${front.host}" can't be used: its certificate is not trusted`,
    )
    const other = await answering('HTTP/1.1 400 Bad Request\r\n\r\n')
    const noTls = await failureOf(clientBy(`https://${other.host}`).put(plain.url))
    expect(noTls.message).toContain('the TLS handshake failed')
  })

  it.for(['socks5', 'socks5h'])('%s: who resolves hostnames', async (protocol, context) => {
    needs(context, 'microsocks', 'microsocks')
    const [proxy, server] = [await microsocks(), await listen(echo)]
    await clientBy(`${protocol}://${proxy.host}`).put(server.url.replace('127.0.0.1', 'localhost'))
    expect(proxy.log().includes('localhost')).toBe(protocol === 'socks5h')
  })

  it('IPv6 servers are reached, and those that are not are no fault of a server', async context => {
    needs(context, 'microsocks', 'microsocks')
    const [proxy, server] = [await microsocks(), await listen(echo, true, '::1')]
    expect((await clientBy(`socks5://${proxy.host}`, server.caFile).put(server.url)).status).toBe(200)
    const error = await failureOf(clientBy(`socks5://${proxy.host}`).put('http://[::1]:1'))
    expect(error.message).toContain('could not connect to ::1, port 1 (ConnectionRefused)')
    expect(error.retryable).toBe(true)
  })

  it('attack: a name of more than 255 bytes ends the process', async context => {
    needs(context, 'microsocks', 'microsocks')
    const proxy = await microsocks()
    const long = `http://${'a.'.repeat(150)}example`
    const error = await failureOf(clientBy(`socks5h://${proxy.host}`).put(long))
    expect(error.message).toContain(`does not support hostnames of more than 255 bytes`)
  })
})
