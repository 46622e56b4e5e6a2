import type { IncomingHttpHeaders } from 'node:http'
import { isIPv4, isIPv6 } from 'node:net'
import { isLoopbackAddress } from '../loopback-address.ts'

export interface LoopbackRules {
  readonly loopbackExempt: boolean
  /** Origins as browsers write them: scheme, host, and port unless it is the scheme's own. */
  readonly allowedOrigins: readonly string[]
  readonly allowNullOrigin: boolean
  /** `name` admits every port, `name:port` that one. */
  readonly allowedHosts: readonly string[]
}

// Node drops headers after the first thousand without a word, and a proxy's mark might be among those.
const MAX_HEADERS = 500

const LOCALHOST = /^(?:[a-z0-9_-]+\.)*localhost$/
/** `app://obsidian.md`, `chrome-extension://…`: every scheme but those of web pages. */
const APPLICATION_ORIGIN = /^(?!https?:)[a-z][a-z0-9+.-]*:\/\/[^\s/\\,?#]*$/

/** Why a request from a loopback address does not count as one of this machine, in words; undefined when it does. */
export function findLoopbackDoubt(
  headers: IncomingHttpHeaders,
  headerCount: number,
  rules: LoopbackRules,
): string | undefined {
  if (!rules.loopbackExempt) return '"auth.loopbackExempt" is switched off'
  if (headerCount > MAX_HEADERS) return `it has more than ${MAX_HEADERS} headers`
  const forwarding = findForwardingHeader(headers)
  if (forwarding !== undefined)
    return `its header "${forwarding.slice(0, 40)}" shows that a proxy passed it on`
  return findHostDoubt(headers.host, rules) ?? findOriginDoubt(headers, rules)
}

/** Whether pages of that origin may use the exemption. Never true for `null`, which can be any page's. */
export function isTrustedOrigin(origin: string, allowedOrigins: readonly string[]): boolean {
  const spelled = origin.toLowerCase()
  if (spelled === '' || spelled === 'null') return false
  if (allowedOrigins.some(allowed => [spelled, `${spelled}/`].includes(allowed.toLowerCase()))) return true
  if (APPLICATION_ORIGIN.test(spelled)) return true
  // `tauri.localhost` is one of the names below localhost.
  const [, host = ''] = /^https?:\/\/(\[[^\]]*\]|[^:]*)(?::\d{1,5})?$/.exec(spelled) ?? []
  return LOCALHOST.test(host) || host === '[::1]' || (isIPv4(host) && isLoopbackAddress(host))
}

/** The name of a header that only proxies add. */
export function findForwardingHeader(headers: IncomingHttpHeaders): string | undefined {
  return Object.keys(headers).find(isForwardingHeader)
}

function isForwardingHeader(name: string): boolean {
  return name === 'forwarded' || name === 'via' || name === 'x-real-ip' || name.startsWith('x-forwarded-')
}

function findHostDoubt(host: string | undefined, { allowedHosts }: LoopbackRules): string | undefined {
  if (host === undefined || host === '') return 'it has no Host header'
  const spelled = host.toLowerCase()
  const [, name = ''] = /^(\[[^\]]*\]|[^:]*)(?::\d{1,5})?$/.exec(spelled) ?? []
  if (LOCALHOST.test(name) || isIPv4(name) || isBracketedIPv6(name)) return undefined
  if (name !== '' && allowedHosts.some(allowed => [name, spelled].includes(allowed.toLowerCase())))
    return undefined
  return `its Host ${quote(host)} is no name of this machine; if it is one of yours, add it to "server.allowedHosts"`
}

function isBracketedIPv6(name: string): boolean {
  return name.startsWith('[') && !name.includes('%') && isIPv6(name.slice(1, -1))
}

function findOriginDoubt(headers: IncomingHttpHeaders, rules: LoopbackRules): string | undefined {
  const { origin } = headers
  if (origin === undefined) {
    const isCrossSite = String(headers['sec-fetch-site']).toLowerCase().includes('cross-site')
    return isCrossSite ? 'a page of another site sent it (Sec-Fetch-Site)' : undefined
  }
  if (origin === 'null') {
    // File pages of desktop programs have it, and so do sandboxed frames of any page: nothing else that a browser sends
    // of its own accord tells them apart. A page can't set it without a preflight, and that refuses it (cors.ts).
    if (rules.allowNullOrigin || headers['user-agent']?.includes('Electron/')) return undefined
    return 'its Origin is "null"; if you trust every such page, set "auth.allowNullOrigin"'
  }
  if (isTrustedOrigin(origin, rules.allowedOrigins)) return undefined
  const [, scheme, host = ''] = /^([^:]*):\/\/(.*)$/.exec(origin) ?? []
  const page = scheme === undefined ? quote(origin) : `${quote(host)} with the scheme ${quote(scheme)}`
  return `its Origin ${page} is another site; if you trust it, add it to "auth.allowedOrigins"`
}

// Only plain names are shown: some clients take any URL in an answer for the picture.
function quote(value: string): string {
  return /^[\w.:+[\]-]{1,100}$/.test(value) ? `"${value}"` : '(unreadable)'
}
