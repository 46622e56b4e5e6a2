import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { Socket } from 'node:net'
import type { ProxyServer } from './proxy/address.ts'
import type { Endpoint } from './proxy/no-proxy.ts'
import { DIRECT, type Outgoing, targetOf } from './proxy/outgoing.ts'
import { openTunnel, reachProxy } from './proxy/tunnel.ts'
import { readTrust } from './trust.ts'

/** A connection that takes longer to be made is given up. */
const CONNECT_TIMEOUT_MS = 10_000

export interface AgentOptions {
  readonly caFile?: string | undefined
  readonly insecureTls: boolean
  /** A connection on which nothing happens for so long is given up; 0 for never. */
  readonly idleTimeoutMs: number
  /** Default: past every proxy. */
  readonly outgoing?: Outgoing | undefined
}

/** How a request gets to its server. */
export interface HttpWay {
  readonly agent: HttpAgent
  /** The proxy at the other end of the agent's connections, which has to be told the server with each request. */
  readonly forwarder?: ProxyServer | undefined
}

/** Connections that are kept open between requests. */
export interface HttpAgents {
  /**
   * @throws UploadError `delivery_failed`, whose message is the end of a sentence, when a certificate file can't be read,
   *   which is done at first use; ProxyFailure when the proxy for it can't be used
   */
  get(url: URL): Promise<HttpWay>
  close(): void
}

export function createHttpAgents(options: AgentOptions): HttpAgents {
  const { caFile, insecureTls, idleTimeoutMs, outgoing = DIRECT } = options
  const closing = new AbortController()
  const ways = new Map<string, Promise<HttpWay>>()

  async function open(isSecure: boolean, proxy: ProxyServer | undefined): Promise<HttpWay> {
    const trusted = { 'network.caFile': outgoing.caFile }
    const speaksHttp = proxy?.protocol === 'http:' || proxy?.protocol === 'https:'
    const forwarder = speaksHttp && !isSecure ? proxy : undefined
    // tinyproxy closes a connection behind each answer that it forwards, and does not say so.
    const options = { keepAlive: !forwarder, timeout: idleTimeoutMs }
    const secureContext = isSecure ? await readTrust({ ...trusted, caFile }) : undefined
    const tls = { rejectUnauthorized: !insecureTls, ...(secureContext && { secureContext }) }
    const agent = isSecure ? new HttpsAgent({ ...options, ...tls }) : new HttpAgent(options)
    if (proxy) {
      const tunnel = {
        signal: closing.signal,
        secureContext: speaksHttp ? await readTrust(trusted) : undefined,
      }
      connectBy(agent, target => (forwarder ? reachProxy(proxy, tunnel) : openTunnel(proxy, target, tunnel)))
    }
    return { agent: limitTimes(agent, idleTimeoutMs), forwarder }
  }

  return {
    async get(url) {
      const endpoint = targetOf(url)
      const proxy = outgoing.proxyFor(endpoint)
      const name = `${endpoint.protocol} ${proxy?.label}`
      const way = ways.get(name) ?? open(endpoint.protocol === 'https:', proxy)
      ways.set(name, way)
      way.catch(() => ways.delete(name))
      return way
    },
    close() {
      closing.abort(new Error('the destination was closed'))
      for (const way of ways.values())
        void way.then(
          ({ agent }) => agent.destroy(),
          () => {},
        )
    },
  }
}

/** Has an agent's connections made by another function; those of HTTPS do their TLS over them. */
export function connectBy(agent: HttpAgent, open: (target: Endpoint) => Promise<Socket>): void {
  const secure = agent instanceof HttpsAgent ? agent.createConnection.bind(agent) : undefined
  agent.createConnection = (options, done) => {
    const { host, port } = options as { host?: string; port?: number | string }
    open({ host: host ?? '', port: Number(port) }).then(
      socket => done?.(null, secure?.({ ...options, socket } as typeof options) ?? socket),
      (error: Error) => done?.(error, undefined as never),
    )
    return undefined as never // it comes later
  }
}

/**
 * Ends connections that take too long to be made, or on which nothing happens. Node only tells of such silence, so a server
 * that never answers would keep them open.
 */
function limitTimes<A extends HttpAgent>(agent: A, idleTimeoutMs: number): A {
  const connect = agent.createConnection.bind(agent)
  const limit = (socket: unknown) => {
    if (!(socket instanceof Socket)) return
    socket.setTimeout(idleTimeoutMs)
    socket.on('timeout', () => {
      // While a connection is unused the agent sets the time its server has named, and leaves it at that afterwards.
      if (socket.timeout !== idleTimeoutMs) return void socket.setTimeout(idleTimeoutMs)
      socket.destroy(timedOut())
    })
  }
  agent.createConnection = (options, done) => {
    const socket = connect(options, (error, opened) => {
      limit(opened)
      done?.(error, opened)
    })
    limit(socket)
    if (!(socket instanceof Socket)) return socket
    const slow = setTimeout(() => socket.destroy(timedOut()), CONNECT_TIMEOUT_MS)
    for (const event of ['connect', 'close']) socket.once(event, () => clearTimeout(slow))
    return socket
  }
  return agent
}

function timedOut(): Error {
  return Object.assign(new Error('no answer in time'), { code: 'ETIMEDOUT' })
}
