import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import { inRanges, isLoopbackAddress, parseRange } from '../../ip-ranges.ts'

/** Where a connection is to lead. */
export interface Endpoint {
  /** Hostname or IP address; an IPv6 address has no brackets here. */
  readonly host: string
  readonly port: number
}

const SEPARATORS = /[\s,;]+/

type Rule = (endpoint: Endpoint) => boolean

/**
 * Reads the hosts that bypass a proxy, in the syntax of `NO_PROXY`: `*`; a hostname, which includes its subdomains, with or
 * without a dot or `*.` in front; a suffix, `*example.com`; an IP address or its beginning, `10.*`; a range such as
 * `10.0.0.0/8`. Each may end with `:port`. Hostnames are not resolved. Invalid entries are omitted.
 */
export function parseNoProxy(entries: readonly string[]): Rule {
  const parts = entries.flatMap(entry => entry.split(SEPARATORS)).filter(Boolean)
  const rules = parts.flatMap(part => parseEntry(part) ?? [])
  return endpoint => {
    const plain = { ...endpoint, host: cleanHost(endpoint.host) }
    return rules.some(rule => rule(plain))
  }
}

/** Whether an entry of `noProxy` is valid, or each entry of a text with several. */
export function isNoProxy(entry: string): boolean {
  const parts = entry.split(SEPARATORS).filter(Boolean)
  return parts.length > 0 && parts.every(part => parseEntry(part) !== undefined)
}

/** Whether it is this machine itself. */
export function isLoopback(host: string): boolean {
  const name = cleanHost(host)
  return isLoopbackAddress(name) || name === 'localhost' || name.endsWith('.localhost')
}

function parseEntry(entry: string): Rule | undefined {
  const [, name = '', port] = /^(\[[^\]]*\](?:\/\d+)?|[^:]*|[^:]*:[^:]*:.*?)(?::(\d+))?$/.exec(entry) ?? []
  // An IPv6 address without brackets can't have a port.
  const text = isIP(entry) ? entry : name
  const matches = parseHost(text.toLowerCase().replace(/[[\]]/g, ''))
  if (matches === undefined) return undefined
  const isThere = port === undefined || isIP(entry) ? () => true : (number: number) => number === Number(port)
  return endpoint => isThere(endpoint.port) && matches(endpoint.host)
}

function parseHost(text: string): ((host: string) => boolean) | undefined {
  if (text === '') return undefined
  if (text === '*') return () => true
  const start = /^((?:\d{1,3}\.){1,3})\*$/.exec(text)?.[1]?.split('.').slice(0, -1)
  const network = parseRange(
    start ? `${[...start, 0, 0, 0].slice(0, 4).join('.')}/${start.length * 8}` : text,
  )
  if (network) return inRanges([network])
  const isEnd = /^\*[^.]/.test(text)
  const rest = cleanHost(text.replace(/^\*?\.?/, ''))
  const name = /[*/]/.test(rest) ? '' : domainToASCII(rest)
  if (name === '') return undefined
  return host => host === name || host.endsWith(isEnd ? name : `.${name}`)
}

const cleanHost = (host: string): string => host.toLowerCase().replace(/^\[|\]$|\.$/g, '')
