import type { Payload } from '../payload/index.ts'
import type { KeyFacts } from '../payload/object-key.ts'
import type { PictureOptions } from '../pictures/options.ts'
import { withRequestedOptions } from '../pictures/requested-options.ts'
import type { Wanted } from '../store/claims.ts'
import type { End } from '../store/objects.ts'
import type { PlannedFile } from '../store/uploads.ts'
import type { UploaderDeps } from './app.ts'
import { type Destination, findDestination, idOf } from './destinations.ts'
import { expiresAt } from './expiry.ts'
import { assertType, keptOrigin } from './input.ts'
import { assertFitsQuota } from './quota.ts'
import { spoolFor, type UploadRequest } from './request.ts'

/** One file with the objects that it needs: the first at its destination, the others at the mirrors, in their order. */
export interface Planned extends PlannedFile {
  /** As it is saved. */
  readonly origin: string
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
  { request, attempt, deps }: { request: UploadRequest; attempt: Attempt; deps: UploaderDeps },
): Promise<Planned> {
  const { destination, caller, inputs, options = {} } = request
  request.accept?.(given)
  assertType(given, caller)
  const changes = withRequestedOptions(destination.pictures, options)
  const payload = changes ? await change(given, changes, request, deps) : given
  assertFitsQuota(payload.size, payload.name, caller.quotas)
  const seed = attempt.seed === undefined ? undefined : `${attempt.seed} ${index}`
  const user = caller.user ?? caller.name
  const file: Omit<Planned, 'wanted'> = {
    ...{ index, payload, size: payload.size, origin: keptOrigin(inputs[index]?.origin ?? '') },
    facts: { path: options.path, user, fitsType: caller.types !== undefined, seed },
    end: expiresAt(destination, options.expires, attempt.time) ?? null,
    time: new Date(attempt.time),
  }
  const mirrors = destination.mirrors.map(mirror => findDestination(deps.destinations, mirror.destination))
  const wanted: Wanted[] = []
  for (const one of [destination, ...mirrors]) wanted.push(await wantedAt(one, file))
  return { ...file, wanted }
}

/** The object that a file needs at a destination. */
export async function wantedAt(
  destination: Destination,
  { payload, end, facts, time }: Omit<Planned, 'wanted'>,
): Promise<Wanted> {
  const { location, onConflict, isContentKey, dedupe } = destination
  const key = await destination.keyTemplate(payload, time, facts)
  return {
    ...{ destination: idOf(destination), location, key, sha256: payload.sha256 },
    ...{ onConflict, isContentKey, dedupe, expiresAt: end },
  }
}

async function change(
  given: Payload,
  changes: PictureOptions,
  { destination, signal }: UploadRequest,
  deps: UploaderDeps,
): Promise<Payload> {
  const { changePicture } = await import('../pictures/change.ts')
  const { payloads, sources } = deps
  const changing = { payloads, spool: spoolFor(destination, deps), fileSize: sources.fileSize }
  const payload = await changePicture(given, changes, changing, signal)
  if (payload !== given) await given.dispose()
  return payload
}
