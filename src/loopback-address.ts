import { BlockList, isIP, isIPv6 } from 'node:net'

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8)
LOOPBACK.addAddress('::1', 'ipv6')

/** True for 127.0.0.0/8, also when mapped into IPv6, and ::1, in any spelling a socket may report. */
export function isLoopbackAddress(address: string | undefined): boolean {
  if (address === '127.0.0.1' || address === '::1') return true
  if (address === undefined || isIP(address) === 0) return false
  return LOOPBACK.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
}
