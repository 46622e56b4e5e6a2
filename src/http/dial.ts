import { lookup as systemLookup } from 'node:dns'
import { once } from 'node:events'
import { Agent, type AgentOptions } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls, type SecureContext } from 'node:tls'
import { onAbort, orAborted } from '../flow/cancellation.ts'
import { beginTimeLimit } from '../flow/time-limit.ts'
import { timeoutError } from './network.ts'
import type { ProxyServer } from './proxy/address.ts'
import { explainReach } from './proxy/failure.ts'
import { type Endpoint, isLoopback } from './proxy/no-proxy.ts'
import { openTunnel } from './proxy/tunnel.ts'

/** Time limit for opening a connection: DNS, IP addresses, proxy and TLS handshake together. */
const DIAL_MS = 10_000

/** Time after which the next IP address of a host is tried. Node's default of 250 ms is too short for distant hosts. */
const NEXT_ADDRESS_MS = 1000

export interface DialOptions {
  /** Aborts it while the connection is opened. */
  readonly signal: AbortSignal
  /** Options of TLS with the server. Undefined: no TLS. */
  readonly tls?: ConnectionOptions | undefined
  /** Certificates that the server and the proxy may have. Default: those of Node. */
  readonly trust?: SecureContext | undefined
  /** Default: none. */
  readonly proxy?: ProxyServer | undefined
  /**
   * SSRF protection: returns whether an IP address may be connected to. The host is then resolved here, and the proxy gets
   * an IP address that was checked. Addresses of this machine bypass the proxy.
   */
  readonly allow?: ((address: string) => boolean) | undefined
  /** Resolves hostnames. Default: node:dns. */
  readonly lookup?: LookupFunction | undefined
}

/** No IP address of a host is allowed. */
export class ForbiddenAddress extends Error {}

/**
 * Opens a connection. It has a listener for errors, because it changes owners, and an error between two listeners would end
 * the process. Agent libraries (proxy-agent, undici's `ProxyAgent`) provide no plain connection, which FTP and SFTP need, and
 * do not report which proxy rejected a request and why.
 *
 * @throws ProxyFailure; ForbiddenAddress; an error of the system or of TLS; the reason of the signal
 */
export async function dial(endpoint: Endpoint, { signal, tls, ...options }: DialOptions): Promise<Socket> {
  const limit = beginTimeLimit(DIAL_MS, signal, timeoutError)
  try {
    const socket = await reach(endpoint, { ...options, signal: limit.signal })
    return tls ? await startTls(socket, endpoint, { ...options, tls, signal: limit.signal }) : socket
  } catch (error) {
    signal.throwIfAborted()
    throw error
  } finally {
    limit.end()
  }
}

/** Creates an agent of HTTP whose connections are opened by `open`. */
export function createAgent(
  isSecure: boolean,
  options: AgentOptions,
  open: (endpoint: Endpoint) => Promise<Socket>,
): Agent {
  const agent = isSecure ? new HttpsAgent(options) : new Agent(options)
  // The casts are needed because Node's types lack the host and port in `connection`, and the socket that `done` gets later.
  agent.createConnection = (connection, done) => {
    const { host, port } = connection as { host?: string; port?: number | string }
    open({ host: host ?? '', port: Number(port) }).then(
      socket => done?.(null, socket),
      (error: Error) => done?.(error, undefined as never),
    )
    return undefined as never
  }
  return agent
}

/** Opens a TCP connection, through the proxy if there is one. */
async function reach(endpoint: Endpoint, options: Omit<DialOptions, 'tls'>): Promise<Socket> {
  const { proxy, allow, signal } = options
  const isResolvedHere = proxy === undefined || proxy.protocol === 'socks5:' || allow !== undefined
  const addresses = isResolvedHere
    ? await orAborted(resolve(endpoint.host, options), signal)
    : [endpoint.host]
  if (!proxy) return connect({ ...endpoint, addresses }, signal)
  let failure: unknown
  for (const host of addresses) {
    try {
      const { port } = endpoint
      if (allow && isLoopback(host)) return await connect({ host, port, addresses: [host] }, signal)
      return await dialThrough(proxy, { host, port }, options)
    } catch (error) {
      failure = error
      if (signal.aborted) break
    }
  }
  throw failure
}

/** Returns the allowed IP addresses of a host. @throws ForbiddenAddress if there is none */
export async function resolve(
  host: string,
  { allow = () => true, lookup = systemLookup }: Pick<DialOptions, 'allow' | 'lookup'>,
): Promise<string[]> {
  const found = isIP(host) ? [host] : await lookUp(host, lookup)
  const allowed = found.filter(allow)
  if (allowed.length === 0) throw new ForbiddenAddress(`${host} has no IP address that is allowed`)
  return allowed
}

function lookUp(host: string, lookup: LookupFunction): Promise<string[]> {
  return new Promise((resolve, reject) => {
    lookup(host, { all: true }, (error, found) => {
      if (error) reject(error)
      else resolve([found].flat().map(one => (typeof one === 'string' ? one : one.address)))
    })
  })
}

/** Tries the IP addresses one after the other. */
function connect(
  { host, port, addresses }: Endpoint & { readonly addresses: readonly string[] },
  signal: AbortSignal,
): Promise<Socket> {
  signal.throwIfAborted()
  const socket = connectTcp({
    host,
    port,
    noDelay: true,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_MS,
    lookup: (_host, _options, done) =>
      done(
        null,
        addresses.map(address => ({ address, family: isIP(address) })),
      ),
  })
  return settle(socket, signal, () => once(socket, 'connect'))
}

function startTls(socket: Socket, { host }: Endpoint, { tls, trust, signal }: DialOptions): Promise<Socket> {
  const servername = isIP(host) ? '' : host
  const secure = connectTls({ ...(trust && { secureContext: trust }), ...tls, socket, host, servername })
  return settle(secure, signal, () => once(secure, 'secureConnect'))
}

/** Destroys a socket if the work on it fails or is aborted. */
async function settle(socket: Socket, signal: AbortSignal, work: () => Promise<unknown>): Promise<Socket> {
  socket.on('error', () => {})
  const stopListening = onAbort(signal, () => socket.destroy(signal.reason))
  try {
    await work()
    signal.throwIfAborted()
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    stopListening()
  }
}

/** Has a proxy connect to a server. */
async function dialThrough(
  proxy: ProxyServer,
  target: Endpoint,
  { trust, signal }: DialOptions,
): Promise<Socket> {
  try {
    const plain = await reach(proxy, { signal })
    const socket = proxy.protocol === 'https:' ? await startTls(plain, proxy, { trust, signal }) : plain
    return await settle(socket, signal, () => openTunnel(socket, proxy, target))
  } catch (error) {
    throw explainReach(proxy, signal.aborted ? signal.reason : error)
  }
}
