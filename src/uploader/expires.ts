import { UploadError } from '../errors.ts'
import { readDuration, readTime } from '../times.ts'

/** When a file expires: never, a number of milliseconds after its upload, or at a time in milliseconds since the epoch. */
export type Expires = 'never' | { readonly afterMs: number } | { readonly at: number }

/** The expiry of a destination, in milliseconds. */
export interface ExpiryRule {
  /** Used if a request has no `expires`. Default: `max`. */
  readonly default?: number | 'never' | undefined
  /** Maximum that a request may set. */
  readonly max?: number | undefined
}

/**
 * Parses the value of `expires`.
 *
 * @param name name of the option, for messages
 * @throws UploadError `invalid_request`
 */
export function readExpires(text: string, name: string): Expires {
  if (text.toLowerCase() === 'never') return 'never'
  const afterMs = readDuration(text) || undefined
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
