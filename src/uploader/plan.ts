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
}

/** What all attempts at a request share. */
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
 * @throws UploadError if the client may not upload it
 */
export async function plan(
  given: Payload,
  index: number,
  request: UploadRequest,
  attempt: Attempt,
  deps: UploaderDeps,
): Promise<Planned> {
  const { destination, caller, options = {}, signal } = request
  request.accept?.(given)
  assertType(given, caller)
  const changes = withRequestedOptions(destination.pictures, options)
  const payload = changes ? await change(given, changes, destination, deps, signal) : given
  assertFitsQuota(payload.size, payload.name, caller.quotas)
  const time = new Date(attempt.time)
  const seed = attempt.seed === undefined ? undefined : `${attempt.seed} ${index}`
  const user = caller.user ?? caller.name
  const facts = { path: options.path, user, fitsType: caller.types !== undefined, seed }
  const end = expiresAt(destination, options.expires, attempt.time) ?? null
  const planned = {
    ...{ index, origin: keptOrigin(request.inputs[index]?.origin ?? ''), size: payload.size },
    ...{ payload, end, facts, time },
  }
  const mirrors = destination.mirrors.map(mirror => findDestination(deps.destinations, mirror.destination))
  const wanted: Wanted[] = []
  for (const one of [destination, ...mirrors]) wanted.push(await wantedAt(one, planned))
  return { ...planned, wanted }
}

/** The object that a file needs at a destination. */
export async function wantedAt(
  destination: Destination,
  { payload, end, facts, time }: Pick<Planned, 'payload' | 'end' | 'facts' | 'time'>,
): Promise<Wanted> {
  const { location, onConflict, isContentKey, dedupe } = destination
  const key = await destination.keyTemplate(payload, time, facts)
  return {
    ...{ destination: idOf(destination), location, key, sha256: payload.sha256 },
    ...{ onConflict, isContentKey, dedupe, expiresAt: end },
  }
}

async function change(
  payload: Payload,
  options: PictureOptions,
  destination: Destination,
  deps: UploaderDeps,
  signal: AbortSignal,
): Promise<Payload> {
  const { changePicture } = await import('../pictures/change.ts')
  const { payloads, sources } = deps
  const changing = { payloads, spool: spoolFor(destination, deps), fileSize: sources.fileSize }
  const changed = await changePicture(payload, options, changing, signal)
  if (changed !== payload) await payload.dispose()
  return changed
}
