import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'

/** IP addresses that a client may make the server connect to, in addition to public ones of other machines. */
export type AddressScope = 'public' | 'private' | 'any'

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** Ranges that do not identify a single host. */
const UNDIALABLE: ReadonlySet<string> = new Set(['unspecified', 'multicast', 'broadcast'])

/** Ranges that a local client can reach anyway. Link-local is excluded, because cloud metadata services use it. */
const LOCAL: ReadonlySet<string> = new Set(['loopback', 'private', 'uniqueLocal'])

/** Cloud instance metadata services outside of link-local: Azure, AWS and Google Cloud. */
const METADATA: ReadonlySet<string> = new Set(['168.63.129.16', 'fd00:ec2::254', 'fd20:ce::254'])

/** The only block of global unicast IPv6 addresses (RFC 4291, 2.4). */
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR('2000::/3')

/** IPv6 blocks that contain an IPv4 address, and the byte where it begins. Teredo contains two and stays blocked. */
const TRANSLATED: readonly [block: [ipaddr.IPv6, number], start: number][] = [
  [ipaddr.IPv6.parseCIDR('::ffff:0:0/96'), 12], // RFC 4291, mapped
  [ipaddr.IPv6.parseCIDR('::ffff:0:0:0/96'), 12], // RFC 7915, SIIT
  [ipaddr.IPv6.parseCIDR('64:ff9b::/96'), 12], // RFC 6052, NAT64
  [ipaddr.IPv6.parseCIDR('2002::/16'), 2], // RFC 3056, 6to4
]

/**
 * Returns a check of whether an IP address, as text, may be connected to. Any other text is rejected.
 *
 * @param allowed `public`: globally routable ones of other machines; `private`: also this machine's, loopback, RFC 1918
 *   and unique local ones, but not link-local; `any`: all that name a single host
 */
export function allowAddresses(allowed: AddressScope): (address: string) => boolean {
  const own = allowed === 'public' ? listOwnAddresses() : []
  return address => {
    if (isIP(address) === 0) return false
    const dialled = translate(ipaddr.parse(address.replace(/%.*/, '')))
    const range = dialled.range()
    if (UNDIALABLE.has(range)) return false
    if (allowed === 'any') return true
    if (METADATA.has(dialled.toString()) || own.includes(dialled.toString())) return false
    if (range === 'unicast') return dialled.kind() === 'ipv4' || dialled.match(GLOBAL_IPV6)
    return allowed === 'private' && LOCAL.has(range)
  }
}

/** Whether a URL is at one of these hosts, which have a port or stand for all of their ports. */
export function isAt(hosts: readonly string[], { host, hostname }: URL): boolean {
  return hosts.includes(host) || hosts.includes(hostname)
}

/** A machine can reach itself under its public addresses, past a firewall that blocks everyone else. */
function listOwnAddresses(): string[] {
  try {
    const interfaces = Object.values(networkInterfaces()).flatMap(addresses => addresses ?? [])
    return interfaces.map(({ address }) => ipaddr.parse(address.replace(/%.*/, '')).toString())
  } catch {
    return [] // a sandbox without netlink can't list them
  }
}

/** Returns the IPv4 address inside a translated IPv6 address, and any other address unchanged. */
function translate(address: Address): Address {
  if (address.kind() === 'ipv4') return address
  const translated = TRANSLATED.find(([block]) => address.match(block))
  if (!translated) return address
  const [, start] = translated
  return new ipaddr.IPv4(address.toByteArray().slice(start, start + 4))
}
