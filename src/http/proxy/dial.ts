import type { Socket } from 'node:net'
import { readTrust } from '../trust.ts'
import type { Endpoint } from './no-proxy.ts'
import type { Outgoing } from './outgoing.ts'
import { openTunnel } from './tunnel.ts'

/**
 * Connects to a server that does not speak HTTP.
 *
 * @returns undefined when no proxy is meant for it, so that its own library may connect
 * @throws ProxyFailure; the system's error if a hostname can't be resolved here; the reason of the signal
 */
export async function dialThroughProxy(
  outgoing: Outgoing,
  target: Endpoint,
  signal: AbortSignal,
): Promise<Socket | undefined> {
  const proxy = outgoing.proxyFor({ protocol: 'tcp:', ...target })
  if (!proxy) return undefined
  const trusted = proxy.protocol === 'https:' ? { 'network.caFile': outgoing.caFile } : {}
  const options = { signal, secureContext: await readTrust(trusted) }
  return outgoing.waitFor(proxy, openTunnel(proxy, target, options))
}
