import { percentDecode } from '../percent-decode.ts'

/** A server that passes connections on. */
export interface ProxyServer {
  /** `socks5:` looks names up here, `socks5h:` has the proxy do it. */
  readonly protocol: keyof typeof PORTS
  /** An IPv6 address has no brackets here. */
  readonly host: string
  readonly port: number
  /** Undefined when it asks for none. */
  readonly login: { readonly username: string; readonly password: string } | undefined
  /** Host and port, for messages. */
  readonly label: string
}

/** Default ports. */
const PORTS = { 'http:': 80, 'https:': 443, 'socks5:': 1080, 'socks5h:': 1080 }

/** Reads `http://user:password@host:port`, `https:`, `socks5:` and `socks5h:`; undefined for anything else. */
export function parseProxy(address: string): ProxyServer | undefined {
  const url = urlOf(address)
  if (!url?.hostname || url.pathname.length > 1 || url.search || url.hash) return undefined
  const { protocol, hostname, username, password } = url
  if (!isProtocol(protocol)) return undefined
  const port = Number(url.port || PORTS[protocol])
  return {
    protocol,
    host: hostname.replace(/^\[|\]$/g, ''),
    port,
    login: username || password ? { username: decode(username), password: decode(password) } : undefined,
    label: `${hostname}:${port}`,
  }
}

/** As people write it in variables and in PicGo: `host:port` means HTTP, and `socks:` means SOCKS5 with names. */
export function completeProxy(address: string): string {
  const text = address.trim()
  return text.includes('://') ? text.replace(/^socks:/i, 'socks5h:') : `http://${text}`
}

/** Returns the credentials for each request to a proxy, or nothing if it needs no login. */
export function loginHeaders({ login }: ProxyServer): Record<string, string> {
  if (!login) return {}
  const credentials = Buffer.from(`${login.username}:${login.password}`).toString('base64')
  return { 'proxy-authorization': `Basic ${credentials}` }
}

/** Returns the secrets in a proxy's URL. */
export function secretsOfProxy(address: string): string[] {
  const password = urlOf(address)?.password
  return password ? [password, decode(password)] : []
}

/** Returns a proxy's URL without its password. */
export function hideLogin(address: string): string {
  const url = urlOf(address)
  if (!url?.password) return address
  url.password = '[secret]'
  return decode(url.href)
}

const urlOf = (address: string) => (URL.canParse(address.trim()) ? new URL(address.trim()) : undefined)
const isProtocol = (name: string): name is ProxyServer['protocol'] => Object.hasOwn(PORTS, name)
const decode = (text: string): string => percentDecode(text).toString()
