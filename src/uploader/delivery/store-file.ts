import { messageOf, UploadError } from '../../errors.ts'
import { orAborted } from '../../flow/cancellation.ts'
import { beginTimeLimit } from '../../flow/time-limit.ts'
import type { Payload } from '../../payload/index.ts'
import type { KeyFacts } from '../../payload/object-key.ts'
import type { Stored, UploadObject } from '../../providers/contract.ts'
import type { Copy, Store } from '../../store/contract.ts'
import { type End, identify, type Locations, laterEnd, type ObjectId } from '../../store/expiry-contract.ts'
import { assertMayRename, type ChosenKey, ConflictError, chooseKey, type KeyRequest } from './choose-key.ts'
import { type DeliveryLimits, deliver, deliverWithin, timedOut } from './deliver.ts'
import { type Destination, idOf, type Mirror, splitId } from './destinations.ts'
import { linkAgain, linkTo } from './links.ts'
import { createLocks, type Locker } from './locker.ts'
import { findSame, reusesFiles } from './same-bytes.ts'

/** Where a payload was stored. */
export interface StoredAt {
  /** `provider/configName`. The fallback if the destination failed. */
  readonly destination: string
  readonly key: string
  /** Absolute. */
  readonly url: string
  readonly deleteUrl?: string | undefined
  /** Location of the destination, up to where the object key begins. */
  readonly location: string
  /** When it expires. */
  readonly end: End
  /** The copies at the mirrors. Undefined if there are no mirrors. */
  readonly mirrors?: readonly Copy[] | undefined
}

/** What the files of one request share. */
export interface StoreFileRequest extends KeyRequest {
  /** Relative URLs of providers start here. */
  readonly baseUrl: string
  readonly signal: AbortSignal
  /** The time in object keys. It is the same for each attempt at a request, so the same file gets the same key. */
  readonly now: Date
  /**
   * Returns the locker for the objects of a destination. Its locks last until the request ends. Undefined if the destination
   * `needsNoLock`, and nothing expires there.
   */
  lockerOf(destination: Destination): Locker | undefined
}

export interface StoreFileDeps {
  readonly destinations: readonly Destination[]
  readonly locations: Locations
  readonly limits: DeliveryLimits
  readonly store: Pick<Store, 'history' | 'promised'>
  /** Hides secrets. */
  mask(text: string): string
  /** Writes a line of the log. */
  warn(message: string, details: object): void
}

/**
 * Stores a payload at a destination, or at its fallback if the destination fails, and at its mirrors.
 *
 * @param facts other parts of its object key
 * @throws UploadError if the destination and its fallback fail, or a required mirror does
 */
export async function storeFile(
  payload: Payload,
  facts: KeyFacts,
  destination: Destination,
  request: StoreFileRequest,
  deps: StoreFileDeps,
): Promise<StoredAt> {
  let storedAt: StoredAt
  try {
    storedAt = await storeAt(payload, facts, destination, request, deps)
  } catch (error) {
    storedAt = await storeAtFallback(payload, facts, destination, error, request, deps)
  }
  if (destination.mirrors.length === 0) return storedAt
  // All are waited for, because each reads the payload, even after another one has failed.
  const copies = await Promise.allSettled(
    destination.mirrors.map(mirror => storeAtMirror(payload, facts, mirror, storedAt, request, deps)),
  )
  const mirrors = copies.map(copy => {
    if (copy.status === 'rejected') throw copy.reason
    return copy.value
  })
  return { ...storedAt, mirrors }
}

/** @throws UploadError if the mirror is required and fails */
async function storeAtMirror(
  payload: Payload,
  facts: KeyFacts,
  { destination: id, required }: Mirror,
  storedAt: StoredAt,
  request: StoreFileRequest,
  deps: StoreFileDeps,
): Promise<Copy> {
  try {
    const { key, url, location, end } = await storeAt(
      payload,
      facts,
      byId(deps.destinations, id),
      request,
      deps,
    )
    // A copy expires with the file, unless an earlier upload of the same object expires later.
    return { destination: id, key, url, location, ...expiring(laterEnd(storedAt.end, end) ?? end) }
  } catch (error) {
    request.signal.throwIfAborted()
    if (required) throw mirrorFailed(storedAt, id, error)
    const message = deps.mask(messageOf(error))
    deps.warn(`The mirror ${id} failed`, { destination: id, problem: message, key: storedAt.key })
    return { destination: id, error: message }
  }
}

/** @param error why the destination failed */
async function storeAtFallback(
  payload: Payload,
  facts: KeyFacts,
  destination: Destination,
  error: unknown,
  request: StoreFileRequest,
  deps: StoreFileDeps,
): Promise<StoredAt> {
  request.signal.throwIfAborted()
  if (destination.fallback === undefined || error instanceof ConflictError) throw error
  const id = destination.fallback
  const problem = messageOf(error)
  deps.warn(`${idOf(destination)} failed; its fallback ${id} is used`, {
    destination: idOf(destination),
    problem,
  })
  try {
    return await storeAt(payload, facts, byId(deps.destinations, id), request, deps)
  } catch (second) {
    request.signal.throwIfAborted()
    throw bothFailed(error, second, id)
  }
}

async function storeAt(
  payload: Payload,
  facts: KeyFacts,
  destination: Destination,
  request: StoreFileRequest,
  deps: StoreFileDeps,
): Promise<StoredAt> {
  const wanted = await destination.keyTemplate(payload, request.now, facts)
  const locker = request.lockerOf(destination)
  return locker
    ? storeLocked(payload, destination, wanted, locker, request, deps)
    : storeUnlocked(payload, destination, wanted, request, deps)
}

