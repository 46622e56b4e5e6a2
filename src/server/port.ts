import { once } from 'node:events'
import { chmod, lstat, unlink } from 'node:fs/promises'
import { Agent, type Server } from 'node:http'
import { isSocketPath } from '../config/endpoint.ts'
import { messageOf, systemCode } from '../errors.ts'
import type { RawReply } from '../http/exchange.ts'
import { connectionProblem } from '../http/network.ts'
import type { Outgoing } from '../http/proxy/outgoing.ts'
import { membersOf } from '../members.ts'

/** Number of further ports that are tried if the configured one is in use. */
const FURTHER_PORTS = 10
/** Time limits of the health checks. The server itself waits 3 s for its database before it says that it is not ready. */
const TIMEOUTS_MS = { '/heartbeat': 1000, '/ready': 4000 } as const
const SUCCESS = { '/heartbeat': /"result"\s*:\s*"alive"/, '/ready': /"status"\s*:\s*"ready"/ } as const

/** Question to a server: is it up, or does it accept uploads? */
export type Check = keyof typeof TIMEOUTS_MS

/** Where a server listens: an IP address and a port, or a Unix socket if `host` is an absolute path. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
  /** Permissions of the socket, octal digits. */
  readonly socketMode?: string | undefined
}

/** The result of `takePort`. */
export type TakenPort =
  | { readonly kind: 'listening'; readonly url: string }
  /** Another upload server responds there. */
  | { readonly kind: 'already-running'; readonly url: string }

/** The port, or every port that was tried, is in use. */
export class PortTakenError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'PortTakenError'
  }
}

/** The URL to show to people. A server that listens on all addresses is reached at the loopback address. */
export function urlOf({ host, port }: ListenAddress): string {
  if (isSocketPath(host)) return `unix:${host}`
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  // Only IPv6 addresses contain a colon. `isIPv6` of node:net would compile a pattern, which takes 5 ms at the start.
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}

/**
 * Listens on a port. If another upload server uses it, the search ends; if another program uses it, the next ports are tried.
 * With `strict`, both are errors.
 *
 * @throws PortTakenError, or an Error with the reason why the address can't be used at all
 */
export async function takePort(server: Server, wanted: ListenAddress, strict: boolean): Promise<TakenPort> {
  if (isSocketPath(wanted.host)) return takeSocket(server, wanted, strict)
  const last = wanted.port === 0 ? 0 : Math.min(wanted.port + FURTHER_PORTS, 65535)
  for (let port = wanted.port; port <= last; port++) {
    if (await listen(server, { ...wanted, port })) {
      const address = server.address()
      const real = typeof address === 'object' && address ? address.port : port
      return { kind: 'listening', url: urlOf({ ...wanted, port: real }) }
    }
    if (port > wanted.port) continue
    const url = urlOf(wanted)
    const holder = await probeServer(wanted)
    if (strict)
      throw new PortTakenError(
        `Port ${port} on ${wanted.host} is in use: ${holder.description}. Stop that process, or choose another port with --port.`,
      )
    if (holder.isAlive) return { kind: 'already-running', url }
  }
  throw new PortTakenError(
    `Ports ${wanted.port} to ${last} of ${wanted.host} are all in use. Choose another port with --port.`,
  )
}

/** Listens on a Unix socket. A socket file that a crashed server left behind is replaced. */
async function takeSocket(server: Server, wanted: ListenAddress, strict: boolean): Promise<TakenPort> {
  const url = urlOf(wanted)
  const listenWithMode = async () => {
    const isListening = await listen(server, wanted)
    if (isListening && wanted.socketMode !== undefined)
      await chmod(wanted.host, Number.parseInt(wanted.socketMode, 8))
    return isListening
  }
  if (await listenWithMode()) return { kind: 'listening', url }
  const holder = await probeServer(wanted)
  if (holder.isAlive && !strict) return { kind: 'already-running', url }
  // A regular file refuses connections as well, but must not be deleted.
  if (!(await lstat(wanted.host)).isSocket())
    throw new PortTakenError(
      `${wanted.host} exists but is not a socket. Choose another path with --host or server.host.`,
    )
  if (holder.isRefused) {
    await unlink(wanted.host)
    if (await listenWithMode()) return { kind: 'listening', url }
  }
  throw new PortTakenError(`The socket ${wanted.host} is in use: ${holder.description}.`)
}

