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
  /** Whether the request only reads. Browsers omit `Origin` when a page reads from its own origin. */
  readonly isRead: boolean
  readonly origin: string | undefined
  readonly fetchSite: string | undefined
  readonly host: string | undefined
  /** `http` or `https`, as the client sees it. */
  readonly scheme: string
}

/**
 * Whether a web page of another site may have sent a request. A browser adds a cached password, a cookie or a client
 * certificate automatically, so for clients who are identified by these the page must be known (CSRF).
 */
export function isCrossSite(facts: OriginFacts, own: OwnOrigin): boolean {
  const { isRead, origin, fetchSite, host, scheme } = facts
  if (origin === undefined)
    return fetchSite?.toLowerCase().includes('cross-site') || (isRead && mayBeRebound(host, own))
  const spelled = origin.toLowerCase()
  if (APPLICATION_ORIGIN.test(spelled)) return false
  if (isListedOrigin(spelled, own.allowedOrigins)) return false
  if (own.publicUrl !== undefined) return spelled !== new URL(own.publicUrl).origin.toLowerCase()
  if (host === undefined || !isOwnHost(host, own.allowedHosts)) return true
  const url = `${scheme}://${host}`
  return !URL.canParse(url) || spelled !== new URL(url).origin
}

/**
 * Whether a Host may be a name of the attacker that leads to the reverse proxy (DNS rebinding). Public names have a dot. One
 * without may be the name by which a reverse proxy reaches this server.
 */
function mayBeRebound(host: string | undefined, { publicUrl, allowedHosts }: OwnOrigin): boolean {
  const name = splitHost(host?.toLowerCase() ?? '') ?? ''
  const isOfUrl = publicUrl !== undefined && name === new URL(publicUrl).hostname
  return name.includes('.') && !isOfUrl && !isOwnHost(name, allowedHosts)
}

/** Whether a Host is a name of this machine, and not one that leads here by DNS rebinding. */
function isOwnHost(host: string, allowedHosts: readonly string[]): boolean {
  const spelled = host.toLowerCase()
  const name = splitHost(spelled) ?? ''
  if (name === 'localhost' || isIPv4(name) || (name.startsWith('[') && isIPv6(name.slice(1, -1)))) return true
  return isListedHost(spelled, allowedHosts)
}