/** Stores a file whose object needs no lock: see `lockerOf`. */
async function storeUnlocked(
  payload: Payload,
  destination: Destination,
  key: string,
  { signal, baseUrl }: StoreFileRequest,
  { limits }: StoreFileDeps,
): Promise<StoredAt> {
  const stored = await deliver(destination, toObject(payload, key), limits, signal, left =>
    disposeAfter(left, payload),
  )
  const { location } = destination
  const url = linkTo(destination, key, stored, baseUrl)
  return { destination: idOf(destination), location, key, url, deleteUrl: stored.deleteUrl, end: 'never' }
}

/** The time limit `deliveryTimeoutMs` includes everything that this waits for. */
async function storeLocked(
  payload: Payload,
  destination: Destination,
  wanted: string,
  locker: Locker,
  request: StoreFileRequest,
  { limits: { timeoutMs, retries }, store, locations }: StoreFileDeps,
): Promise<StoredAt> {
  const id = idOf(destination)
  const { location } = destination
  const limit = beginTimeLimit(timeoutMs, request.signal, () => timedOut(destination, wanted, timeoutMs))
  const { signal } = limit
  const locks = createLocks(locker)
  let left: Promise<unknown> | undefined
  try {
    const take = (key: string) => locks.take(location + key, payload.sha256, signal)
    const same =
      reusesFiles(destination) &&
      (await orAborted(findSame(payload, wanted, destination, locations, store, take, signal), signal))
    if (same) {
      const { key, deleteUrl } = same.entry
      const url = await linkAgain(destination, same.entry, request.baseUrl, signal)
      const end = await endOf(identify({ destination: id, key }, locations), request.end, store)
      same.lock.settle({ url, deleteUrl, by: undefined, end })
      return { destination: id, location, key, url, deleteUrl, end }
    }
    for (let from = 1; ; ) {
      const around = { locations, history: store }
      const taken = await chooseKey(payload, destination, wanted, locks, request, around, signal, from)
      const { key, lock } = taken
      const isThere = lock.others?.by === id && (await isStillThere(destination, key, signal))
      const end = await endOfTaken(taken, destination, locations, request, store, signal)
      const put = toPut(payload, taken, destination, signal)
      const stored =
        isThere && lock.others
          ? lock.others
          : await deliverWithin(limit, destination, key, put, retries, abandoned => {
              left = abandoned
            })
      if (stored) {
        const url = linkTo(destination, key, stored, request.baseUrl)
        lock.settle({ ...stored, by: id, end })
        return { destination: id, location, key, url, deleteUrl: stored.deleteUrl, end }
      }
      lock.release()
      assertMayRename(destination, key)
      from = taken.count + 1
    }
  } catch (error) {
    // An abandoned put still reads the payload and writes to the key, so both are kept until it ends.
    if (left) disposeAfter(left, payload)
    await locks.end(left)
    throw error
  } finally {
    limit.end()
  }
}

/** Postpones the end of a payload until an abandoned put, which still reads it, ends. */
function disposeAfter(left: Promise<unknown>, payload: Payload): void {
  const dispose = payload.hold()
  void left.then(dispose, dispose)
}

/** How a payload is stored under its key. The put returns undefined if the key is in use after all. */
function toPut(
  payload: Payload,
  { key, unlessTaken }: ChosenKey,
  { target }: Destination,
  signal: AbortSignal,
): (isRepeated: boolean) => Promise<Stored | undefined> {
  const object = toObject(payload, key)
  return async isRepeated =>
    unlessTaken && target.putIfAbsent
      ? target.putIfAbsent(object, isRepeated || unlessTaken.isRepeated, signal)
      : target.put(object, signal)
}

/** The URL of another upload is valid while its object exists. If the destination can't check that, it is assumed. */
async function isStillThere({ target }: Destination, key: string, signal: AbortSignal): Promise<boolean> {
  const looking = target.exists?.(key, signal).catch(() => true)
  return looking === undefined || orAborted(looking, signal)
}

/** When an object expires that is stored until `end`: the latest time of all uploads of it, through any destination. */
async function endOf(object: ObjectId, end: End, store: StoreFileDeps['store']): Promise<End> {
  if (end === 'never') return end
  return laterEnd(end, ...(await store.promised([object]))) ?? end
}

/** The same for a chosen key. A file that was there before, and that the server did not store, must never be removed. */
async function endOfTaken(
  { key, lock: { others }, isKnown }: ChosenKey,
  destination: Destination,
  locations: Locations,
  { end }: StoreFileRequest,
  store: StoreFileDeps['store'],
  signal: AbortSignal,
): Promise<End> {
  if (end === 'never') return end
  const [promised] = await store.promised([identify({ destination: idOf(destination), key }, locations)])
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

/** The property of a history entry. A file that never expires has none. */
export function expiring(end: End): { expiresAt?: number } {
  return end === 'never' ? {} : { expiresAt: end }
}

function mirrorFailed({ destination, key }: StoredAt, mirror: string, error: unknown): UploadError {
  const reason = messageOf(error)
  const code = error instanceof UploadError ? error.code : 'delivery_failed'
  const message = `"${key}" was stored at ${destination}, but not at its required mirror ${mirror}: ${reason}`
  return new UploadError(code, message, { cause: error })
}

/** A payload with its object key, as providers get it. */
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