/** @returns false if the port or socket is in use */
async function listen(server: Server, { host, port }: ListenAddress): Promise<boolean> {
  const ready = once(server, 'listening')
  server.listen(isSocketPath(host) ? { path: host } : { host, port })
  try {
    await ready
    return true
  } catch (error) {
    if (systemCode(error) === 'EADDRINUSE') return false
    throw explainListen(error, { host, port })
  }
}

const LISTEN_REASONS: Record<string, string> = {
  EADDRNOTAVAIL: 'this machine does not have this IP address. Choose another with --host or server.host',
  ENOTFOUND: 'this hostname does not exist. Choose another with --host or server.host',
  EACCES: 'permission denied. Ports below 1024 need a privilege: choose another with --port or server.port',
}

function explainListen(error: unknown, where: ListenAddress): Error {
  const code = systemCode(error) ?? ''
  const reason = isSocketPath(where.host)
    ? 'its folder is missing or may not be written to. Choose another with --host or server.host'
    : (LISTEN_REASONS[code] ?? messageOf(error))
  return new Error(`The server can't listen on ${urlOf(where)}: ${reason} (${code}).`, { cause: error })
}

export interface PortHolder {
  readonly isAlive: boolean
  /** No program listens. */
  readonly isRefused: boolean
  readonly description: string
}

/**
 * Checks whether an upload server responds at an endpoint or below a URL. With `/ready`, it must accept uploads, too.
 *
 * @param outgoing outbound proxies. Default: none
 */
export async function probeServer(
  where: ListenAddress | URL,
  check: Check = '/heartbeat',
  outgoing?: Outgoing,
): Promise<PortHolder> {
  const socketPath = !(where instanceof URL) && isSocketPath(where.host) ? where.host : undefined
  const base = where instanceof URL ? where.href : socketPath ? 'http://localhost' : urlOf(where)
  const signal = AbortSignal.timeout(TIMEOUTS_MS[check])
  try {
    const url = new URL(`${base.replace(/(?<!\/)\/+$/, '')}${check}`)
    const { status, text } = await get(url, socketPath, outgoing, signal)
    const isAlive = status === 200 && SUCCESS[check].test(text)
    const description = isAlive
      ? 'an upload server is already running there'
      : ((check === '/ready' ? reasonIn(text) : undefined) ??
        `another program responds there (status ${status} for ${check})`)
    return { isAlive, isRefused: false, description }
  } catch (error) {
    return {
      isAlive: false,
      isRefused: systemCode(error) === 'ECONNREFUSED',
      description: describeSilence(check, error, signal.aborted),
    }
  }
}

/** The message of a server that is not ready, without its final full stop. */
function reasonIn(reply: string): string | undefined {
  try {
    const { code, message } = membersOf(JSON.parse(reply))
    return typeof code === 'string' && typeof message === 'string' ? message.replace(/\.$/, '') : undefined
  } catch {
    return undefined
  }
}

function describeSilence(check: Check, error: unknown, isLate: boolean): string {
  const what = `the program there does not respond to ${check}`
  if (isLate) return `${what} within ${TIMEOUTS_MS[check] / 1000} s`
  if (systemCode(error) === 'ECONNREFUSED') return 'no server is running there (ECONNREFUSED)'
  if (systemCode(error) === 'ENOENT')
    return 'no server is running there, because the socket does not exist (ENOENT). Start the server, or correct server.host'
  return connectionProblem(error, what).message.replace(/\.$/, '')
}

/** Loads the HTTP client only when it is needed, because most starts find their port free and should respond to heartbeats quickly. */
async function get(
  url: URL,
  socketPath: string | undefined,
  outgoing: Outgoing | undefined,
  signal: AbortSignal,
): Promise<RawReply> {
  const [{ createConnections }, { basicAuthorization, exchange }] = await Promise.all([
    import('../http/connections.ts'),
    import('../http/exchange.ts'),
  ])
  const connections = createConnections({ idleTimeoutMs: TIMEOUTS_MS['/ready'], outgoing })
  const authorization = basicAuthorization(url)
  try {
    const request = {
      url,
      method: 'GET',
      headers: { ...(authorization && { authorization }) },
      maxReplyBytes: 4096,
    }
    // The connections are opened by host and port.
    if (socketPath !== undefined)
      return await exchange(request, { socketPath, agent: new Agent(), idleTimeoutMs: 0 }, signal)
    return await connections.exchange(request, signal)
  } finally {
    connections.close()
  }
}
