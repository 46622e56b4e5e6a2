import type { Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { createCanceller } from '../flow/cancellation.ts'
import { once } from '../flow/once.ts'
import { createHttpClient, type HttpClient } from './client.ts'
import { createAgent, dial } from './dial.ts'
import { exchange, type RawReply, type RawRequest } from './exchange.ts'
import type { Endpoint } from './proxy/no-proxy.ts'
import { DIRECT, type Outgoing, type OutgoingTarget, targetOf } from './proxy/outgoing.ts'
import { readTrust } from './trust.ts'

/** How a client or a destination connects. */
export interface ConnectionSettings {
  /** PEM file with CA certificates to trust in addition to those of `network.caFile` and the built-in ones. */
  readonly caFile?: string | undefined
  /** If true, certificates of servers are not verified. Those of proxies are. Default: false. */
  readonly insecureTls?: boolean | undefined
  /** Outbound proxies. Default: none. */
  readonly outgoing?: Outgoing | undefined
  /** Idle timeout of a connection for HTTP, in milliseconds; 0 for none. Default: 60 s. */
  readonly idleTimeoutMs?: number | undefined
}

/** The connections of one client or destination. Those for HTTP are persistent. Who creates them must close them. */
export interface Connections {
  readonly http: HttpClient
  /** Sends one request, whatever its response says. @throws as `exchange` of `http/exchange.ts` */
  exchange(request: RawRequest, signal: AbortSignal): Promise<RawReply>
  /**
   * Connects to a server that does not speak HTTP, through the outbound proxy if there is one.
   *
   * @param tls `implicit`: TLS from the first byte
   * @throws as `dial` of `http/dial.ts`
   */
  dial(target: Endpoint, signal: AbortSignal, tls?: 'implicit'): Promise<Socket>
  /** Whether `dial` uses a proxy. */
  isProxied(target: Endpoint): boolean
  /** Options for TLS that begins later on a connection, such as by AUTH TLS of FTP. */
  tlsOptions(): Promise<ConnectionOptions>
  /** Closes the connections for HTTP. */
  close(): void
}

/** @param connect tests use it to redirect connections */
export function createConnections(settings: ConnectionSettings, connect = dial): Connections {
  const { caFile, insecureTls, idleTimeoutMs = 60_000, outgoing = DIRECT } = settings
  const verified = { rejectUnauthorized: !insecureTls }
  const closing = createCanceller()
  const getTrust = once(() => readTrust({ 'network.caFile': outgoing.caFile, caFile }))
  const asTcp = (target: Endpoint): OutgoingTarget => ({ protocol: 'tcp:', ...target })

  async function open(target: OutgoingTarget, signal: AbortSignal, tls?: ConnectionOptions): Promise<Socket> {
    return connect(target, { signal, proxy: outgoing.proxyFor(target), trust: await getTrust(), tls })
  }

  /** The proxy that forwards requests of plain HTTP, instead of connecting to the server. */
  function forwarderFor(target: OutgoingTarget) {
    const proxy = target.protocol === 'http:' ? outgoing.proxyFor(target) : undefined
    return proxy?.protocol.startsWith('http') ? proxy : undefined
  }

  function createAgentOf(protocol: 'http:' | 'https:') {
    const tls = protocol === 'https:' ? { ...verified, ALPNProtocols: ['http/1.1'] } : undefined
    const openHttp = async (endpoint: Endpoint) => {
      const forwarder = forwarderFor({ protocol, ...endpoint })
      if (!forwarder) return open({ protocol, ...endpoint }, closing.signal, tls)
      const ofProxy = forwarder.protocol === 'https:' ? {} : undefined
      return connect(forwarder, { signal: closing.signal, trust: await getTrust(), tls: ofProxy })
    }
    return createAgent(protocol, openHttp, { keepAlive: true, timeout: idleTimeoutMs })
  }
  const [plain, secure] = [createAgentOf('http:'), createAgentOf('https:')]

  const send: Connections['exchange'] = async (request, signal) => {
    const target = targetOf(new URL(request.url))
    const agent = target.protocol === 'https:' ? secure : plain
    return exchange(request, { agent, idleTimeoutMs, forwarder: forwarderFor(target) }, signal)
  }

  return {
    http: createHttpClient(send),
    exchange: send,
    dial: (target, signal, tls) => open(asTcp(target), signal, tls && verified),
    isProxied: target => outgoing.proxyFor(asTcp(target)) !== undefined,
    async tlsOptions() {
      const secureContext = await getTrust()
      return { ...verified, ...(secureContext && { secureContext }) }
    },
    close() {
      closing.abort(new Error('the destination was closed'))
      for (const agent of [plain, secure]) agent.destroy()
    },
  }
}
