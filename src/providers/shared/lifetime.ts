import * as z from '../../packages/zod.ts'
import { readDuration } from '../../times.ts'

/**
 * An option for how long a signed URL works, such as "90m" or "7d". It stays text, since vendors parse their options twice:
 * `secondsOf` reads it.
 *
 * @param leastS in seconds, as `mostS`
 */
export function lifetime(leastS: number, mostS: number) {
  const isInRange = (text: string) => {
    const seconds = secondsOf(text) ?? 0
    return seconds >= leastS && seconds <= mostS
  }
  return z.string().refine(isInRange, `must be a time such as "90m", "12h" or "7d", ${leastS} to ${mostS} s`)
}

/** @returns undefined for undefined */
export function secondsOf(text: string | undefined): number | undefined {
  const ms = readDuration(text ?? '')
  return ms === undefined ? undefined : ms / 1000
}

/**
 * A sentence when an option is set under its present and its deprecated name, to different values.
 *
 * @param value of the present name; undefined: not set
 */
export function findDisagreement<T extends string | number>(
  name: string,
  value: T | undefined,
  oldName: string,
  oldValue: T | undefined,
): string | undefined {
  if (value === undefined || oldValue === undefined || value === oldValue) return undefined
  return `"${oldName}" is the deprecated name of "${name}", and the two differ: remove "${oldName}".`
}
