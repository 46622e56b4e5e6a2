import { isIPv4, isIPv6 } from 'node:net'
import { APPLICATION_ORIGIN, isListedHost, isListedOrigin, splitHost } from './loopback.ts'

/** What decides whether a page belongs to this server. */
export interface OwnOrigin {
  /** `server.publicUrl`. If it is set, no other origin is the server's own. */
  readonly publicUrl?: string | undefined
  readonly allowedOrigins: readonly string[]
  readonly allowedHosts: readonly string[]
}

export interface OriginFacts {
  readonly origin: string | undefined
  readonly fetchSite: string | undefined
  readonly host: string | undefined
  /** `http` or `https`, as the client sees it. */
  readonly scheme: string
}

/**
 * Whether a web page of another site may have sent a request. A browser adds a cached password, a cookie or a client
 * certificate by itself, so for clients who are identified by these the page must be known (CSRF).
 */
export function isCrossSite({ origin, fetchSite, host, scheme }: OriginFacts, own: OwnOrigin): boolean {
  if (origin === undefined) return fetchSite?.toLowerCase().includes('cross-site') ?? false
  const spelled = origin.toLowerCase()
  if (APPLICATION_ORIGIN.test(spelled)) return false
  if (isListedOrigin(spelled, own.allowedOrigins)) return false
  if (own.publicUrl !== undefined) return spelled !== new URL(own.publicUrl).origin.toLowerCase()
  if (host === undefined || !isOwnHost(host, own.allowedHosts)) return true
  const url = `${scheme}://${host}`
  return !URL.canParse(url) || spelled !== new URL(url).origin
}

/** Whether a Host is a name of this machine, and not one that leads here by DNS rebinding. */
function isOwnHost(host: string, allowedHosts: readonly string[]): boolean {
  const spelled = host.toLowerCase()
  const name = splitHost(spelled) ?? ''
  if (name === 'localhost' || isIPv4(name) || (name.startsWith('[') && isIPv6(name.slice(1, -1)))) return true
  return isListedHost(spelled, allowedHosts)
}
