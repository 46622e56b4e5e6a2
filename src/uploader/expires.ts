import { UploadError } from '../errors.ts'
import { readDuration, readTime } from '../times.ts'

/** When a file is to go: never, so many milliseconds after it came, or at a time in milliseconds since the epoch. */
export type Expires = 'never' | { readonly afterMs: number } | { readonly at: number }

/** The expiry of a destination, in milliseconds. */
export interface ExpiryRule {
  /** What holds when a request says nothing. Default: `max`. */
  readonly default?: number | 'never' | undefined
  /** What a request may ask for at most. */
  readonly max?: number | undefined
}

/**
 * Reads what a request asks for.
 *
 * @param name what the option is called, for messages
 * @throws UploadError `invalid_request`
 */
export function readExpires(text: string, name: string): Expires {
  if (text.toLowerCase() === 'never') return 'never'
  const afterMs = readDuration(text)
  if (afterMs !== undefined) return { afterMs }
  const at = readTime(text)
  if (at !== undefined) return { at }
  throw new UploadError(
    'invalid_request',
    `"${name}" must be "never", a duration such as 90m, 12h or 14d, or an RFC 3339 timestamp such as 2027-01-31T18:00:00Z.`,
  )
}

/** Milliseconds since the epoch; undefined: never. */
export function endOf(expires: Expires, now: number): number | undefined {
  if (expires === 'never') return undefined
  return 'at' in expires ? expires.at : now + expires.afterMs
}
