import { messageOf } from '../errors.ts'
import { oneLine, toJsonLine } from '../safe-text.ts'
import type { HistoryEntry } from '../store/contract.ts'
import { findFiles, type HistoryFilter } from '../store/history.ts'
import { objectName } from '../store/objects.ts'
import { noteRemoved, releaseRemovals, takeForRemoval } from '../store/removals.ts'
import type { Uploader } from './app.ts'
import { type Destination, reach, removeKey } from './destinations.ts'

/** Maximum number of history entries to read for one search term or object. */
const MOST_ENTRIES = 10_000
/** Time limit of one removal. */
const TIMEOUT_MS = 120_000

/** An object to remove. */
export interface RemovalTarget {
  /** See `objectName`. */
  readonly name: string
  /** `provider/configName` of the destination that reaches it now, because options may have changed since. */
  readonly destination: string
  readonly key: string
  /** Whether a history entry is among those to remove. The object is kept if one of its entries is not. */
  readonly covers: (entry: HistoryEntry) => boolean
}

/** The result of a removal. `manual`: the provider can't remove it, but the image host has returned a URL that does. */
export type Removal =
  | { readonly kind: 'removed' }
  | { readonly kind: 'kept'; readonly others: number }
  | { readonly kind: 'manual'; readonly deleteUrl: string }
  | { readonly kind: 'failed'; readonly problem: string }

type Removing = Pick<Uploader, 'database' | 'owner' | 'destinations'>

const nameOf = ({ location, key }: HistoryEntry) => objectName(location, key)

/**
 * Finds the objects of a URL, an object key, a job ID (finalizationId) or a request ID, including their copies. An object of
 * a job is kept if another job has stored it too.
 *
 * @throws Error if several callers chose this request ID
 * @param among destinations to search, `provider/configName`
 */
export async function findByWord(
  word: string,
  among: readonly string[],
  { database, destinations }: Removing,
): Promise<RemovalTarget[]> {
  const { entries, areUploads } = await findEntries(word, { among, isRemoved: false }, database)
  if (!areUploads) {
    const objects = new Set(entries.map(nameOf))
    return withCopies(entries, { database, destinations }, entry => objects.has(nameOf(entry)))
  }
  assertOneCaller(word, entries)
  const jobs = new Set(entries.map(({ jobId }) => jobId))
  return unique(entries, destinations, ({ jobId }) => jobs.has(jobId))
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
  word: string,
  among: readonly string[],
  { database }: Pick<Removing, 'database'>,
): Promise<number | undefined> {
  const { entries } = await findEntries(word, { among, isRemoved: true }, database)
  const times = entries.flatMap(({ removedAt = [] }) => removedAt)
  return times.length > 0 ? Math.max(...times) : undefined
}

/** @returns `areUploads`: they were found by the ID of their upload or request, not by the URL or key of their object */
async function findEntries(
  word: string,
  filter: Pick<HistoryFilter, 'among' | 'isRemoved'>,
  database: Removing['database'],
): Promise<{ readonly entries: HistoryEntry[]; readonly areUploads: boolean }> {
  const find = (what: Partial<HistoryFilter>) =>
    database.read(db => findFiles(db, { ...what, ...filter, limit: MOST_ENTRIES }))
  if (/^https?:/i.test(word) && URL.canParse(word))
    return { entries: await find({ urls: urlsOf(new URL(word)) }), areUploads: false }
  const ofKey = await find({ key: word })
  if (ofKey.length > 0) return { entries: ofKey, areUploads: false }
  const ofId = await find({ jobId: word })
  return { entries: ofId.length > 0 ? ofId : await find({ requestId: word }), areUploads: true }
}

