import type { IncomingHttpHeaders } from 'node:http'
import { isIPv4, isIPv6 } from 'node:net'
import { isLoopbackAddress } from '../ip-ranges.ts'

export interface LoopbackRules {
  readonly loopbackExempt: boolean
  /** Origins as browsers send them: scheme, host, and the port unless it is the default one. */
  readonly allowedOrigins: readonly string[]
  readonly allowNullOrigin: boolean
  /** `name` allows every port, `name:port` that port only. */
  readonly allowedHosts: readonly string[]
  /** Headers that reverse proxies of `auth.reverseProxy` and `auth.tokens` add, in lower case. */
  readonly proxyHeaders?: readonly string[] | undefined
  /** Called for a request from a reverse proxy on this machine, which may let remote clients pass as local ones. */
  noteProxy?(): void
}

// Node silently drops headers after the first 1000, and a header of a reverse proxy might be among them.
export const MAX_HEADERS = 500

/** Headers by which reverse proxies say whom they forward. The sources are listed in docs/guides/reverse-proxy.md. */
const NAMES = [
  'forwarded',
  'via',
  'x-real-ip',
  'remote-user',
  'x-remote-user',
  'x-goog-iap-jwt-assertion',
  'x-pomerium-jwt-assertion',
]
const PREFIXES = ['x-forwarded-', 'x-authentik-', 'x-auth-request-', 'tailscale-', 'cf-access-']
// CGI and PHP read both spellings as one header, so a proxy may have passed on either. One expression for all names, because
// it is tested with each header of each request.
const FORWARDING = new RegExp(`^(?:(?:${NAMES.join('|')})$|${PREFIXES.join('|')})`.replaceAll('-', '[-_]'))

const LOCALHOST = /^(?:[a-z0-9_-]+\.)*localhost$/
/** Origins such as `app://obsidian.md` and `chrome-extension://…`: every scheme except those of web pages. */
export const APPLICATION_ORIGIN = /^(?!https?:)[a-z][a-z0-9+.-]*:\/\/[^\s/\\,?#]*$/

/** Why a request from a loopback address is not treated as local, as part of a message. Undefined if it is. */
export function findExemptionDenial(
  headers: IncomingHttpHeaders,
  headerCount: number,
  rules: LoopbackRules,
): string | undefined {
  if (!rules.loopbackExempt) return '"auth.loopbackExempt" is false'
  if (headerCount > MAX_HEADERS) return `it has more than ${MAX_HEADERS} headers`
  const forwarding = findForwardingHeader(headers, rules.proxyHeaders)
  if (forwarding !== undefined) {
    rules.noteProxy?.()
    return `it has the header "${forwarding.slice(0, 40)}", which reverse proxies add`
  }
  return findHostDenial(headers.host, rules) ?? findOriginDenial(headers, rules)
}

/** Whether pages of that origin may use the exemption. Never true for `null`, which any page can have. */
export function isTrustedOrigin(origin: string, allowedOrigins: readonly string[]): boolean {
  const spelled = origin.toLowerCase()
  if (spelled === '' || spelled === 'null') return false
  if (isListedOrigin(spelled, allowedOrigins)) return true
  if (APPLICATION_ORIGIN.test(spelled)) return true
  // Tauri's pages have `tauri.localhost`, a name below localhost.
  const [, host = ''] = /^https?:\/\/(\[[^\]]*\]|[^:]*)(?::\d{1,5})?$/.exec(spelled) ?? []
  return LOCALHOST.test(host) || host === '[::1]' || (isIPv4(host) && isLoopbackAddress(host))
}

/** @param spelled in lower case */
export function isListedOrigin(spelled: string, allowedOrigins: readonly string[]): boolean {
  return allowedOrigins.some(allowed => [spelled, `${spelled}/`].includes(allowed.toLowerCase()))
}

/** The name of a header that only proxies add, if the request has one. */
function findForwardingHeader(headers: IncomingHttpHeaders, own: readonly string[] = []): string | undefined {
  return Object.keys(headers).find(
    name => FORWARDING.test(name) || (own.length > 0 && own.includes(name.replaceAll('_', '-'))),
  )
}

function findHostDenial(host: string | undefined, { allowedHosts }: LoopbackRules): string | undefined {
  if (host === undefined || host === '') return 'it has no Host header'
  const spelled = host.toLowerCase()
  const name = splitHost(spelled) ?? ''
  if (LOCALHOST.test(name) || isIPv4(name) || isBracketedIPv6(name)) return undefined
  if (isListedHost(spelled, allowedHosts)) return undefined
  return `its Host ${quote(host)} is not a name of this machine; if it is, add it to "server.allowedHosts"`
}

/** Whether a Host is listed, with or without its port. @param spelled in lower case */
export function isListedHost(spelled: string, allowedHosts: readonly string[]): boolean {
  const name = splitHost(spelled) ?? ''
  return name !== '' && allowedHosts.some(allowed => [name, spelled].includes(allowed.toLowerCase()))
}

/** The name of a Host header without its port, IPv6 addresses in brackets. Undefined if it is not a host. */
export function splitHost(host: string): string | undefined {
  return /^(\[[^\]]*\]|[^:]*)(?::\d{1,5})?$/.exec(host)?.[1]
}

function isBracketedIPv6(name: string): boolean {
  return name.startsWith('[') && !name.includes('%') && isIPv6(name.slice(1, -1))
}

function findOriginDenial(headers: IncomingHttpHeaders, rules: LoopbackRules): string | undefined {
  const { origin } = headers
  if (origin === undefined) {
    const isCrossSite = String(headers['sec-fetch-site']).toLowerCase().includes('cross-site')
    return isCrossSite ? 'a web page of another site sent it (Sec-Fetch-Site)' : undefined
  }
  if (origin === 'null') {
    // Pages that desktop programs load from files have this origin, and so do sandboxed frames of any web page. Only the
    // User-Agent tells them apart. A web page can't set it without a preflight, which cors.ts refuses.
    if (rules.allowNullOrigin || headers['user-agent']?.includes('Electron/')) return undefined
    return 'its Origin is "null"; if you trust every such page, set "auth.allowNullOrigin"'
  }
  if (isTrustedOrigin(origin, rules.allowedOrigins)) return undefined
  const [, scheme, host = ''] = /^([^:]*):\/\/(.*)$/.exec(origin) ?? []
  const page = scheme === undefined ? quote(origin) : `${quote(host)} with the scheme ${quote(scheme)}`
  return `its Origin ${page} is another site; if you trust it, add it to "auth.allowedOrigins"`
}

// Only plain names are shown, because some clients take any URL in a response for the link of the image.
function quote(value: string): string {
  return /^[\w.:+[\]-]{1,100}$/.test(value) ? `"${value}"` : '(unreadable)'
}
