import { randomUUID } from 'node:crypto'
import { messageOf } from '../errors.ts'
import { decodeSafely } from '../mask.ts'
import { oneLine, toJsonLine } from '../safe-text.ts'
import type { HistoryEntry, HistoryFilter, Store } from '../store/contract.ts'
import { identify, type ObjectId, type ObjectName } from '../store/expiry-contract.ts'
import { type Destination, idOf, locationsOf } from './delivery/destinations.ts'
import { removeKeys } from './delivery/remove-keys.ts'
import type { Finalizer } from './jobs/finalizer.ts'

/** Maximum number of history entries to read for one search term or object. */
const MOST_ENTRIES = 10_000
/** Maximum number of segments of an object key. Most URLs end with the object key. */
const MOST_SEGMENTS = 32
/** Time limit of one removal. */
const TIMEOUT_MS = 120_000

/** An object to remove. */
export interface RemovalTarget extends ObjectName, ObjectId {
  /** Whether a history entry is among those to remove. The object is kept if one of its entries is not. */
  readonly covers: (entry: HistoryEntry) => boolean
}

/** The result of a removal. `manual`: the provider can't remove it, but the image host has returned a URL that does. */
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
 * Finds the objects of a URL, an object key, a job ID (finalizationId) or a request ID, including their copies. An object of
 * a job is kept if another job has stored it too.
 *
 * @throws Error if several callers chose this request ID
 * @param among destinations to search, `provider/configName` @param all destinations, including those of copies
 */
export async function findByWord(
  store: Store,
  word: string,
  among: readonly string[],
  all: readonly Destination[],
): Promise<RemovalTarget[]> {
  const { ofObject, ofJob } = await findEntries(store, word, { among, isRemoved: false })
  const identity = (entry: HistoryEntry) => objectOf(entry, all).object
  const [objects, jobs] = [new Set(ofObject.map(identity)), new Set(ofJob.map(({ jobId }) => jobId))]
  if (ofObject.length > 0) return withCopies(store, ofObject, all, entry => objects.has(identity(entry)))
  assertOneCaller(word, ofJob)
  return unique(ofJob, all, ({ jobId }) => jobs.has(jobId))
}

/** Maximum number of uploads in an error message. */
const LISTED_UPLOADS = 10

/** A client may choose its request ID, also one of another client. */
function assertOneCaller(requestId: string, entries: readonly HistoryEntry[]): void {
  const clients = new Set(entries.map(({ caller }) => caller))
  if (clients.size < 2) return
  const uploads = new Set(entries.map(({ caller, jobId }) => `${jobId} of ${toJsonLine(caller)}`))
  const listed = [...uploads].slice(0, LISTED_UPLOADS).join(', ')
  throw new Error(
    `${oneLine(requestId)}: ${clients.size} clients have uploaded with this request id. Specify the id of an upload: ${listed}.`,
  )
}

/** When the objects of a search term were removed, milliseconds since the epoch. Undefined if the history has none. */
export async function findRemoved(
  store: Store,
  word: string,
  among: readonly string[],
): Promise<number | undefined> {
  const { ofObject, ofJob } = await findEntries(store, word, { among, isRemoved: true })
  const times = [...ofObject, ...ofJob].flatMap(({ removedAt = [] }) => removedAt)
  return times.length > 0 ? Math.max(...times) : undefined
}

interface FoundEntries {
  /** Found by URL or object key. */
  readonly ofObject: HistoryEntry[]
  /** Otherwise found by job or request. */
  readonly ofJob: HistoryEntry[]
}

async function findEntries(
  store: Store,
  word: string,
  filter: Pick<HistoryFilter, 'among' | 'isRemoved'>,
): Promise<FoundEntries> {
  const find = (what: Partial<HistoryFilter>) => store.history({ ...what, ...filter, limit: MOST_ENTRIES })
  const link = /^https?:/i.test(word) && URL.canParse(word) ? new URL(word).href : undefined
  // An index has the object keys. A search by URL alone reads all entries.
  if (link !== undefined) {
    const byKey = await find({ url: link, keys: keysIn(link) })
    return { ofObject: byKey.length > 0 ? byKey : await find({ url: link }), ofJob: [] }
  }
  const ofObject = await find({ key: word })
  if (ofObject.length > 0) return { ofObject, ofJob: [] }
  const ofId = await find({ jobId: word })
  return { ofObject, ofJob: ofId.length > 0 ? ofId : await find({ requestId: word }) }
}

/** The ends of a URL, each of which may be an object key. */
function keysIn(link: string): string[] {
  const segments = new URL(link).pathname.split('/').slice(-MOST_SEGMENTS).map(decodeSafely)
  return segments.map((_, index) => segments.slice(index).join('/'))
}

