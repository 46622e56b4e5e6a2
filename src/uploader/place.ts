import { UploadError } from '../errors.ts'
import { type Cancellation, toAbortSignal } from './cancellation.ts'
import { type DeliveryLimits, deliver } from './deliver.ts'
import { type Destination, idOf, splitId } from './destinations.ts'
import type { Payload } from './payload.ts'
import type { UploadObject } from './provider.ts'
import type { Copy, HistoryStore } from './store.ts'

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

export interface PlaceDeps {
  readonly destinations: readonly Destination[]
  readonly limits: DeliveryLimits
  readonly history: Pick<HistoryStore, 'findStored'>
  now(): Date
  /** Hides secrets. */
  mask(text: string): string
  /** A line for the operator. */
  warn(message: string, details: object): void
}

/**
 * Stores a payload at a destination, at its fallback when that fails, and at its mirrors.
 *
 * @param baseUrl where relative URLs of providers start
 * @throws UploadError of the destination when its fallback fails, too, or of a mirror that is required
 */
export async function place(
  payload: Payload,
  destination: Destination,
  baseUrl: string,
  deps: PlaceDeps,
  signal: Cancellation,
): Promise<Placed> {
  let placed: Placed
  try {
    placed = await placeAt(payload, destination, baseUrl, deps, signal)
  } catch (error) {
    placed = await placeAtFallback(payload, destination, error, baseUrl, deps, signal)
  }
  if (destination.mirrors.length === 0) return placed
  const mirrors = await Promise.all(
    destination.mirrors.map(async ({ destination: id, required }): Promise<Copy> => {
      try {
        const { key, url } = await placeAt(payload, byId(deps.destinations, id), baseUrl, deps, signal)
        return { destination: id, key, url }
      } catch (error) {
        signal.throwIfAborted()
        if (required) throw mirrorFailed(placed, id, error)
        const message = deps.mask(error instanceof Error ? error.message : String(error))
        deps.warn(`The mirror ${id} failed`, { destination: id, problem: message, key: placed.key })
        return { destination: id, error: message }
      }
    }),
  )
  return { ...placed, mirrors }
}

/** @param error why the destination failed */
async function placeAtFallback(
  payload: Payload,
  destination: Destination,
  error: unknown,
  baseUrl: string,
  deps: PlaceDeps,
  signal: Cancellation,
): Promise<Placed> {
  signal.throwIfAborted()
  if (destination.fallback === undefined) throw error
  const id = destination.fallback
  const problem = error instanceof Error ? error.message : String(error)
  deps.warn(`${idOf(destination)} failed; its fallback ${id} is used`, {
    destination: idOf(destination),
    problem,
  })
  try {
    return await placeAt(payload, byId(deps.destinations, id), baseUrl, deps, signal)
  } catch (second) {
    signal.throwIfAborted()
    throw bothFailed(error, second, id)
  }
}

/** With `dedupe` a file of the same bytes that the history knows and that is still there is taken instead. */
async function placeAt(
  payload: Payload,
  destination: Destination,
  baseUrl: string,
  { limits, history, now }: PlaceDeps,
  signal: Cancellation,
): Promise<Placed> {
  const id = idOf(destination)
  if (destination.dedupe) {
    const same = await history.findStored(id, payload.sha256)
    if (same && (await destination.target.exists?.(same.key, toAbortSignal(signal)))) {
      return { destination: id, key: same.key, url: same.url, deleteUrl: same.deleteUrl }
    }
  }
  const key = await takeKey(destination, await destination.keyTemplate(payload, now()), signal)
  try {
    const { url, deleteUrl } = await deliver(destination, toObject(payload, key), limits, signal)
    return { destination: id, key, url: destination.rewriteUrl(new URL(url, baseUrl).href), deleteUrl }
  } finally {
    destination.keys.release(key)
  }
}

function takeKey(destination: Destination, key: string, signal: Cancellation): Promise<string> {
  const { target, onConflict } = destination
  if (onConflict === 'replace') return destination.keys.take(key)
  return destination.keys.take(key, async candidate => {
    if (!(await target.exists?.(candidate, toAbortSignal(signal)))) return false
    if (onConflict === 'rename') return true
    throw new UploadError(
      'delivery_failed',
      `"${candidate}" is already at ${idOf(destination)}, and its onConflict is "error". Send it under another name.`,
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
  const reason = error instanceof Error ? error.message : String(error)
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
