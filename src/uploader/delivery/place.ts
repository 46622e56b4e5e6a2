import { messageOf, UploadError } from '../../errors.ts'
import { orAborted } from '../../flow/cancellation.ts'
import { beginTimeLimit } from '../../flow/time-limit.ts'
import type { Payload } from '../../payload/index.ts'
import type { KeyFacts } from '../../payload/object-key.ts'
import type { Stored, UploadObject } from '../../providers/contract.ts'
import type { Copy, HistoryStore } from '../../store/contract.ts'
import type { Claims } from './claims.ts'
import { type DeliveryLimits, deliverWithin, timedOut } from './deliver.ts'
import { type Destination, idOf, type Mirror, splitId } from './destinations.ts'
import type { Hold } from './holds.ts'
import type { TakenKey } from './key-ring.ts'
import { linkAgain, linkTo } from './links.ts'
import { findSame, isSpelledOtherwise } from './same-bytes.ts'

/** Where a payload came to lie. */
export interface Placed {
  /** `provider/configName`; the fallback's when the destination failed. */
  readonly destination: string
  readonly key: string
  /** Absolute. */
  readonly url: string
  readonly deleteUrl?: string | undefined
  /** What became of the mirrors; undefined when there are none. */
  readonly mirrors?: readonly Copy[] | undefined
}

/** What the files of one request share. */
export interface PlaceRequest {
  /** Where relative URLs of providers start. */
  readonly baseUrl: string
  readonly signal: AbortSignal
  /** The time in keys: the same file twice gets the same one. */
  readonly now: Date
  /** What else goes into keys. */
  readonly facts?: KeyFacts
  /** What earlier attempts at the request have stored; undefined when it can't have any. */
  readonly claims: Claims | undefined
  readonly hold: Hold
  /** Gives back the keys of what was stored; to be called when nothing of the request is under way any more. */
  readonly releases: (() => void)[]
}

export interface PlaceDeps {
  readonly destinations: readonly Destination[]
  readonly limits: DeliveryLimits
  readonly history: Pick<HistoryStore, 'history'>
  /** Hides secrets. */
  mask(text: string): string
  /** A line for the operator. */
  warn(message: string, details: object): void
}

/** A file is not stored since its key is in use. Another destination would not make that good. */
class ConflictError extends UploadError {}

/**
 * Stores a payload at a destination, at its fallback when that fails, and at its mirrors.
 *
 * @throws UploadError of the destination when its fallback fails, too, or of a mirror that is required
 */
export async function place(
  payload: Payload,
  destination: Destination,
  request: PlaceRequest,
  deps: PlaceDeps,
): Promise<Placed> {
  let placed: Placed
  try {
    placed = await placeAt(payload, destination, request, deps)
  } catch (error) {
    placed = await placeAtFallback(payload, destination, error, request, deps)
  }
  if (destination.mirrors.length === 0) return placed
  // Each reads the payload to its end, also when another one has failed.
  const copies = await Promise.allSettled(
    destination.mirrors.map(mirror => placeAtMirror(payload, mirror, placed, request, deps)),
  )
  const mirrors = copies.map(copy => {
    if (copy.status === 'rejected') throw copy.reason
    return copy.value
  })
  return { ...placed, mirrors }
}

/** @throws UploadError when it is required and fails */
async function placeAtMirror(
  payload: Payload,
  { destination: id, required }: Mirror,
  placed: Placed,
  request: PlaceRequest,
  deps: PlaceDeps,
): Promise<Copy> {
  try {
    const { key, url } = await placeAt(payload, byId(deps.destinations, id), request, deps)
    return { destination: id, key, url }
  } catch (error) {
    request.signal.throwIfAborted()
    if (required) throw mirrorFailed(placed, id, error)
    const message = deps.mask(messageOf(error))
    deps.warn(`The mirror ${id} failed`, { destination: id, problem: message, key: placed.key })
    return { destination: id, error: message }
  }
}

/** @param error why the destination failed */
async function placeAtFallback(
  payload: Payload,
  destination: Destination,
  error: unknown,
  request: PlaceRequest,
  deps: PlaceDeps,
): Promise<Placed> {
  request.signal.throwIfAborted()
  if (destination.fallback === undefined || error instanceof ConflictError) throw error
  const id = destination.fallback
  const problem = messageOf(error)
  deps.warn(`${idOf(destination)} failed; its fallback ${id} is used`, {
    destination: idOf(destination),
    problem,
  })
  try {
    return await placeAt(payload, byId(deps.destinations, id), request, deps)
  } catch (second) {
    request.signal.throwIfAborted()
    throw bothFailed(error, second, id)
  }
}

