import { UploadError } from '../../errors.ts'
import { type Expires, endOf, showDuration } from '../expires.ts'
import { type Destination, idOf } from './destinations.ts'

/** @throws UploadError for what a destination doesn't grant, or for a time that has passed */
export function assertMayExpire(expires: Expires, destination: Destination, now: number): void {
  const { expiry } = destination
  const id = idOf(destination)
  if (!expiry) {
    throw new UploadError(
      'expiry_not_allowed',
      `Files at ${id} stay: "expires" needs an "expiry" in its configuration, such as { "most": "90d" }.`,
    )
  }
  if (expires !== 'never' && 'at' in expires && expires.at <= now)
    throw new UploadError(
      'invalid_request',
      '"expires" is in the past. Name a time to come, or leave it out.',
    )
  const until = endOf(expires, now)
  if (expiry.most === undefined || (until !== undefined && until <= now + expiry.most)) return
  throw new UploadError(
    'expiry_not_allowed',
    `Files stay at ${id} for ${showDuration(expiry.most)} at most. Ask for that with "expires", or for less.`,
  )
}

/** When a file that comes now may go, milliseconds since the epoch; undefined: never. */
export function expiresAt(
  { expiry }: Pick<Destination, 'expiry'>,
  wish: Expires | undefined,
  now: number,
): number | undefined {
  if (!expiry) return undefined
  if (wish) return endOf(wish, now)
  const standard = expiry.default ?? expiry.most ?? 'never'
  return standard === 'never' ? undefined : now + standard
}
