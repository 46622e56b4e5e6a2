import type { Payload } from '../payload/index.ts'
import type { KeyFacts } from '../payload/object-key.ts'
import type { PictureOptions } from '../pictures/options.ts'
import { withRequestedOptions } from '../pictures/requested-options.ts'
import type { Wanted } from '../store/claims.ts'
import type { End } from '../store/objects.ts'
import type { PlannedFile } from '../store/uploads.ts'
import type { Uploader } from './app.ts'
import { type Destination, findDestination } from './destinations.ts'
import { expiresAt } from './expiry.ts'
import { assertType } from './input.ts'
import { assertFitsQuota } from './quota.ts'
import type { UploadRequest } from './request.ts'

/** An object that a file needs. */
export interface WantedAt extends Wanted {
  readonly at: Destination
}

/** One file with the objects that it needs: the first at its destination, the others at the mirrors, in their order. */
export interface Planned extends PlannedFile {
  readonly wanted: readonly WantedAt[]
  readonly payload: Payload
  readonly end: End
  readonly facts: KeyFacts
  readonly time: Date
  /** A file before it that needs the same objects. It is sent once for both. */
  readonly twin?: Planned
}

/** Values that all attempts at a request share. */
export interface Attempt {
  /** When the first one began, milliseconds since the epoch. It is the time in object keys. */
  readonly time: number
  /** The random parts of object keys are made from it. Undefined: a request without an `Idempotency-Key`. */
  readonly seed: string | undefined
}

/**
 * Turns a payload into what is stored: its image is changed as the destination and the request specify, and its object keys are
 * made. The payload is disposed of if another one replaces it.
 *
 * @param index of its input
 * @throws UploadError if the client may not upload it
 */
export async function plan(
  given: Payload,
  index: number,
  request: UploadRequest,
  attempt: Attempt,
  uploader: Uploader,
): Promise<Planned> {
  const { destination, caller, options = {} } = request
  request.accept?.(given)
  if (caller.types) assertType(given, caller.types)
  const changes = withRequestedOptions(destination.pictures, options)
  const payload = changes ? await change(given, changes, request, uploader) : given
  if (caller.quotas) assertFitsQuota(payload, caller.quotas)
  const seed = attempt.seed === undefined ? undefined : `${attempt.seed} ${index}`
  const user = caller.user ?? caller.name
  const file = {
    ...{ index, payload, size: payload.size },
    facts: { path: options.path, user, fitsType: caller.types !== undefined, seed },
    end: expiresAt(destination, options.expires, attempt.time) ?? null,
    time: new Date(attempt.time),
  }
  const wanted = [await wantedAt(destination, file)]
  for (const mirror of destination.mirrors)
    wanted.push(await wantedAt(findDestination(uploader.destinations, mirror.destination), file))
  return { ...file, wanted }
}

/** The object that a file needs at a destination. */
export async function wantedAt(
  at: Destination,
  { payload, end, facts, time }: Omit<Planned, 'wanted'>,
): Promise<WantedAt> {
  const { id, location, onConflict, isContentKey, dedupe } = at
  const key = await at.keyTemplate(payload, time, facts)
  return {
    ...{ at, destination: id, location, key, sha256: payload.sha256 },
    ...{ onConflict, isContentKey, dedupe, expiresAt: end },
  }
}

async function change(
  given: Payload,
  changes: PictureOptions,
  { destination, signal }: UploadRequest,
  { payloads, sources, spool }: Uploader,
): Promise<Payload> {
  const { changePicture } = await import('../pictures/change.ts')
  const changing = { payloads, spool: destination.spool ?? spool, fileSize: sources.fileSize }
  const payload = await changePicture(given, changes, changing, signal)
  if (payload !== given) await given.dispose()
  return payload
}
