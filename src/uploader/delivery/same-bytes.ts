import type { Payload } from '../../payload/index.ts'
import type { HistoryEntry, HistoryStore } from '../../store/contract.ts'
import { nameOf } from '../../store/expiry-contract.ts'
import { type Destination, idOf } from './destinations.ts'
import type { Hold } from './holds.ts'

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
  history: Pick<HistoryStore, 'history'>,
  hold: (key: string) => ReturnType<Hold>,
  signal: AbortSignal,
): Promise<HistoryEntry | undefined> {
  const { dedupe, onConflict } = destination
  if (!dedupe && onConflict !== 'rename') return undefined
  const id = idOf(destination)
  const ofBytes = { among: [id], sha256: payload.sha256, isRemoved: false }
  const stored = await history.history({ ...ofBytes, limit: dedupe ? 1 : MOST_SAME })
  const same = stored.find(({ key }) => dedupe || key === wanted || withoutNumber(key) === wanted)
  if (!same) return undefined
  if (!dedupe) {
    const since = await history.history({
      among: [id],
      key: same.key,
      isRemoved: false,
      since: same.time,
      limit: MOST_SINCE,
    })
    if (since.length === MOST_SINCE) return undefined
    if (since.some(one => one.sha256 !== payload.sha256)) return undefined
  }
  if ((await hold(same.key)) === 'taken') return undefined
  return (await destination.target.exists?.(same.key, signal)) ? same : undefined
}

/**
 * Whether the history knows the same bytes under another spelling of a key, which is the same file on disks that know no
 * capitals. Where files go again that file would go with the first of their promises.
 */
export async function isSpelledOtherwise(
  key: string,
  sha256: string,
  destination: Destination,
  history: Pick<HistoryStore, 'history'>,
): Promise<boolean> {
  if (!destination.expiry) return false
  const same = { among: [idOf(destination)], sha256, isRemoved: false, limit: MOST_SAME }
  return (await history.history(same)).some(one => one.key !== key && nameOf(one.key) === nameOf(key))
}

const withoutNumber = (key: string): string => key.replace(/-\d+(\.[^./]*)?$/, '$1')
