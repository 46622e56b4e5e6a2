import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

const MAX_ADDRESSES = 10_000
/** Length of the window that the first failure opens. */
const WINDOW_MS = 60_000

export interface FailureWindow {
  /** Whole seconds until an IP address may try again, or 0 if it may now. `maxFailures` 0 disables the limit. */
  waitS(address: string, maxFailures: number): number
  count(address: string): void
}

/**
 * Rate limit of failed attempts per IP address. After `maxFailures`, the address is blocked until the window that its first
 * failure opened has passed. A valid key doesn't reset the count, because its owner could then guess other keys.
 */
export function createFailureWindow(now: () => number): FailureWindow {
  // Windows are inserted when they are opened, so the first entry is the oldest.
  const windows = new Map<string, { failures: number; endsAt: number }>()

  function currentWindow(address: string) {
    const window = windows.get(address)
    return window !== undefined && window.endsAt > now() ? window : undefined
  }

  function openWindow(address: string) {
    windows.delete(address)
    const [oldest] = windows.keys()
    if (oldest !== undefined && windows.size >= MAX_ADDRESSES) windows.delete(oldest)
    windows.set(address, { failures: 1, endsAt: now() + WINDOW_MS })
  }

  return {
    waitS(address, maxFailures) {
      const window = maxFailures === 0 ? undefined : currentWindow(groupAddress(address))
      if (window === undefined || window.failures < maxFailures) return 0
      return Math.ceil((window.endsAt - now()) / 1000)
    },
    count(address) {
      const group = groupAddress(address)
      const window = currentWindow(group)
      if (window === undefined) openWindow(group)
      else window.failures++
    },
  }
}

/** The group an IP address is counted in: the IPv4 address in any spelling, or the /64 network of an IPv6 address. */
export function groupAddress(address: string): string {
  if (isIP(address) === 0) return address.slice(0, 64)
  const parsed = ipaddr.process(address)
  if (parsed instanceof ipaddr.IPv4) return parsed.toString()
  return `${new ipaddr.IPv6([...parsed.parts.slice(0, 4), 0, 0, 0, 0])}/64`
}
