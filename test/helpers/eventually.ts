import { vi } from 'vitest'

/** Repeats a check until it passes, for what no event tells. */
export function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: 15_000, interval: 20 })
}
