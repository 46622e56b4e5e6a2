import type { Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { once } from '../flow/once.ts'
import type { ConnectionSettings } from './agents.ts'
import { createHttpClient, type HttpClient } from './client.ts'
import { dial } from './dial.ts'
import type { Endpoint } from './proxy/no-proxy.ts'
import { DIRECT } from './proxy/outgoing.ts'
import { readTrust } from './trust.ts'

/** The connections of one destination. */
export interface Connections {
  readonly http: HttpClient
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
  /** Closes the connections of `http`. */
  close(): void
}

export function createConnections(settings: ConnectionSettings): Connections {
  const { caFile, insecureTls, outgoing = DIRECT } = settings
  const { send, close } = createHttpClient(settings)
  const getTrust = once(() => readTrust({ 'network.caFile': outgoing.caFile, caFile }))
  const proxyFor = (target: Endpoint) => outgoing.proxyFor({ protocol: 'tcp:', ...target })

  return {
    http: { send },
    close,
    async dial(target, signal, tls) {
      const proxy = proxyFor(target)
      const trust = tls || proxy ? await getTrust() : undefined
      return dial(target, { signal, proxy, trust, ...(tls && { tls: { rejectUnauthorized: !insecureTls } }) })
    },
    isProxied: target => proxyFor(target) !== undefined,
    async tlsOptions() {
      const secureContext = await getTrust()
      return { rejectUnauthorized: !insecureTls, ...(secureContext && { secureContext }) }
    },
  }
}