/** A link to this server is kept without its beginning, which is not known here. */
function urlsOf({ href, pathname }: URL): string[] {
  const own = [...pathname.matchAll(/(?<=\/)(?:files|links)\//g)].map(({ index }) => pathname.slice(index))
  return [href, ...own]
}

/** The objects of these entries with all their copies. @param covers entries that need not be among them */
export async function withCopies(
  entries: readonly HistoryEntry[],
  { database, destinations }: Pick<Removing, 'database' | 'destinations'>,
  covers: (entry: HistoryEntry) => boolean,
): Promise<RemovalTarget[]> {
  // All copies of one input have the same job and index in the history.
  const inputOf = ({ jobId, index }: HistoryEntry) => `${jobId}/${index}`
  const inputs = new Set(entries.map(inputOf))
  const all = [...entries]
  const among = destinations.map(({ id }) => id)
  for (const jobId of new Set(entries.map(entry => entry.jobId))) {
    const ofJob = await database.read(db =>
      findFiles(db, { jobId, among, isRemoved: false, limit: MOST_ENTRIES }),
    )
    all.push(...ofJob.filter(entry => inputs.has(inputOf(entry))))
  }
  return unique(all, destinations, entry => covers(entry) || inputs.has(inputOf(entry)))
}

function unique(
  entries: readonly HistoryEntry[],
  destinations: readonly Destination[],
  covers: RemovalTarget['covers'],
): RemovalTarget[] {
  const objects = new Map(entries.map(entry => [nameOf(entry), entry]))
  return [...objects].map(([name, entry]) => {
    const { destination, key } = reach(entry, destinations) ?? {}
    const at = destination && key !== undefined ? { destination: destination.id, key } : entry
    return { name, destination: at.destination, key: at.key, covers }
  })
}

/** The destination of an object. Undefined if none leads to its location. */
function find({ destination, key, name }: RemovalTarget, destinations: readonly Destination[]) {
  return destinations.find(one => one.id === destination && objectName(one.location, key) === name)
}

/** The result that a removal would have. */
export async function previewRemoval(
  wanted: RemovalTarget,
  { database, destinations }: Pick<Removing, 'database' | 'destinations'>,
): Promise<Removal> {
  const { covers, name } = wanted
  const entries = await database.read(db =>
    findFiles(db, { objects: [name], isRemoved: false, limit: MOST_ENTRIES }),
  )
  const others = entries.filter(entry => !covers(entry)).length
  if (others > 0) return { kind: 'kept', others }
  const destination = find(wanted, destinations)
  if (destination?.target.remove) return { kind: 'removed' }
  const deleteUrl = entries.find(entry => entry.deleteUrl !== undefined)?.deleteUrl
  if (deleteUrl !== undefined) return { kind: 'manual', deleteUrl }
  const problem = destination
    ? 'files can not be removed there from here'
    : `it was stored at ${name}, where no destination of this configuration leads`
  return { kind: 'failed', problem }
}

const LOCKED: Removal = {
  kind: 'failed',
  problem: 'it is being uploaded or removed right now. Try again in a moment',
}

async function removeTaken(wanted: RemovalTarget, deps: Removing): Promise<Removal> {
  const preview = await previewRemoval(wanted, deps)
  const destination = find(wanted, deps.destinations)
  if (preview.kind !== 'removed' || !destination) return preview
  try {
    await removeKey(destination, wanted.key, AbortSignal.timeout(TIMEOUT_MS))
  } catch (error) {
    return { kind: 'failed', problem: messageOf(error) }
  }
  await noteRemoved(deps.database, [wanted.name])
  return preview
}

/**
 * Removes objects and marks their entries, except objects that are being stored or removed, or have entries that must be kept.
 *
 * @returns the results, in order
 */
export async function removeObjects(
  wanted: readonly RemovalTarget[],
  deps: Removing,
): Promise<readonly Removal[]> {
  const { database, owner } = deps
  await owner.keepAlive()
  try {
    const names = wanted.map(({ name }) => name)
    const taken = await database.tx(db => takeForRemoval(db, owner.id, names))
    const results: Removal[] = []
    for (const one of wanted) results.push(taken.has(one.name) ? await removeTaken(one, deps) : LOCKED)
    return results
  } finally {
    await database.tx(db => releaseRemovals(db, owner.id))
  }
}
