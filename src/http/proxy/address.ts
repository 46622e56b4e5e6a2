import { percentDecode } from '../percent-decode.ts'

/** A server that passes connections on. */
export interface ProxyServer {
  /** `socks5:` looks names up here, `socks5h:` has the proxy do it. */
  readonly protocol: 'http:' | 'https:' | 'socks5:' | 'socks5h:'
  /** An IPv6 address has no brackets here. */
  readonly host: string
  readonly port: number
  /** Undefined when it asks for none. */
  readonly login: { readonly username: string; readonly password: string } | undefined
  /** Host and port, for messages. */
  readonly label: string
}

/** Default ports. */
const PORTS: Readonly<Record<ProxyServer['protocol'], number>> = {
  'http:': 80,
  'https:': 443,
  'socks5:': 1080,
  'socks5h:': 1080,
}

/** Most bytes of a name and of a password (RFC 1929, section 2). */
const MOST_LOGIN_BYTES = 255

/** Reads `http://user:password@host:port`, `https:`, `socks5:` and `socks5h:`; undefined for anything else. */
export function parseProxy(address: string): ProxyServer | undefined {
  const text = address.trim()
  if (!text.includes('://') || !URL.canParse(text)) return undefined
  const { protocol, hostname, port, username, password, pathname, search, hash } = new URL(text)
  if (!isProtocol(protocol) || hostname === '' || search || hash || !['', '/'].includes(pathname))
    return undefined
  const login = { username: decode(username), password: decode(password) }
  if (Object.values(login).some(one => Buffer.byteLength(one) > MOST_LOGIN_BYTES)) return undefined
  const number = port === '' ? PORTS[protocol] : Number(port)
  return {
    protocol,
    host: hostname.replace(/^\[|\]$/g, ''),
    port: number,
    login: username === '' && password === '' ? undefined : login,
    label: `${hostname}:${number}`,
  }
}

/** As people write it in variables and in PicGo: `host:port` means HTTP, and `socks:` means SOCKS5 with names. */
export function completeProxy(address: string): string {
  const text = address.trim()
  if (!text.includes('://')) return `http://${text}`
  return text.replace(/^socks:/i, 'socks5h:')
}

/** Returns the credentials for each request to a proxy, or nothing if it needs no login. */
export function loginHeaders({ login }: ProxyServer): Record<string, string> {
  if (!login) return {}
  const credentials = Buffer.from(`${login.username}:${login.password}`).toString('base64')
  return { 'proxy-authorization': `Basic ${credentials}` }
}

/** Returns the secrets in a proxy's URL. */
export function secretsOfProxy(address: string): string[] {
  const url = URL.canParse(address.trim()) ? new URL(address.trim()) : undefined
  return url?.password ? [url.password, decode(url.password)] : []
}

/** Returns a proxy's URL without its password. */
export function hideLogin(address: string): string {
  const url = URL.canParse(address.trim()) ? new URL(address.trim()) : undefined
  if (!url?.password) return address
  url.password = '[secret]'
  return decode(url.href)
}

const isProtocol = (name: string): name is ProxyServer['protocol'] => Object.hasOwn(PORTS, name)

const decode = (text: string): string => percentDecode(text).toString()
