import { UploadError } from '../errors.ts'
import { readDuration, readTime, showDuration } from '../times.ts'

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
function endOf(expires: Expires, now: number): number | undefined {
  if (expires === 'never') return undefined
  return 'at' in expires ? expires.at : now + expires.afterMs
}

/** A destination whose files may expire. */
interface Expiring {
  readonly id: string
  readonly expiry?: ExpiryRule | undefined
}

/** @throws UploadError if the destination does not allow this expiry, or the time has passed */
export function assertMayExpire(expires: Expires, { id, expiry }: Expiring, now: number): void {
  if (!expiry) {
    throw new UploadError(
      'expiry_forbidden',
      `Files at ${id} never expire: "expires" needs an "expiry" in its configuration, such as { "default": "never", "max": "90d" }.`,
    )
  }
  if (expires !== 'never' && 'at' in expires && expires.at <= now)
    throw new UploadError('invalid_request', '"expires" is in the past. Specify a later time, or omit it.')
  const until = endOf(expires, now)
  if (until === undefined && expiry.default === 'never') return
  if (expiry.max === undefined || (until !== undefined && until <= now + expiry.max)) return
  throw new UploadError(
    'expiry_forbidden',
    `The maximum "expires" at ${id} is ${showDuration(expiry.max)}. Set that or less.`,
  )
}

/** When a file that is uploaded now expires, milliseconds since the epoch. Undefined: never. */
export function expiresAt(
  { expiry }: Pick<Expiring, 'expiry'>,
  requested: Expires | undefined,
  now: number,
): number | undefined {
  if (!expiry) return undefined
  if (requested) return endOf(requested, now)
  const standard = expiry.default ?? expiry.max ?? 'never'
  return standard === 'never' ? undefined : now + standard
}
