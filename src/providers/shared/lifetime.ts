import * as z from '../../packages/zod.ts'
import { readDuration } from '../../times.ts'

/**
 * Option for the lifetime of a signed URL, such as "90m" or "7d". `secondsOf` reads it.
 *
 * @param minS shortest lifetime, in seconds
 */
export function lifetime(minS: number, maxS: number) {
  const isInRange = (text: string) => {
    const seconds = secondsOf(text) ?? 0
    return seconds >= minS && seconds <= maxS
  }
  return z.string().refine(isInRange, `must be a time such as "90m", "12h" or "7d", ${minS} to ${maxS} s`)
}

/** Returns a duration in seconds. Undefined for undefined. */
export function secondsOf(text: string | undefined): number | undefined {
  const ms = readDuration(text ?? '')
  return ms === undefined ? undefined : ms / 1000
}