/** The objects of these entries with all their copies. @param covers entries that need not be among them */
export async function withCopies(
  store: Store,
  entries: readonly HistoryEntry[],
  destinations: readonly Destination[],
  covers: (entry: HistoryEntry) => boolean,
): Promise<RemovalTarget[]> {
  // All copies of one input have the same job and index in the history.
  const inputOf = ({ jobId, index }: HistoryEntry) => `${jobId}/${index}`
  const inputs = new Set(entries.map(inputOf))
  const all = [...entries]
  const among = destinations.map(idOf)
  for (const job of new Set(entries.map(({ jobId }) => jobId))) {
    const ofJob = await store.history({ jobId: job, among, isRemoved: false, limit: MOST_ENTRIES })
    all.push(...ofJob.filter(entry => inputs.has(inputOf(entry))))
  }
  return unique(all, destinations, entry => covers(entry) || inputs.has(inputOf(entry)))
}

function unique(
  entries: readonly HistoryEntry[],
  destinations: readonly Destination[],
  covers: RemovalTarget['covers'],
): RemovalTarget[] {
  const objects = new Map(entries.map(entry => [objectOf(entry, destinations).object, entry]))
  return [...objects.values()].map(entry => ({ ...objectOf(entry, destinations), covers }))
}

/** The object of an entry, by the destination that reaches it now, because options may have changed since. */
function objectOf(entry: HistoryEntry, destinations: readonly Destination[]): ObjectName & ObjectId {
  const { destination, key, location } = entry
  const locations = locationsOf(destinations)
  const name = { destination, key }
  if (location === undefined || locations.get(destination) === location)
    return { ...name, ...identify(name, locations) }
  const object = location + key
  const reached = destinations.find(one => object.startsWith(one.location) && object !== one.location)
  if (!reached) return { ...name, object, aliases: [name] }
  const other = { destination: idOf(reached), key: object.slice(reached.location.length) }
  return { ...other, ...identify(other, locations) }
}

/** The result that a removal would have. */
export async function previewRemoval(
  wanted: RemovalTarget,
  { store, destinations }: Pick<RemovalDeps, 'store' | 'destinations'>,
): Promise<Removal> {
  const { covers, object, aliases } = wanted
  const entries = await store.history({ object: { object, aliases }, isRemoved: false, limit: MOST_ENTRIES })
  const others = entries.filter(entry => !covers(entry)).length
  if (others > 0) return { kind: 'kept', others }
  const destination = find(wanted, destinations)
  if (destination?.target.remove) return { kind: 'removed' }
  const deleteUrl = entries.find(entry => entry.deleteUrl !== undefined)?.deleteUrl
  if (deleteUrl !== undefined) return { kind: 'manual', deleteUrl }
  const problem = destination
    ? 'files can not be removed there from here'
    : `it was stored at ${object}, where no destination of this configuration leads`
  return { kind: 'failed', problem }
}

const LOCKED: Removal = {
  kind: 'failed',
  problem: 'it is being uploaded or removed right now. Try again in a moment',
}

/** The destination of an object. Undefined if its options now lead to another location. */
function find({ destination, key, object }: RemovalTarget, destinations: readonly Destination[]) {
  return destinations.find(one => idOf(one) === destination && one.location + key === object)
}

/**
 * Removes objects and marks their entries, except objects that are locked or have entries that must be kept.
 *
 * @returns the results, in order
 */
export async function removeObjects(
  wanted: readonly RemovalTarget[],
  deps: RemovalDeps,
): Promise<readonly Removal[]> {
  const { store, finalizer, destinations } = deps
  const holder = randomUUID()
  await finalizer.lease.keepAlive()
  try {
    const results = new Map<RemovalTarget, Removal>()
    for (const one of wanted) {
      const lock = { object: one.object, content: holder, holder, owner: finalizer.owner, now: Date.now() }
      results.set(one, (await store.lockObject(lock)) ? LOCKED : await previewRemoval(one, deps))
    }
    for (const destination of destinations) {
      const here = wanted.filter(
        one => results.get(one)?.kind === 'removed' && find(one, destinations) === destination,
      )
      // The time limit is that of one request.
      const groups = destination.target.removeMany ? [here] : here.map(one => [one])
      for (const group of groups) {
        const keys = group.map(({ key }) => key)
        const problems = await removeKeys(destination, keys, AbortSignal.timeout(TIMEOUT_MS))
        for (const one of group) {
          const error = problems.get(one.key)
          if (error !== undefined) results.set(one, { kind: 'failed', problem: messageOf(error) })
        }
        const removed = group.filter(({ key }) => !problems.has(key)).map(one => ({ ...one, holder }))
        await store.noteRemoved(removed, Date.now())
      }
    }
    return wanted.map(one => results.get(one) ?? LOCKED)
  } finally {
    await store.unlockObjects(holder)
  }
}
