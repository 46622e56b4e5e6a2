import { UploadError } from '../errors.ts'
import { showDuration } from '../times.ts'
import { type Destination, idOf } from './destinations.ts'
import { type Expires, endOf } from './expires.ts'

/** @throws UploadError if the destination does not allow this expiry, or the time has passed */
export function assertMayExpire(expires: Expires, destination: Destination, now: number): void {
  const { expiry } = destination
  const id = idOf(destination)
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
  { expiry }: Pick<Destination, 'expiry'>,
  requested: Expires | undefined,
  now: number,
): number | undefined {
  if (!expiry) return undefined
  if (requested) return endOf(requested, now)
  const standard = expiry.default ?? expiry.max ?? 'never'
  return standard === 'never' ? undefined : now + standard
}
