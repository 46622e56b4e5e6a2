import { UploadError } from '../../errors.ts'
import type { HistoryEntry, Store } from '../../store/contract.ts'
import { showDuration } from '../../times.ts'
import { type Expires, endOf } from '../expires.ts'
import { type Destination, idOf } from './destinations.ts'

/** @throws UploadError if the destination does not allow this expiry, or the time has passed */
export function assertMayExpire(expires: Expires, destination: Destination, now: number): void {
  const { expiry } = destination
  const id = idOf(destination)
  if (!expiry) {
    throw new UploadError(
      'expiry_not_allowed',
      `Files at ${id} never expire: "expires" needs an "expiry" in its configuration, such as { "default": "never", "max": "90d" }.`,
    )
  }
  if (expires !== 'never' && 'at' in expires && expires.at <= now)
    throw new UploadError('invalid_request', '"expires" is in the past. Specify a later time, or omit it.')
  const until = endOf(expires, now)
  if (until === undefined && expiry.default === 'never') return
  if (expiry.max === undefined || (until !== undefined && until <= now + expiry.max)) return
  throw new UploadError(
    'expiry_not_allowed',
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

/** Entries with their current expiry. A later upload of the same object may have extended it. */
export async function withEnds(
  store: Pick<Store, 'promised'>,
  entries: readonly HistoryEntry[],
): Promise<HistoryEntry[]> {
  const ending = entries.filter(one => one.expiresAt !== undefined && one.removedAt === undefined)
  if (ending.length === 0) return [...entries]
  const objects = ending.map(({ destination, key, location = `${destination}/` }) => ({
    object: location + key,
    aliases: [{ destination, key }],
  }))
  const promised = await store.promised(objects)
  const ends = new Map(ending.map((entry, index) => [entry, promised[index]]))
  return entries.map(entry => {
    const end = ends.get(entry)
    return end === undefined ? entry : { ...entry, expiresAt: end === 'never' ? undefined : end }
  })
}
