import { domainToASCII } from 'node:url'
import { inRanges, isLoopbackAddress, parseRange } from '../../ip-ranges.ts'

/** Where a connection is to lead. */
export interface Endpoint {
  /** Hostname or IP address; an IPv6 address has no brackets here. */
  readonly host: string
  readonly port: number
}

type Rule = (endpoint: Endpoint) => boolean

/**
 * Reads the hosts that bypass a proxy, in the syntax of `NO_PROXY`: `*`; a hostname, which includes its subdomains, with or
 * without `*`, a dot or both in front; an IP address; a range such as `10.0.0.0/8`. Each may end with `:port`. Hostnames are not
 * resolved. Invalid entries are omitted.
 */
export function parseNoProxy(entries: readonly string[]): Rule {
  const rules = entries.flatMap(split).flatMap(part => parseEntry(part) ?? [])
  return endpoint => {
    const plain = { ...endpoint, host: cleanHost(endpoint.host) }
    return rules.some(rule => rule(plain))
  }
}

/** Whether an entry of `noProxy` is valid, or each entry of a text with several. */
export function isNoProxy(entry: string): boolean {
  const parts = split(entry)
  return parts.length > 0 && parts.every(part => parseEntry(part) !== undefined)
}

/** Whether it is this machine itself. */
export function isLoopback(host: string): boolean {
  const name = cleanHost(host)
  return isLoopbackAddress(name) || name === 'localhost' || name.endsWith('.localhost')
}

const split = (text: string) => text.split(/[\s,;]+/).filter(Boolean)

function parseEntry(entry: string): Rule | undefined {
  // An IPv6 address without brackets can't have a port.
  const [, inBrackets, plain = entry, port] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+))?$/.exec(entry) ?? []
  const matches = parseHost((inBrackets ?? plain).toLowerCase())
  if (!matches) return undefined
  return endpoint => (port === undefined || endpoint.port === Number(port)) && matches(endpoint.host)
}

function parseHost(text: string): ((host: string) => boolean) | undefined {
  if (text === '*') return () => true
  const range = parseRange(text)
  if (range) return inRanges([range])
  const rest = cleanHost(text.replace(/^\*?\.?/, ''))
  const name = /[*/:]/.test(rest) ? '' : domainToASCII(rest)
  return name === '' ? undefined : host => host === name || host.endsWith(`.${name}`)
}

const cleanHost = (host: string): string => host.toLowerCase().replace(/^\[|\]$|\.$/g, '')
