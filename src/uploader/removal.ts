import { randomUUID } from 'node:crypto'
import { messageOf, UploadError } from '../errors.ts'
import { decodeSafely } from '../mask.ts'
import type { HistoryEntry, Store } from '../store/contract.ts'
import type { ObjectName } from '../store/expiry-contract.ts'
import { type Destination, idOf } from './delivery/destinations.ts'
import type { Finalizer } from './jobs/finalizer.ts'

/** Entries that are looked at for one word or object. */
const MOST_ENTRIES = 10_000
/** Of a key, with which nearly every link ends. */
const MOST_SEGMENTS = 32
/** For one removal. */
const TIMEOUT_MS = 120_000

/** An object that somebody wants removed. */
export interface Wanted extends ObjectName {
  /** Whether an entry of it is among what is to be removed. With one that is not, the object stays. */
  readonly covers: (entry: HistoryEntry) => boolean
}

/** What became of it. `manual`: the host can't remove it, and gave an address that does. */
export type Removal =
  | { readonly kind: 'removed' }
  | { readonly kind: 'kept'; readonly others: number }
  | { readonly kind: 'manual'; readonly deleteUrl: string }
  | { readonly kind: 'failed'; readonly problem: string }

interface RemovalDeps {
  readonly store: Store
  readonly finalizer: Pick<Finalizer, 'owner' | 'lease'>
  readonly destinations: readonly Destination[]
}

/**
 * Finds the objects of a link, a key, a job, its finalizationId or its request, copies included. Of a job only what no
 * other job names is covered.
 *
 * @param among destinations where it is looked for, `provider/configName` @param everywhere those of copies
 */
export async function findByWord(
  store: Store,
  word: string,
  among: readonly string[],
  everywhere: readonly string[],
): Promise<Wanted[]> {
  const find = (filter: object) => store.history({ ...filter, among, isRemoved: false, limit: MOST_ENTRIES })
  const link = /^https?:/i.test(word) && URL.canParse(word) ? new URL(word).href : undefined
  // A key is found at once, where an address has everything gone through.
  const entries =
    link === undefined ? await find({ key: word }) : await find({ url: link, keys: keysIn(link) })
  if (link !== undefined && entries.length === 0) entries.push(...(await find({ url: link })))
  if (entries.length > 0) {
    const objects = new Set(entries.map(nameOf))
    return withCopies(store, entries, everywhere, entry => objects.has(nameOf(entry)))
  }
  if (link !== undefined) return []
  const ofId = await find({ jobId: word })
  const ofJob = ofId.length > 0 ? ofId : await find({ requestId: word })
  const jobs = new Set(ofJob.map(({ jobId }) => jobId))
  return unique(ofJob, ({ jobId }) => jobs.has(jobId))
}

/** The ends of an address, which may be keys. */
function keysIn(link: string): string[] {
  const segments = new URL(link).pathname.split('/').slice(-MOST_SEGMENTS).map(decodeSafely)
  return segments.map((_, index) => segments.slice(index).join('/'))
}

/** The objects of these entries with all their copies. @param covers entries that need not be among them */
export async function withCopies(
  store: Store,
  entries: readonly HistoryEntry[],
  among: readonly string[],
  covers: (entry: HistoryEntry) => boolean,
): Promise<Wanted[]> {
  // What was stored for one input stands in the history under its job and index.
  const inputOf = ({ jobId, index }: HistoryEntry) => `${jobId}/${index}`
  const inputs = new Set(entries.map(inputOf))
  const all = [...entries]
  for (const job of new Set(entries.map(({ jobId }) => jobId))) {
    const ofJob = await store.history({ jobId: job, among, isRemoved: false, limit: MOST_ENTRIES })
    all.push(...ofJob.filter(entry => inputs.has(inputOf(entry))))
  }
  return unique(all, entry => covers(entry) || inputs.has(inputOf(entry)))
}

function unique(entries: readonly HistoryEntry[], covers: Wanted['covers']): Wanted[] {
  const objects = new Map(entries.map(entry => [nameOf(entry), entry]))
  return [...objects.values()].map(({ destination, key }) => ({ destination, key, covers }))
}

const nameOf = ({ destination, key }: ObjectName) => `${destination}/${key}`

/** What would become of an object. */
export async function previewRemoval(wanted: Wanted, { store, destinations }: RemovalDeps): Promise<Removal> {
  const { destination, key, covers } = wanted
  const entries = await store.history({ key, among: [destination], isRemoved: false, limit: MOST_ENTRIES })
  const others = entries.filter(entry => !covers(entry)).length
  if (others > 0) return { kind: 'kept', others }
  const place = destinations.find(one => idOf(one) === destination)
  if (place?.target.remove) return { kind: 'removed' }
  const deleteUrl = entries.find(entry => entry.deleteUrl !== undefined)?.deleteUrl
  return deleteUrl === undefined
    ? { kind: 'failed', problem: 'files can not be removed there from here' }
    : { kind: 'manual', deleteUrl }
}

/** Removes an object and marks its entries, unless somebody is at it or another entry names it. */
export async function removeObject(wanted: Wanted, deps: RemovalDeps): Promise<Removal> {
  const { store, finalizer, destinations } = deps
  const { destination, key } = wanted
  const holder = randomUUID()
  await finalizer.lease.keepAlive()
  const hold = { destination, key, content: holder, holder, owner: finalizer.owner, now: Date.now() }
  if (await store.holdKey(hold))
    return { kind: 'failed', problem: 'it is being uploaded or removed right now. Try again in a moment' }
  try {
    const found = await previewRemoval(wanted, deps)
    if (found.kind !== 'removed') return found
    const place = destinations.find(one => idOf(one) === destination)
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    const remove = async () => place?.target.remove?.(key, signal)
    await (place?.queue ? place.queue.run(remove, signal) : remove())
    await store.noteRemoved({ destination, key, holder }, Date.now())
    return found
  } catch (error) {
    // Without the store nothing more can be said of any object.
    if (error instanceof UploadError && error.code === 'store_unavailable') throw error
    return { kind: 'failed', problem: messageOf(error) }
  } finally {
    await store.releaseKeys(holder)
  }
}
