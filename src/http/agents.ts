import { Agent, type AgentOptions } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import type { Socket } from 'node:net'
import { createCanceller } from '../flow/cancellation.ts'
import { once } from '../flow/once.ts'
import { dial } from './dial.ts'
import type { ProxyServer } from './proxy/address.ts'
import type { Endpoint } from './proxy/no-proxy.ts'
import { DIRECT, type Outgoing, targetOf } from './proxy/outgoing.ts'
import { readTrust } from './trust.ts'

/** How a client or a destination connects. */
export interface ConnectionSettings {
  /** PEM file with CA certificates to trust in addition to those of `network.caFile` and the built-in ones. */
  readonly caFile?: string | undefined
  /** If true, certificates of servers are not verified. Those of proxies are. Default: false. */
  readonly insecureTls?: boolean | undefined
  /** Outbound proxies. Default: none. */
  readonly outgoing?: Outgoing | undefined
}

export interface HttpSettings extends ConnectionSettings {
  /** Idle timeout of a connection, in milliseconds; 0 for none. Default: 60 s. */
  readonly idleTimeoutMs?: number | undefined
}

/** How a request reaches its server. */
export interface HttpWay {
  readonly agent: Agent
  /** The proxy that the agent connects to, if it forwards plain HTTP: each request must then contain the whole URL. */
  readonly forwarder?: ProxyServer | undefined
}

/** Persistent connections. */
export interface HttpAgents {
  /** @throws ProxyFailure when the proxy for it can't be used */
  get(url: URL): HttpWay | Promise<HttpWay>
  close(): void
}

export function createHttpAgents(settings: HttpSettings): HttpAgents {
  const { caFile, insecureTls, idleTimeoutMs = 60_000, outgoing = DIRECT } = settings
  const closing = createCanceller()
  const ways = new Map<string, HttpWay>()
  const getTrust = once(() => readTrust({ 'network.caFile': outgoing.caFile, caFile }))

  function open(isSecure: boolean, proxy: ProxyServer | undefined): HttpWay {
    const forwarder = !isSecure && proxy?.protocol.startsWith('http') ? proxy : undefined
    // tinyproxy closes a connection after each response that it forwards, without announcing it.
    const agent = createAgent(isSecure, { keepAlive: !forwarder, timeout: idleTimeoutMs }, async endpoint => {
      const known = { trust: await getTrust(), signal: closing.signal }
      const tls = { rejectUnauthorized: !insecureTls, ALPNProtocols: ['http/1.1'] }
      const socket = forwarder
        ? await dial(forwarder, { ...known, tls: forwarder.protocol === 'https:' ? {} : undefined })
        : await dial(endpoint, { ...known, proxy, tls: isSecure ? tls : undefined })
      return limitIdle(socket, idleTimeoutMs)
    })
    return { agent, forwarder }
  }

  return {
    get(url) {
      const endpoint = targetOf(url)
      const proxy = outgoing.proxyFor(endpoint)
      const name = `${endpoint.protocol} ${proxy?.label}`
      const way = ways.get(name) ?? open(endpoint.protocol === 'https:', proxy)
      ways.set(name, way)
      return way
    },
    close() {
      closing.abort(new Error('the destination was closed'))
      for (const { agent } of ways.values()) agent.destroy()
    },
  }
}

/** Creates an agent whose connections are opened by `open`. */
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

/** Closes a connection that is idle for too long. Node only emits an event, so a server that never responds would keep it open. */
function limitIdle(socket: Socket, ms: number): Socket {
  socket.setTimeout(ms)
  return socket.on('timeout', () => {
    // The agent sets the server's keep-alive time on an unused connection, and does not reset it afterwards.
    if (socket.timeout !== ms) return void socket.setTimeout(ms)
    socket.destroy(Object.assign(new Error('no response within the time limit'), { code: 'ETIMEDOUT' }))
  })
}
