import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished } from 'vitest'
import { answering, clientBy } from '../../helpers/client-by-proxy.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { failureOf } from '../../helpers/failure-of.ts'
import { needs } from '../../helpers/needs.ts'
import { makeCertificate } from '../../servers/certificate.ts'
import { type OutgoingProxy, startMicrosocks, startTinyproxy, startTlsFront } from '../../servers/proxies.ts'
import { serve } from '../../uploader/sources/servers.ts'

/** A server that says what it got, by TLS on `::1`. */
async function listen(isSecure = false): Promise<{ url: string; caFile?: string }> {
  const echo: RequestListener = async (request, response) => {
    const { method, url, headers } = request
    response.end(JSON.stringify({ method, url, headers, body: await text(request) }))
  }
  if (!isSecure) return { url: (await serve(echo)).origin }
  const { certFile: caFile, keyFile } = makeCertificate(await makeDirectory(), 'IP:::1')
  const server = createSecureServer({ cert: readFileSync(caFile), key: readFileSync(keyFile) }, echo)
  server.listen(0, '::1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `https://[::1]:${(server.address() as AddressInfo).port}`, caFile }
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

describe('what only one of them does', () => {
  it('tinyproxy: plain HTTP names its server in each request, and needs no tunnel', async context => {
    needs(context, 'tinyproxy', 'tinyproxy')
    const [proxy, server] = [await tinyproxy(), await listen()]
    await clientBy(`http://${proxy.host}`).put(server.url, 'hello')
    expect(proxy.log()).toContain(`PUT ${server.url}/a?b=c HTTP/1.1`)
    expect(proxy.tunnels()).toBe(0)
  })

  it('by TLS: a proxy with an unknown certificate, or without TLS, is named', async context => {
    needs(context, 'tinyproxy', 'tinyproxy')
    const [proxy, plain] = [await tinyproxy(), await listen()]
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
    const [proxy, server] = [await microsocks(), await listen()]
    await clientBy(`${protocol}://${proxy.host}`).put(server.url.replace('127.0.0.1', 'localhost'))
    expect(proxy.log().includes('localhost')).toBe(protocol === 'socks5h')
  })

  it('IPv6 servers are reached, and those that are not are no fault of a server', async context => {
    needs(context, 'microsocks', 'microsocks')
    const [proxy, server] = [await microsocks(), await listen(true)]
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
