import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls, type SecureContext } from 'node:tls'
import { onAbort } from '../../flow/cancellation.ts'
import { beginTimeLimit } from '../../flow/time-limit.ts'
import { DIAL_MS } from '../network.ts'
import type { ProxyServer } from './address.ts'
import { explainReach, refusalOf } from './failure.ts'
import type { Endpoint } from './no-proxy.ts'

export interface TunnelOptions {
  /** Aborts it while it is opened. */
  readonly signal: AbortSignal
  /** Trusted CA certificates for proxies with TLS. */
  readonly secureContext?: SecureContext | undefined
}

/**
 * Opens a connection through a proxy, by CONNECT or SOCKS5. Agent libraries (proxy-agent, undici's `ProxyAgent`) provide no
 * plain connection, which FTP and SFTP need, and do not report which proxy rejected a request and why.
 *
 * @throws ProxyFailure; the system's error if a hostname can't be resolved here; the reason of the signal
 */
export async function openTunnel(
  proxy: ProxyServer,
  target: Endpoint,
  options: TunnelOptions,
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

/** Connects to a proxy itself, for requests that contain their whole URL. @throws as `openTunnel` */
export function reachProxy(proxy: ProxyServer, options: TunnelOptions): Promise<Socket> {
  return inTime(proxy, options, signal => reach(proxy, signal, options.secureContext))
}

/** Returns the credentials for each request to a proxy, or nothing if it needs no login. */
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
  const late = Object.assign(new Error('no response within the time limit'), { code: 'ETIMEDOUT' })
  const limit = beginTimeLimit(DIAL_MS, signal, () => late)
  try {
    return await open(limit.signal)
  } catch (error) {
    signal.throwIfAborted()
    throw explainReach(proxy, limit.signal.aborted ? late : error)
  } finally {
    limit.end()
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
  // The socket changes owners, and an error between two listeners would crash the process.
  socket.on('error', () => {})
  return endingWith(socket, signal, async () => {
    await once(socket, isTls ? 'secureConnect' : 'connect')
    return socket
  })
}

/** Destroys a socket if the work fails or its signal is aborted. */
async function endingWith<T>(socket: Socket, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const stopListening = onAbort(signal, () => socket.destroy(signal.reason))
  try {
    return await work()
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    stopListening()
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
      request.on('connect', (response, _sameSocket, head) => {
        const { statusCode = 0 } = response
        if (statusCode < 200 || statusCode > 299) return reject(refusalOf(proxy, path, response))
        if (head.length > 0) socket.unshift(head)
        resolve(socket)
      })
      request.end()
    })
  })
}
