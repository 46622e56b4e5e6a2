import { Agent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { DIAL_MS } from './network.ts'
import type { ProxyServer } from './proxy/address.ts'
import type { Endpoint } from './proxy/no-proxy.ts'
import { DIRECT, type Outgoing, targetOf } from './proxy/outgoing.ts'
import { openTunnel, reachProxy } from './proxy/tunnel.ts'
import { readTrust } from './trust.ts'

export interface AgentOptions {
  readonly caFile?: string | undefined
  readonly insecureTls: boolean
  /** Idle timeout of a connection, in milliseconds; 0 for none. */
  readonly idleTimeoutMs: number
  /** Outbound proxies. Default: none. */
  readonly outgoing?: Outgoing | undefined
}

/** How a request reaches its server. */
export interface HttpWay {
  readonly agent: Agent
  /** The proxy that the agent connects to, if it forwards plain HTTP: each request must then contain the whole URL. */
  readonly forwarder?: ProxyServer | undefined
}

/** Persistent connections. */
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
    // tinyproxy closes a connection after each response that it forwards, without announcing it.
    const options = { keepAlive: !forwarder, timeout: idleTimeoutMs }
    const secureContext = isSecure ? await readTrust({ ...trusted, caFile }) : undefined
    const tls = { rejectUnauthorized: !insecureTls, ...(secureContext && { secureContext }) }
    const agent = isSecure ? new HttpsAgent({ ...options, ...tls }) : new Agent(options)
    if (proxy) {
      const tunnel = {
        signal: closing.signal,
        secureContext: speaksHttp ? await readTrust(trusted) : undefined,
      }
      connectBy(agent, target =>
        outgoing.waitFor(proxy, forwarder ? reachProxy(proxy, tunnel) : openTunnel(proxy, target, tunnel)),
      )
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

/** Replaces how an agent opens connections. HTTPS agents add TLS on top. */
export function connectBy(agent: Agent, open: (target: Endpoint) => Promise<Socket>): void {
  const secure = agent instanceof HttpsAgent ? agent.createConnection.bind(agent) : undefined
  // The casts are needed because Node's types lack the host and port in `options`, and the socket that `done` gets later.
  agent.createConnection = (options, done) => {
    const { host, port } = options as { host?: string; port?: number | string }
    open({ host: host ?? '', port: Number(port) }).then(
      socket => done?.(null, secure?.({ ...options, socket } as typeof options) ?? socket),
      (error: Error) => done?.(error, undefined as never),
    )
    return undefined as never // the socket is passed to `done`
  }
}

/**
 * Closes connections that take too long to open, including the TLS handshake, or that are idle for too long. Node only emits
 * an event for idle connections, so a server that never responds would keep them open.
 *
 * @param idleTimeoutMs 0: no limit
 */
export function limitTimes<A extends Agent>(agent: A, idleTimeoutMs: number): A {
  const connect = agent.createConnection.bind(agent)
  const limitIdle = (socket: Socket) => {
    socket.setTimeout(idleTimeoutMs)
    socket.on('timeout', () => {
      // The agent sets the keep-alive time of the server on an unused connection, and does not reset it afterwards.
      if (socket.timeout !== idleTimeoutMs) return void socket.setTimeout(idleTimeoutMs)
      socket.destroy(timedOut())
    })
  }
  // Node's types know neither the address in `options` nor a socket that comes later, by `done`.
  agent.createConnection = (options, done) => {
    let opening: Socket | undefined
    let isLate = false
    const slow = setTimeout(() => {
      isLate = true
      opening?.destroy(timedOut())
    }, DIAL_MS)
    const limit = (socket: unknown) => {
      if (!(socket instanceof Socket)) return
      limitIdle(socket)
      opening = socket
      if (isLate) socket.destroy(timedOut())
      const isTls = socket instanceof TLSSocket
      if (!isTls && !socket.connecting) clearTimeout(slow)
      for (const event of [isTls ? 'secureConnect' : 'connect', 'close'])
        socket.once(event, () => clearTimeout(slow))
    }
    const socket = connect(options, (error, opened) => {
      if (error) clearTimeout(slow)
      limit(opened)
      done?.(error, opened)
    })
    limit(socket)
    return socket
  }
  return agent
}

function timedOut(): Error {
  return Object.assign(new Error('no response within the time limit'), { code: 'ETIMEDOUT' })
}
