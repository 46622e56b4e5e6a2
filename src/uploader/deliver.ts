import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf, UploadError } from '../errors.ts'
import type { Claim, Wanted } from '../store/claims.ts'
import type { Copy, StoredFile } from '../store/contract.ts'
import { claimMore, finishLate } from '../store/uploads.ts'
import type { UploaderDeps } from './app.ts'
import { type Destination, findDestination, idOf, type Mirror } from './destinations.ts'
import { type Planned, wantedAt } from './plan.ts'
import { ConflictError, type Delivery, deliverTo, type FileAt } from './store-at.ts'

/** How long a response waits for mirrors that are not required. Later ones are only in the history. */
const MIRROR_GRACE_MS = 2000

/**
 * Delivers a file to its destination, or to its fallback if the destination fails, and to its mirrors at the same time.
 *
 * @param claims for its destination and each mirror, in order
 * @throws UploadError if the destination and its fallback fail, or a required mirror does
 */
export async function deliver(
  planned: Planned,
  claims: readonly Claim[],
  destination: Destination,
  delivery: Delivery,
  deps: UploaderDeps,
): Promise<StoredFile> {
  delivery.signal.throwIfAborted()
  const storing = () => deliverToPrimary(planned, claims[0] as Claim, destination, delivery, deps)
  if (destination.mirrors.length === 0) return storing()
  return deliverWithMirrors(planned, claims, destination, storing, delivery, deps)
}

/** @param begin delivers the file to the destination itself */
async function deliverWithMirrors(
  planned: Planned,
  claims: readonly Claim[],
  destination: Destination,
  begin: () => Promise<StoredFile>,
  delivery: Delivery,
  deps: UploaderDeps,
): Promise<StoredFile> {
  const copying = destination.mirrors.map((mirror, n) => ({
    mirror,
    // There is a claim for each mirror, after that of the destination.
    storing: storeAtMirror(planned, n + 1, claims[n + 1] as Claim, mirror, delivery, deps),
  }))
  const storing = begin()
  for (const { storing: copy } of copying) copy.catch(() => {}) // it is looked at below
  /** A copy that is not part of the outcome is written to the history when it is stored. */
  const leave = (copy: Promise<FileAt>) =>
    delivery.later(async () => finishLate(deps.database, delivery.upload, await copy, []))
  const required = copying.filter(({ mirror }) => mirror.required).map(one => one.storing)
  await Promise.allSettled([storing, ...required])
  try {
    const stored = await storing
    await Promise.all(required).catch(error => {
      delivery.others.push(stored)
      throw error
    })
    const late = sleep(MIRROR_GRACE_MS, PENDING, { ref: false })
    const mirrors = copying.map(async ({ mirror: { destination: id }, storing: copy }): Promise<Copy> => {
      const result = await Promise.race([copy, late]).catch((error: unknown) => messageOf(error))
      if (result === PENDING) leave(copy)
      if (typeof result === 'string') return { destination: id, error: deps.mask(result) }
      const { key, url, location, expiresAt } = result
      return { destination: id, key, url, location, ...(expiresAt !== undefined && { expiresAt }) }
    })
    return { ...stored, mirrors: await Promise.all(mirrors) }
  } catch (error) {
    for (const one of copying) leave(one.storing)
    throw error
  }
}

const PENDING = 'It is not stored there yet. The upload did not wait for it.'

async function deliverToPrimary(
  planned: Planned,
  claim: Claim,
  destination: Destination,
  delivery: Delivery,
  deps: UploaderDeps,
): Promise<StoredFile> {
  const wanted = planned.wanted[0] as Wanted
  try {
    return await deliverTo(destination, planned, wanted, claim, delivery, deps)
  } catch (error) {
    return deliverToFallback(planned, destination, error, delivery, deps)
  }
}

/** @param error why the destination failed */
async function deliverToFallback(
  planned: Planned,
  destination: Destination,
  error: unknown,
  delivery: Delivery,
  deps: UploaderDeps,
): Promise<StoredFile> {
  const { fallback: id } = destination
  if (id === undefined || error instanceof ConflictError || deps.ending.aborted) throw error
  deps.warn(`${idOf(destination)} failed; its fallback ${id} is used`, {
    destination: idOf(destination),
    problem: deps.mask(messageOf(error)),
  })
  const fallback = findDestination(deps.destinations, id)
  try {
    const wanted = await wantedAt(fallback, planned)
    const claim = await claimMore(deps.database, delivery.claimant, wanted)
    const stored = await deliverTo(fallback, planned, wanted, claim, delivery, deps)
    return stored
  } catch (second) {
    throw bothFailed(error, second, id)
  }
}

function bothFailed(first: unknown, second: unknown, fallback: string): unknown {
  if (!(first instanceof UploadError) || !(second instanceof Error)) return first
  const { code, cause, retryAfterS } = first
  return new UploadError(code, `${first.message} Its fallback ${fallback} also failed: ${second.message}`, {
    cause: cause ?? second,
    ...(retryAfterS !== undefined && { retryAfterS }),
  })
}

/**
 * A mirror has slots and a time limit of its own.
 *
 * @throws UploadError
 */
async function storeAtMirror(
  planned: Planned,
  n: number,
  claim: Claim,
  { destination: id, required }: Mirror,
  delivery: Delivery,
  deps: UploaderDeps,
): Promise<FileAt> {
  const mirror = findDestination(deps.destinations, id)
  const wanted = planned.wanted[n] as Wanted
  const dispose = planned.payload.hold()
  let hasBegun = false
  const store = () => {
    hasBegun = true
    return deliverTo(mirror, planned, wanted, claim, delivery, deps)
  }
  // Its object stays claimed if the upload does not wait for it.
  if (claim.is === 'mine') delivery.open.add(claim.name)
  try {
    return await deps.slots.of(id).run(store, deps.ending)
  } catch (error) {
    if (!hasBegun && claim.is === 'mine') delivery.release(claim.name)
    if (required) throw mirrorFailed(planned, id, error)
    const problem = deps.mask(messageOf(error))
    deps.warn(`Could not store a copy at the mirror ${id}`, {
      destination: id,
      problem,
      requestId: delivery.upload.requestId,
    })
    throw error
  } finally {
    dispose()
  }
}

function mirrorFailed({ wanted }: Planned, mirror: string, error: unknown): UploadError {
  const reason = messageOf(error)
  const code = error instanceof UploadError ? error.code : 'destination_failed'
  const { key, destination } = wanted[0] as Wanted
  const message = `"${key}" was not stored at ${mirror}, the required mirror of ${destination}: ${reason}`
  return new UploadError(code, message, { cause: error })
}
