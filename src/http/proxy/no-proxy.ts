import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import ipaddr from 'ipaddr.js'

/** Where a connection is to lead. */
export interface Endpoint {
  /** Name or address; of an IPv6 address without its brackets. */
  readonly host: string
  readonly port: number
}

const SEPARATORS = /[\s,;]+/

type Rule = (endpoint: Endpoint) => boolean

/**
 * Reads what goes past a proxy, as `NO_PROXY` is written: `*`; a name, which holds for those below it, too, with or without
 * a dot or `*.` in front; the end of one, `*example.com`; an address, or the begin of one, `10.*`; a range such as
 * `10.0.0.0/8`. Each may end with `:port`. Names are compared as they are: nothing is looked up. What can't be read is
 * left out.
 */
export function parseNoProxy(entries: readonly string[]): Rule {
  const rules = entries.flatMap(entry => entry.split(SEPARATORS)).flatMap(entry => parseEntry(entry) ?? [])
  return endpoint => {
    const plain = { ...endpoint, host: cleanHost(endpoint.host) }
    return rules.some(rule => rule(plain))
  }
}

/** Whether something goes past a proxy by an entry, or by each of several in one text. */
export function isNoProxy(entry: string): boolean {
  const parts = entry.split(SEPARATORS).filter(Boolean)
  return parts.length > 0 && parts.every(part => parseEntry(part) !== undefined)
}

/** Whether it is this machine itself. */
export function isLoopback(host: string): boolean {
  const name = cleanHost(host)
  const address = readAddress(name)
  return address ? address.range() === 'loopback' : name === 'localhost' || name.endsWith('.localhost')
}

function parseEntry(entry: string): Rule | undefined {
  const [, name = '', port] = /^(\[[^\]]*\](?:\/\d+)?|[^:]*|[^:]*:[^:]*:.*?)(?::(\d+))?$/.exec(entry) ?? []
  // An IPv6 address without brackets has no port.
  const text = isIP(entry) ? entry : name
  const matches = parseHost(text.toLowerCase().replace(/[[\]]/g, ''))
  if (matches === undefined) return undefined
  const isThere = port === undefined || isIP(entry) ? () => true : (number: number) => number === Number(port)
  return endpoint => isThere(endpoint.port) && matches(endpoint.host)
}

function parseHost(text: string): ((host: string) => boolean) | undefined {
  if (text === '') return undefined
  if (text === '*') return () => true
  if (text.includes('/')) return parseRange(text)
  const wanted = readAddress(text)
  if (wanted) return host => readAddress(host)?.toString() === wanted.toString()
  const start = /^((?:\d{1,3}\.){1,3})\*$/.exec(text)?.[1]
  if (start) return host => readAddress(host)?.toString().startsWith(start) === true
  const isEnd = /^\*[^.]/.test(text)
  const name = domainToASCII(cleanHost(text.replace(/^\*?\.?/, '')))
  if (name === '' || name.includes('*')) return undefined
  return host => host === name || host.endsWith(isEnd ? name : `.${name}`)
}

function parseRange(text: string): ((host: string) => boolean) | undefined {
  if (!ipaddr.isValidCIDR(text)) return undefined
  const [network, bits] = ipaddr.parseCIDR(text)
  return host => {
    const address = readAddress(host)
    return (
      address !== undefined && address.kind() === network.kind() && address.match([network, bits] as never)
    )
  }
}

/** Undefined for a name. An IPv4 address inside an IPv6 one is taken for what it is. */
function readAddress(host: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  return isIP(host) ? ipaddr.process(host.replace(/%.*/, '')) : undefined
}

const cleanHost = (host: string): string => host.toLowerCase().replace(/^\[|\]$|\.$/g, '')
