import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls, type SecureContext } from 'node:tls'
import type { ProxyServer } from './address.ts'
import { explainReach, refusalOf } from './failure.ts'
import type { Endpoint } from './no-proxy.ts'

/** For everything until a connection is there, which includes the proxy's own way to the server. */
const TUNNEL_MS = 20_000

export interface TunnelOptions {
  /** Ends it while it is made. */
  readonly signal?: AbortSignal | undefined
  /** Whom to trust of the proxies that are reached by TLS. */
  readonly secureContext?: SecureContext | undefined
}

/**
 * Opens a connection through a proxy, by CONNECT or SOCKS5.
 *
 * @throws ProxyFailure; the system's error when a name can't be looked up here; the reason of the signal
 */
export async function openTunnel(
  proxy: ProxyServer,
  target: Endpoint,
  options: TunnelOptions = {},
): Promise<Socket> {
  if (proxy.protocol === 'http:' || proxy.protocol === 'https:')
    return inTime(proxy, options, signal => connectByHttp(proxy, target, signal, options.secureContext))
  const { host, port } = target
  const isLookedUp = proxy.protocol === 'socks5:' && isIP(host) === 0
  const destination = isLookedUp ? { host: (await lookup(host)).address, port } : target
  const { connectBySocks } = await import('./socks.ts')
  return inTime(proxy, options, async signal => {
    const socket = await reach(proxy, signal, undefined)
    return endingWith(socket, signal, () => connectBySocks(socket, proxy, destination))
  })
}

/** A connection to a proxy itself, for requests that name their server. @throws as `openTunnel` */
export function reachProxy(proxy: ProxyServer, options: TunnelOptions = {}): Promise<Socket> {
  return inTime(proxy, options, signal => reach(proxy, signal, options.secureContext))
}

/** What a proxy wants to be told with each request; nothing when it asks for no login. */
export function loginHeaders({ login }: ProxyServer): Record<string, string> {
  if (!login) return {}
  const credentials = Buffer.from(`${login.username}:${login.password}`).toString('base64')
  return { 'proxy-authorization': `Basic ${credentials}` }
}

async function inTime(
  proxy: ProxyServer,
  { signal }: TunnelOptions,
  open: (signal: AbortSignal) => Promise<Socket>,
): Promise<Socket> {
  const stop = new AbortController()
  const late = Object.assign(new Error('no answer in time'), { code: 'ETIMEDOUT' })
  const timer = setTimeout(() => stop.abort(late), TUNNEL_MS)
  const leave = () => stop.abort(signal?.reason)
  signal?.addEventListener('abort', leave)
  if (signal?.aborted) leave()
  try {
    return await open(stop.signal)
  } catch (error) {
    signal?.throwIfAborted()
    throw explainReach(proxy, stop.signal.aborted ? late : error)
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', leave)
  }
}

async function reach(
  { protocol, host, port }: ProxyServer,
  signal: AbortSignal,
  secureContext: SecureContext | undefined,
): Promise<Socket> {
  signal.throwIfAborted()
  const isTls = protocol === 'https:'
  const servername = isIP(host) ? '' : host
  const socket = isTls
    ? connectTls({ host, port, servername, ...(secureContext && { secureContext }) })
    : connectTcp({ host, port, noDelay: true })
  return endingWith(socket, signal, async () => {
    await once(socket, isTls ? 'secureConnect' : 'connect')
    return socket
  })
}

/** Destroys a socket when the signal is aborted during some work, and when that fails. */
async function endingWith<T>(socket: Socket, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const leave = () => socket.destroy(signal.reason as Error)
  signal.addEventListener('abort', leave)
  if (signal.aborted) leave()
  try {
    return await work()
  } catch (error) {
    socket.on('error', () => {}).destroy()
    throw error
  } finally {
    signal.removeEventListener('abort', leave)
  }
}

async function connectByHttp(
  proxy: ProxyServer,
  target: Endpoint,
  signal: AbortSignal,
  secureContext: SecureContext | undefined,
): Promise<Socket> {
  const path = `${isIP(target.host) === 6 ? `[${target.host}]` : target.host}:${target.port}`
  const headers = { host: path, ...loginHeaders(proxy) }
  const send = proxy.protocol === 'https:' ? httpsRequest : httpRequest
  const socket = await reach(proxy, signal, secureContext)
  return endingWith(socket, signal, () => {
    const request = send({ method: 'CONNECT', path, headers, createConnection: () => socket })
    return new Promise<Socket>((resolve, reject) => {
      request.on('error', reject)
      request.on('connect', (response, _, head) => {
        const { statusCode = 0 } = response
        if (statusCode < 200 || statusCode > 299) return reject(refusalOf(proxy, path, response))
        if (head.length > 0) socket.unshift(head)
        resolve(socket)
      })
      request.end()
    })
  })
}
