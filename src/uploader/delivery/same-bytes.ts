import type { Payload } from '../../payload/index.ts'
import type { HistoryEntry, HistoryStore } from '../../store/contract.ts'
import { foldKey, identify, type Locations } from '../../store/expiry-contract.ts'
import { type Destination, idOf } from './destinations.ts'
import type { Lock } from './locker.ts'

/** Maximum number of later history entries to check. With more, the file counts as not found. */
const MOST_SINCE = 1000
/** Maximum number of files with the same bytes to check, latest first. */
const MOST_SAME = 100

/** Whether a destination looks for the same bytes. If not, `findSame` finds nothing. */
export const reusesFiles = ({ dedupe, onConflict }: Destination): boolean => dedupe || onConflict === 'rename'

/**
 * Finds a file with the same bytes in the history that still exists: any with `dedupe`, and with `rename` one that was
 * stored under the same wanted key, unless another file has been stored under its key since.
 */
export async function findSame(
  payload: Payload,
  wanted: string,
  destination: Destination,
  locations: Locations,
  history: Pick<HistoryStore, 'history'>,
  take: (key: string) => Promise<Lock | undefined>,
  signal: AbortSignal,
): Promise<{ readonly entry: HistoryEntry; readonly lock: Lock } | undefined> {
  if (!reusesFiles(destination)) return undefined
  const { dedupe } = destination
  const id = idOf(destination)
  const ofBytes = { among: [id], sha256: payload.sha256, isRemoved: false }
  const stored = await history.history({ ...ofBytes, limit: dedupe ? 1 : MOST_SAME })
  const isHere = ({ location }: HistoryEntry) => location === undefined || location === destination.location
  const same = stored.find(
    one => isHere(one) && (dedupe || one.key === wanted || withoutNumber(one.key) === wanted),
  )
  if (!same) return undefined
  if (!dedupe) {
    const since = await history.history({
      object: identify({ destination: id, key: same.key }, locations),
      isRemoved: false,
      since: same.time,
      limit: MOST_SINCE,
    })
    if (since.length === MOST_SINCE) return undefined
    if (since.some(one => one.sha256 !== payload.sha256)) return undefined
  }
  const lock = await take(same.key)
  if (lock && (await destination.target.exists?.(same.key, signal))) return { entry: same, lock }
  lock?.release()
  return undefined
}

/**
 * Whether the history has the same bytes under another spelling of an object key. On case-insensitive disks both are one
 * file, which would be removed when the first of them expires. To be asked at destinations where files expire.
 */
export async function isSpelledOtherwise(
  key: string,
  sha256: string,
  destination: Destination,
  locations: Locations,
  history: Pick<HistoryStore, 'history'>,
): Promise<boolean> {
  const same = await history.history({ sha256, isRemoved: false, limit: MOST_SAME })
  const object = destination.location + key
  return same
    .map(one => (one.location === undefined ? identify(one, locations).object : one.location + one.key))
    .some(other => other !== object && foldKey(other) === foldKey(object))
}

const withoutNumber = (key: string): string => key.replace(/-\d+(\.[^./]*)?$/, '$1')
