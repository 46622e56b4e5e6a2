import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { Agent, type AgentOptions } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls, type SecureContext } from 'node:tls'
import { orAborted } from '../flow/cancellation.ts'
import { beginTimeLimit } from '../flow/time-limit.ts'
import { timeoutError } from './network.ts'
import type { ProxyServer } from './proxy/address.ts'
import { type Endpoint, isLoopback } from './proxy/no-proxy.ts'
import { explainProxy, openTunnel } from './proxy/tunnel.ts'

/** Time limit for opening a connection: DNS, IP addresses, proxy and TLS handshake together. */
const DIAL_MS = 10_000

/** Time after which the next IP address of a host is tried. Node's default of 250 ms is too short for distant hosts. */
const NEXT_ADDRESS_MS = 1000

/** Returns the IP addresses of a hostname. */
export type Lookup = (host: string) => Promise<readonly string[]>

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
  /** Default: that of node:dns. */
  readonly lookup?: Lookup | undefined
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
export async function dial(endpoint: Endpoint, options: DialOptions): Promise<Socket> {
  const { signal: outer, tls } = options
  const limit = beginTimeLimit(DIAL_MS, outer, timeoutError)
  const limited = { ...options, signal: limit.signal }
  try {
    const socket = await reach(endpoint, limited)
    return tls ? await startTls(socket, endpoint, limited) : socket
  } catch (error) {
    outer.throwIfAborted()
    throw error
  } finally {
    limit.end()
  }
}

/** Creates an agent for node:http whose connections are opened by `open`. */
export function createAgent(
  protocol: 'http:' | 'https:',
  open: (endpoint: Endpoint) => Promise<Socket>,
  options?: AgentOptions,
): Agent {
  type Done = (error: Error | null, socket?: Socket) => void
  const createConnection = ({ host = '', port = 0 }: Partial<Endpoint>, done: Done) => {
    open({ host, port: Number(port) }).then(socket => done(null, socket), done)
    return undefined
  }
  const agent = protocol === 'https:' ? new HttpsAgent(options) : new Agent(options)
  // The cast is needed because Node's types lack the host and port.
  return Object.assign(agent, { createConnection: createConnection as never })
}

/** Opens a TCP connection, through the proxy if there is one. */
async function reach({ host: name, port }: Endpoint, options: DialOptions): Promise<Socket> {
  const { proxy, allow, lookup, signal } = options
  const isResolvedHere = proxy === undefined || proxy.protocol === 'socks5:' || allow !== undefined
  const hosts = isResolvedHere ? await orAborted(resolve(name, allow, lookup), signal) : [name]
  if (!proxy) return connect({ host: name, port }, hosts, signal)
  let failure: unknown
  for (const host of hosts) {
    try {
      if (allow && isLoopback(host)) return await connect({ host, port }, [host], signal)
      return await reachThrough(proxy, { host, port }, options)
    } catch (error) {
      failure = error
      if (signal.aborted) break
    }
  }
  throw failure
}

async function reachThrough(
  proxy: ProxyServer,
  target: Endpoint,
  { signal, trust }: DialOptions,
): Promise<Socket> {
  try {
    const plain = await reach(proxy, { signal })
    const socket = proxy.protocol === 'https:' ? await startTls(plain, proxy, { signal, trust }) : plain
    return await settle(socket, openTunnel(socket, proxy, target), signal)
  } catch (error) {
    throw explainProxy(proxy, error)
  }
}

/** Returns the allowed IP addresses of a host. @throws ForbiddenAddress if there is none */
export async function resolve(
  host: string,
  allow: DialOptions['allow'] = () => true,
  find: Lookup = lookUp,
): Promise<string[]> {
  const allowed = (isIP(host) ? [host] : await find(host)).filter(allow)
  if (allowed.length === 0) throw new ForbiddenAddress(`${host} has no IP address that is allowed`)
  return allowed
}

async function lookUp(host: string): Promise<string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address)
}

/** Tries the IP addresses one after the other. */
function connect(endpoint: Endpoint, addresses: readonly string[], signal: AbortSignal): Promise<Socket> {
  const found = addresses.map(address => ({ address, family: isIP(address) }))
  const socket = connectTcp({
    ...endpoint,
    noDelay: true,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_MS,
    lookup: (_host, _options, done) => done(null, found),
  })
  return settle(socket, once(socket, 'connect'), signal)
}

function startTls(socket: Socket, { host }: Endpoint, { tls, trust, signal }: DialOptions): Promise<Socket> {
  const servername = isIP(host) ? '' : host
  const secure = connectTls({ ...(trust && { secureContext: trust }), ...tls, socket, host, servername })
  return settle(secure, once(secure, 'secureConnect'), signal)
}

/** Waits for work on a socket. If it fails or is aborted, the socket is destroyed. */
async function settle(socket: Socket, work: Promise<unknown>, signal: AbortSignal): Promise<Socket> {
  socket.on('error', () => {})
  try {
    await orAborted(work, signal)
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}
