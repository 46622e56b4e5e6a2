import { BlockList, isIP } from 'node:net'

/** An IP address, or a CIDR range of them. */
export interface IpRange {
  readonly address: string
  readonly family: 'ipv4' | 'ipv6'
  readonly bits: number
  /** Whether it is one address. */
  readonly isSingle: boolean
}

/** Reads an IP address or a CIDR range. Undefined for anything else, and for an address with a zone ID. */
export function parseRange(text: string): IpRange | undefined {
  const [, address = '', length] = /^([^/%]*)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const family = familyOf(address)
  const most = family === 'ipv4' ? 32 : 128
  const bits = Number(length ?? most)
  return family && bits <= most ? { address, family, bits, isSingle: bits === most } : undefined
}

function familyOf(address: string): IpRange['family'] | undefined {
  const version = isIP(address)
  return version === 0 ? undefined : version === 4 ? 'ipv4' : 'ipv6'
}

/**
 * Returns a check of whether a text is an IP address in one of the ranges, with or without a zone ID. An IPv4 address is the
 * same when it is mapped into IPv6.
 */
export function inRanges(ranges: readonly IpRange[]): (text: string) => boolean {
  const list = new BlockList()
  for (const { address, bits, family } of ranges) list.addSubnet(address, bits, family)
  return text => {
    const address = text.replace(/%.*/, '')
    const family = familyOf(address)
    return family !== undefined && list.check(address, family)
  }
}

const isInLoopback = inRanges(['127.0.0.0/8', '::1'].flatMap(text => parseRange(text) ?? []))

/** True for 127.0.0.0/8, also when mapped into IPv6, and ::1, in any spelling a socket may report. */
export function isLoopbackAddress(address: string | undefined): boolean {
  if (address === '127.0.0.1' || address === '::1') return true
  return address !== undefined && isInLoopback(address)
}
