import { messageOf, UploadError } from '../../errors.ts'
import { orAborted } from '../../flow/cancellation.ts'
import { beginTimeLimit } from '../../flow/time-limit.ts'
import type { Payload } from '../../payload/index.ts'
import type { KeyFacts } from '../../payload/object-key.ts'
import type { UploadObject } from '../../providers/contract.ts'
import type { Copy, Store } from '../../store/contract.ts'
import { type End, identify, laterEnd, type ObjectId, type Places } from '../../store/expiry-contract.ts'
import { type DeliveryLimits, deliverWithin, timedOut } from './deliver.ts'
import { type Destination, idOf, type Mirror, splitId } from './destinations.ts'
import { linkAgain, linkTo } from './links.ts'
import { createLocks, type Locker } from './locker.ts'
import { findSame } from './same-bytes.ts'
import { ConflictError, type KeyRequest, type TakenKey, takeKey } from './take-key.ts'

/** Where a payload came to lie. */
export interface Placed {
  /** `provider/configName`; the fallback's when the destination failed. */
  readonly destination: string
  readonly key: string
  /** Absolute. */
  readonly url: string
  readonly deleteUrl?: string | undefined
  /** Place of the destination, up to where the key begins. */
  readonly place: string
  /** Until when it stays. */
  readonly end: End
  /** What became of the mirrors; undefined when there are none. */
  readonly mirrors?: readonly Copy[] | undefined
}

/** What the files of one request share. */
export interface PlaceRequest extends KeyRequest {
  /** Where relative URLs of providers start. */
  readonly baseUrl: string
  readonly signal: AbortSignal
  /** The time in keys: the same file twice gets the same one. */
  readonly now: Date
  /** What else goes into keys. */
  readonly facts?: KeyFacts
  /** Locks objects of a destination until the request is over. */
  lockerOf(destination: Destination): Locker
}

export interface PlaceDeps {
  readonly destinations: readonly Destination[]
  readonly places: Places
  readonly limits: DeliveryLimits
  readonly store: Pick<Store, 'history' | 'promised'>
  /** Hides secrets. */
  mask(text: string): string
  /** A line for the operator. */
  warn(message: string, details: object): void
}

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
    const { key, url, place, end } = await placeAt(payload, byId(deps.destinations, id), request, deps)
    // Copies go with what they are copies of, unless they are promised for longer.
    return { destination: id, key, url, place, ...expiring(laterEnd(placed.end, end) ?? end) }
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
  { limits: { timeoutMs, retries }, store, places }: PlaceDeps,
): Promise<Placed> {
  const id = idOf(destination)
  const { place } = destination
  const wanted = await destination.keyTemplate(payload, request.now, request.facts)
  const limit = beginTimeLimit(timeoutMs, request.signal, () => timedOut(destination, wanted, timeoutMs))
  const { signal } = limit
  const locks = createLocks(request.lockerOf(destination))
  let left: Promise<unknown> | undefined
  try {
    const take = (key: string) => locks.take(place + key, payload.sha256, signal)
    const same = await orAborted(findSame(payload, wanted, destination, places, store, take, signal), signal)
    if (same) {
      const { key, deleteUrl } = same.entry
      const url = await linkAgain(destination, same.entry, request.baseUrl, signal)
      const end = await endOf(identify({ destination: id, key }, places), request.end, store)
      same.lock.settle({ url, deleteUrl, by: undefined, end })
      return { destination: id, place, key, url, deleteUrl, end }
    }
    const taken = await takeKey(
      payload,
      destination,
      wanted,
      locks,
      request,
      { places, history: store },
      signal,
    )
    const { key, lock } = taken
    const isThere = lock.others?.by === id && (await isStillThere(destination, key, signal))
    const end = await endOfTaken(taken, destination, places, request, store, signal)
    const stored =
      isThere && lock.others
        ? lock.others
        : await deliverWithin(limit, destination, toObject(payload, key), retries, put => {
            left = put
          })
    const url = linkTo(destination, key, stored, request.baseUrl)
    lock.settle({ ...stored, by: id, end })
    return { destination: id, place, key, url, deleteUrl: stored.deleteUrl, end }
  } catch (error) {
    // Nobody may write to the key, nor may the payload go, while a put that was given up is at them.
    const dispose = left && payload.hold()
    if (left) void left.then(dispose, dispose)
    await locks.end(left)
    throw error
  } finally {
    limit.end()
  }
}

/** The link of somebody else's upload is good for as long as the object is there. Who can't tell is believed. */
async function isStillThere({ target }: Destination, key: string, signal: AbortSignal): Promise<boolean> {
  const looking = target.exists?.(key, signal).catch(() => true)
  return looking === undefined || orAborted(looking, signal)
}

/** Until when an object stays that is promised until `end`: all its promises hold, by whatever destination they came. */
async function endOf(object: ObjectId, end: End, store: PlaceDeps['store']): Promise<End> {
  if (end === 'never') return end
  return laterEnd(end, ...(await store.promised([object]))) ?? end
}

/** The same for a key that was taken. A file that lay there before the server knew of it is not the server's to remove. */
async function endOfTaken(
  { key, lock: { others }, isKnown }: TakenKey,
  destination: Destination,
  places: Places,
  { end }: PlaceRequest,
  store: PlaceDeps['store'],
  signal: AbortSignal,
): Promise<End> {
  if (end === 'never') return end
  const [promised] = await store.promised([identify({ destination: idOf(destination), key }, places)])
  if (promised !== undefined || isKnown) return laterEnd(end, others?.end, promised) ?? end
  const looking = destination.target.exists?.(key, signal).catch(() => false)
  return looking && (await orAborted(looking, signal)) ? 'never' : end
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
  return new UploadError(code, `${first.message} Its fallback ${fallback} also failed: ${second.message}`, {
    cause: cause ?? second,
    ...(retryAfterS !== undefined && { retryAfterS }),
  })
}

/** As entries say it: what stays has no end. */
export function expiring(end: End): { expiresAt?: number } {
  return end === 'never' ? {} : { expiresAt: end }
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
