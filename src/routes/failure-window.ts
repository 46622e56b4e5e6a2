import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

const MAX_ADDRESSES = 10_000

export interface FailureWindow {
  /** Whole seconds until an address that may fail `maxFailures` times (0: no limit) may try again; 0 when it may now. */
  waitS(address: string, maxFailures: number): number
  /** @param windowMs how long it counts, when it is the first one */
  count(address: string, windowMs: number): void
}

/**
 * Limits wrong keys by address: after `maxFailures` it waits until the window that its first one opened is over. A right
 * key in between forgives nothing, or the owner of one key could guess the others.
 */
export function createFailureWindow(now: () => number): FailureWindow {
  // In the order in which the windows were opened, so the first entry is the oldest.
  const windows = new Map<string, { failures: number; endsAt: number }>()

  function currentWindow(address: string) {
    const window = windows.get(address)
    return window !== undefined && window.endsAt > now() ? window : undefined
  }

  function openWindow(address: string, windowMs: number) {
    windows.delete(address)
    const [oldest] = windows.keys()
    if (oldest !== undefined && windows.size >= MAX_ADDRESSES) windows.delete(oldest)
    windows.set(address, { failures: 1, endsAt: now() + windowMs })
  }

  return {
    waitS(address, maxFailures) {
      const window = maxFailures === 0 ? undefined : currentWindow(groupAddress(address))
      if (window === undefined || window.failures < maxFailures) return 0
      return Math.ceil((window.endsAt - now()) / 1000)
    },
    count(address, windowMs) {
      const group = groupAddress(address)
      const window = currentWindow(group)
      if (window === undefined) openWindow(group, windowMs)
      else window.failures++
    },
  }
}

/** What counts as one client: an IPv4 address in any spelling, or the /64 network that one IPv6 user owns. */
export function groupAddress(address: string): string {
  if (isIP(address) === 0) return address.slice(0, 64)
  const parsed = ipaddr.process(address)
  if (parsed instanceof ipaddr.IPv4) return parsed.toString()
  return `${new ipaddr.IPv6([...parsed.parts.slice(0, 4), 0, 0, 0, 0])}/64`
}
