import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf, UploadError } from '../errors.ts'
import type { Claim, Wanted } from '../store/claims.ts'
import type { Copy, StoredFile } from '../store/contract.ts'
import { claimMore, finishLate } from '../store/uploads.ts'
import { findDestination, type Mirror } from './destinations.ts'
import { type Planned, wantedAt } from './plan.ts'
import { ConflictError, type Delivery, deliverTo, later, type Part, release } from './store-at.ts'

/** How long a response waits for mirrors that are not required. Later ones are only in the history. */
const MIRROR_GRACE_MS = 2000
const PENDING = 'It is not stored there yet. The upload did not wait for it.'
const ASK_AGAIN: Claim = { is: 'wait' }

/**
 * Delivers a file to its destination, or to its fallback if the destination fails, and to its mirrors at the same time.
 *
 * @throws UploadError if the destination and its fallback fail, or a required mirror does
 */
export async function deliver(
  file: Planned,
  claims: ReadonlyMap<Wanted, Claim>,
  delivery: Delivery,
): Promise<StoredFile> {
  delivery.signal.throwIfAborted()
  const [wanted, ...copies] = file.wanted
  if (!wanted) throw new Error('the file has no destination')
  const first: Part = { file, wanted, claim: claims.get(wanted) ?? ASK_AGAIN, role: 'destination' }
  const storing = deliverTo(first, delivery).catch(error => deliverToFallback(first, error, delivery))
  if (copies.length === 0) return storing
  const parts = copies.map(
    (copy): Part => ({ file, wanted: copy, claim: claims.get(copy) ?? ASK_AGAIN, role: 'mirror' }),
  )
  return copyToMirrors(storing, parts, wanted.at.mirrors, delivery)
}

/** @param storing the file at its destination */
async function copyToMirrors(
  storing: Promise<StoredFile>,
  copies: readonly Part[],
  mirrors: readonly Mirror[],
  delivery: Delivery,
): Promise<StoredFile> {
  const { deps, upload, others } = delivery
  storing.catch(() => {}) // it is looked at below
  const copying = copies.map((copy, n) => {
    const isRequired = mirrors[n]?.required === true
    const storing = storeAtMirror(copy, isRequired, delivery)
    storing.catch(() => {})
    return { id: copy.wanted.destination, isRequired, storing }
  })
  /** A copy that is not part of the outcome is written to the history when it is stored. */
  const leave = (copy: Promise<StoredFile>) =>
    later(delivery, async () => finishLate(deps.database, upload, await copy, []))
  const required = copying.filter(({ isRequired }) => isRequired).map(one => one.storing)
  await Promise.allSettled([storing, ...required])
  try {
    const stored = await storing
    await Promise.all(required).catch(error => {
      others.push(stored)
      throw error
    })
    const late = sleep(MIRROR_GRACE_MS, PENDING, { ref: false })
    const results = copying.map(async ({ id, storing: copy }): Promise<Copy> => {
      const result = await Promise.race([copy, late]).catch((error: unknown) => messageOf(error))
      if (result === PENDING) leave(copy)
      if (typeof result === 'string') return { destination: id, error: deps.mask(result) }
      const { key, url, location } = result
      return { destination: id, key, url, location }
    })
    return { ...stored, mirrors: await Promise.all(results) }
  } catch (error) {
    for (const one of copying) leave(one.storing)
    throw error
  }
}

/** @param error why the destination failed */
async function deliverToFallback(
  { file, wanted: { at } }: Part,
  error: unknown,
  delivery: Delivery,
): Promise<StoredFile> {
  const { deps, claimant, signal } = delivery
  const { fallback: id } = at
  const isOver = deps.ending.aborted || error instanceof ConflictError || error === signal.reason
  if (id === undefined || isOver) throw error
  deps.warn(`${at.id} failed; its fallback ${id} is used`, {
    destination: at.id,
    problem: deps.mask(messageOf(error)),
  })
  try {
    const wanted = await wantedAt(findDestination(deps.destinations, id), file)
    const claim = await claimMore(deps.database, claimant, wanted)
    return await deliverTo({ file, wanted, claim, role: 'fallback' }, delivery)
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
async function storeAtMirror(copy: Part, isRequired: boolean, delivery: Delivery): Promise<StoredFile> {
  const { deps, open, upload } = delivery
  const { claim, file } = copy
  const id = copy.wanted.destination
  const dispose = file.payload.hold()
  let hasBegun = false
  // Its object stays claimed if the upload does not wait for it.
  if (claim.is === 'mine') open.add(claim.name)
  try {
    return await deps.slots.of(id).run(() => {
      hasBegun = true
      return deliverTo(copy, delivery)
    }, deps.ending)
  } catch (error) {
    if (!hasBegun && claim.is === 'mine') release(delivery, claim.name)
    if (isRequired) throw mirrorFailed(copy, error)
    const problem = deps.mask(messageOf(error))
    deps.warn(`Could not store a copy at the mirror ${id}`, {
      ...{ destination: id, problem, requestId: upload.requestId },
    })
    throw error
  } finally {
    dispose()
  }
}

function mirrorFailed({ file, wanted }: Part, error: unknown): UploadError {
  const [first] = file.wanted
  const code = error instanceof UploadError ? error.code : 'destination_failed'
  const message = `"${first?.key}" was not stored at ${wanted.destination}, the required mirror of ${first?.destination}: ${messageOf(error)}`
  return new UploadError(code, message, { cause: error })
}
