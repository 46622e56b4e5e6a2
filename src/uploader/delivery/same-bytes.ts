import type { Payload } from '../../payload/index.ts'
import type { HistoryEntry, HistoryStore } from '../../store/contract.ts'
import { foldKey, identify, type Places } from '../../store/expiry-contract.ts'
import { type Destination, idOf } from './destinations.ts'
import type { Lock } from './locker.ts'

/** With more that came since then it is not looked at any further. */
const MOST_SINCE = 1000
/** Files of the same bytes that are looked at, the latest first: one that many others came after gets a number. */
const MOST_SAME = 100

/**
 * A file of the same bytes that the history knows and that is still there: with `dedupe` any, with `rename` the one that
 * was asked for under the same key, unless something else has been stored under its key since then.
 */
export async function findSame(
  payload: Payload,
  wanted: string,
  destination: Destination,
  places: Places,
  history: Pick<HistoryStore, 'history'>,
  take: (key: string) => Promise<Lock | undefined>,
  signal: AbortSignal,
): Promise<{ readonly entry: HistoryEntry; readonly lock: Lock } | undefined> {
  const { dedupe, onConflict } = destination
  if (!dedupe && onConflict !== 'rename') return undefined
  const id = idOf(destination)
  const ofBytes = { among: [id], sha256: payload.sha256, isRemoved: false }
  const stored = await history.history({ ...ofBytes, limit: dedupe ? 1 : MOST_SAME })
  const isHere = ({ place }: HistoryEntry) => place === undefined || place === destination.place
  const same = stored.find(
    one => isHere(one) && (dedupe || one.key === wanted || withoutNumber(one.key) === wanted),
  )
  if (!same) return undefined
  if (!dedupe) {
    const since = await history.history({
      object: identify({ destination: id, key: same.key }, places),
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
 * Whether the history knows the same bytes under another spelling of a key, which is the same file on disks that know no
 * capitals. Where files go again that file would go with the first of their promises.
 */
export async function isSpelledOtherwise(
  key: string,
  sha256: string,
  destination: Destination,
  places: Places,
  history: Pick<HistoryStore, 'history'>,
): Promise<boolean> {
  if (!destination.expiry) return false
  const same = await history.history({ sha256, isRemoved: false, limit: MOST_SAME })
  const object = destination.place + key
  return same
    .map(one => (one.place === undefined ? identify(one, places).object : one.place + one.key))
    .some(other => other !== object && foldKey(other) === foldKey(object))
}

const withoutNumber = (key: string): string => key.replace(/-\d+(\.[^./]*)?$/, '$1')