/** Within `deliveryTimeoutMs`, whatever it waits for. */
async function placeAt(
  payload: Payload,
  destination: Destination,
  request: PlaceRequest,
  { limits: { timeoutMs, retries }, history }: PlaceDeps,
): Promise<Placed> {
  const id = idOf(destination)
  const { sha256, name: fileName } = payload
  const earlier = destination.hasNewKeys && request.claims?.keyOf({ destination: id, sha256, fileName })
  const wanted = earlier || (await destination.keyTemplate(payload, request.now, request.facts))
  const limit = beginTimeLimit(timeoutMs, request.signal, () => timedOut(destination, wanted, timeoutMs))
  const toPlaced = (key: string, stored: Stored): Placed => {
    const url = linkTo(destination, key, stored, request.baseUrl)
    return { destination: id, key, url, deleteUrl: stored.deleteUrl }
  }
  try {
    const hold = (key: string) => request.hold(id, key, payload.sha256, limit.signal)
    const finding = findSame(payload, wanted, destination, history, hold, limit.signal)
    const same = await orAborted(finding, limit.signal)
    if (same) {
      const url = await linkAgain(destination, same, request.baseUrl, limit.signal)
      return { destination: id, key: same.key, url, deleteUrl: same.deleteUrl }
    }
    const { keys } = destination
    const { key, stored } = await takeKey(destination, wanted, payload, request, history, limit.signal)
    if (stored && (await hold(key)) !== 'waited') {
      request.releases.push(() => keys.release(key))
      return toPlaced(key, stored)
    }
    let left: Promise<unknown> | undefined
    try {
      const delivered = await deliverWithin(limit, destination, toObject(payload, key), retries, put => {
        left = put
      })
      keys.settle(key, delivered)
      request.releases.push(() => keys.release(key))
      return toPlaced(key, delivered)
    } catch (error) {
      // Nobody may write to the key, nor may the payload go, while a put that was given up is at them.
      if (left) void outlast(left, [payload.hold(), () => keys.release(key)])
      else keys.release(key)
      throw error
    }
  } finally {
    limit.end()
  }
}

async function outlast(work: Promise<unknown>, ends: readonly (() => void)[]): Promise<void> {
  await work.catch(() => {})
  for (const end of ends) end()
}

/** What an earlier attempt at the same request has stored is no conflict. */
function takeKey(
  destination: Destination,
  wanted: string,
  { sha256, name: fileName }: Payload,
  { claims, hold }: PlaceRequest,
  history: PlaceDeps['history'],
  signal: AbortSignal,
): Promise<TakenKey> {
  const { target, onConflict, hasNewKeys, keys } = destination
  const id = idOf(destination)
  return keys.take(wanted, sha256, signal, async key => {
    if ((await hold(id, key, sha256, signal)) === 'taken') return true
    const claim = { destination: id, key, sha256, fileName }
    if (await isSpelledOtherwise(key, sha256, destination, history)) return true
    if (onConflict === 'replace') {
      if (hasNewKeys) await claims?.add(claim)
      return false
    }
    const looking = target.exists?.(key, signal)
    const isThere = looking && (await orAborted(looking, signal))
    if (!isThere || (await claims?.has(claim))) {
      await claims?.add(claim)
      return false
    }
    if (onConflict === 'rename') return true
    throw new ConflictError(
      'delivery_failed',
      `"${key}" is already at ${id}, and its onConflict is "error". Send it under another name.`,
    )
  })
}

function byId(destinations: readonly Destination[], id: string): Destination {
  const { type, name } = splitId(id)
  const found = destinations.find(one => one.type === type && one.name === name)
  if (!found) throw new Error(`the configuration has no destination ${id}`)
  return found
}

function bothFailed(first: unknown, second: unknown, fallback: string): unknown {
  if (!(first instanceof UploadError) || !(second instanceof Error)) return first
  const { code, cause, retryAfterS } = first
  return new UploadError(code, `${first.message} Its fallback ${fallback} failed, too: ${second.message}`, {
    cause: cause ?? second,
    ...(retryAfterS !== undefined && { retryAfterS }),
  })
}

function mirrorFailed({ destination, key }: Placed, mirror: string, error: unknown): UploadError {
  const reason = messageOf(error)
  const code = error instanceof UploadError ? error.code : 'delivery_failed'
  const message = `"${key}" was stored at ${destination}, but not at its required mirror ${mirror}: ${reason}`
  return new UploadError(code, message, { cause: error })
}

/** A payload with its key, as providers get it. */
export function toObject(payload: Payload, key: string): UploadObject {
  return {
    key,
    size: payload.size,
    contentType: payload.contentType,
    sha256: payload.sha256,
    path: payload.path,
    chunks: () => payload.chunks(),
    stream: () => payload.stream(),
    bytes: () => payload.bytes(),
  }
}
