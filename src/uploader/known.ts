import { orAborted } from '../flow/cancellation.ts'
import { mapConcurrently } from '../flow/map-concurrently.ts'
import { beginTimeLimit } from '../flow/time-limit.ts'
import type { HistoryEntry, StoredFile } from '../store/contract.ts'
import { findFiles } from '../store/history.ts'
import { begin } from '../store/uploads.ts'
import type { Uploader } from './app.ts'
import type { Destination } from './destinations.ts'
import { expiresAt } from './expiry.ts'
import { type Caller, keptOrigin, type UploadOptions } from './input.ts'
import { keptUrlAgain, linkOf } from './links.ts'
import { newUpload } from './request.ts'
import { exists } from './send.ts'

/** Uploads of one content that are looked at, latest first. On average, if there are many contents. */
const MOST_UPLOADS = 10
/** Objects that the destination is asked for at the same time. */
const SIDE_BY_SIDE = 8

/** A file that a client has, and may not have to send. */
export interface AskedFile {
  readonly name: string
  /** SHA-256 of its content, hex. Undefined: the latest list of reviewed images of this name. */
  readonly sha256?: string
  /** Bytes. */
  readonly size?: number
}

export interface KnownRequest {
  readonly destination: Destination
  readonly files: readonly AskedFile[]
  readonly options: Pick<UploadOptions, 'expires'>
  readonly caller: Caller
  readonly requestId: string
  /** URL of this server as the client sees it, with a final slash. */
  readonly baseUrl: string
  readonly signal: AbortSignal
}

/**
 * Finds the files that the client has stored at the destination before. Those with a hash become an upload of their own, in the
 * history, for the quotas and for the hooks; their objects expire later. A list that is sought by its name does not: otherwise
 * the look for one would make it the latest, although another one is being stored.
 *
 * @returns a link for each file, in order; undefined if it must be sent
 * @throws FinalizationPending if a hook fails; UploadError if the database can't be reached
 */
export async function findKnownFiles(request: KnownRequest, deps: Uploader): Promise<(string | undefined)[]> {
  const { destination, files, caller, options, baseUrl, signal } = request
  const links: (string | undefined)[] = files.map(() => undefined)
  const hashes = mayKnow(destination) ? [...new Set(files.flatMap(({ sha256 }) => sha256 ?? []))] : []
  // Anonymous clients share one name, so one of them could replace the list of another.
  const names = caller.admittedBy === 'anonymous' ? [] : files.filter(({ sha256 }) => sha256 === undefined)
  const { id } = destination
  // Objects of other clients are not found: a hash must not tell what others have.
  const theirs = {
    by: caller.name,
    among: [id],
    location: destination.location,
    isRemoved: false,
    isCurrent: true,
  } as const
  const { objects, reviews } = await deps.database.read(async db => {
    const reviews = new Map<string, HistoryEntry>()
    for (const { name } of names) {
      const [review] = await findFiles(db, { ...theirs, review: keptOrigin(name), limit: 1 })
      if (review) reviews.set(name, review)
    }
    const limit = hashes.length * MOST_UPLOADS
    return { objects: limit > 0 ? await findFiles(db, { ...theirs, hashes, limit }) : [], reviews }
  })
  const { timeoutMs } = deps.limits
  const limit = beginTimeLimit(timeoutMs, signal, () => new Error('the destination did not respond in time'))
  const isThere = await deps.slots
    .of(id)
    .run(() => lookForAll([...objects, ...reviews.values()], destination, limit.signal), signal)
    .finally(limit.end)
  signal.throwIfAborted()
  // There may be ten times as many objects as files: each upload of a file is one.
  const byContent = new Map<string, HistoryEntry[]>()
  for (const object of objects) {
    const same = byContent.get(object.sha256)
    if (same) same.push(object)
    else byContent.set(object.sha256, [object])
  }
  const linkTo = (url: string) => linkOf(id, url, baseUrl, deps.destinations)
  for (const [index, { sha256, name }] of files.entries()) {
    const review = sha256 === undefined ? reviews.get(name) : undefined
    if (review && isThere.has(review.key))
      links[index] = linkTo(await keptUrlAgain(destination, review, signal))
  }
  const found = files.flatMap(({ sha256 = '', size, name }, index): (HistoryEntry & { name: string })[] => {
    const sought = byContent.get(sha256) ?? []
    const fitting = sought.filter(one => one.size === size && isThere.has(one.key))
    const object = fitting.find(({ origin }) => origin === keptOrigin(name)) ?? fitting[0]
    return object ? [{ ...object, index, name }] : []
  })
  if (found.length === 0) return links

  const now = Date.now()
  const inputs = found.map(({ name }) => ({ origin: name }))
  const upload = newUpload(request, inputs, deps.owner.id, now)
  await deps.owner.keepAlive()
  const { quotas } = caller
  const planned = found.map(file => ({ ...file, wanted: [] }))
  const begun = await begin(deps.database, upload, { id: upload.id, claimed: new Set() }, planned, { quotas })
  const end = expiresAt(destination, options.expires, now)
  const stored: StoredFile[] = []
  for (const file of found) {
    if (begun.is === 'begun' && begun.full.has(file.index)) continue
    const { index, key, size, contentType, sha256, deleteUrl, location } = file
    const url = await keptUrlAgain(destination, file, signal)
    stored.push({
      ...{ index, key, url, size, contentType, sha256, deleteUrl, location },
      ...{ origin: keptOrigin(file.name), expiresAt: end, destination: id },
    })
  }
  const state = deps.hooks.length > 0 && stored.length > 0 ? 'stored' : 'done'
  const saved = await deps.finalizer.save(upload, { state, files: stored, failed: [], claimed: new Set() })
  if (state === 'stored' && saved.lost.length === 0)
    await deps.finalizer.runHooks(upload.id, baseUrl, deps.hooks)
  for (const { index, url } of saved.files) links[index] = linkTo(url)
  return links
}

/** Whether a hash of the client can be compared with those of stored objects, and an object looked for. */
function mayKnow({ pictures, mirrors, target }: Destination): boolean {
  return pictures === undefined && mirrors.length === 0 && target.exists !== undefined
}

/** The keys of the objects that are still at the destination, if it can tell. One that can't be asked for counts as gone. */
async function lookForAll(
  objects: readonly HistoryEntry[],
  destination: Destination,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  if (destination.target.exists === undefined) return new Set(objects.map(({ key }) => key))
  const there = new Set<string>()
  await mapConcurrently([...new Set(objects.map(({ key }) => key))], SIDE_BY_SIDE, async key => {
    if (await orAborted(exists(destination, key, signal), signal).catch(() => false)) there.add(key)
  })
  return there
}
