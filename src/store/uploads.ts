import { type Claim, type Claimant, claim, type Wanted } from './claims.ts'
import type { Copy, FailedFile, QuotaRule, QuotaWindow, StoredFile, UploadState } from './contract.ts'
import type { Database } from './database.ts'
import { type End, free, objectName, settle } from './objects.ts'
import { count, reserve } from './quotas.ts'
import { type Attempted, reserveRequest } from './requests.ts'
import { type Db, sql } from './sql.ts'
import { giveBackUnused, type Known, type NewUpload } from './upload-rows.ts'

/** One file of an upload with the objects that it needs: at its destination, and at each mirror. */
export interface PlannedFile {
  readonly index: number
  /** Bytes. */
  readonly size: number
  readonly wanted: readonly Wanted[]
}

/** Decision about an upload. */
export type Begun =
  | {
      readonly is: 'begun'
      readonly claims: ReadonlyMap<Wanted, Claim>
      /** Files for which a quota has no room, by index. They have no claims. */
      readonly full: ReadonlyMap<number, QuotaWindow>
    }
  | Known

const NO_QUOTA = { taken: [], full: new Map<number, QuotaWindow>() }

/**
 * Begins an upload: reserves its idempotency key, its quotas and its objects, in one transaction. Nothing is sent before that.
 */
export function begin(
  database: Database,
  upload: NewUpload,
  claimant: Claimant,
  files: readonly PlannedFile[],
  {
    request,
    quotas = [],
  }: { readonly request?: Attempted | undefined; readonly quotas?: readonly QuotaRule[] | undefined },
): Promise<Begun> {
  return database.tx(async db => {
    claimant.claimed.clear() // of an attempt at this transaction that was rolled back
    const known = request && (await reserveRequest(db, request, upload))
    if (known) return known
    const counts = quotas.length > 0 && files.length > 0
    const { taken, full } = counts ? await reserve(db, quotas, files) : NO_QUOTA
    await db.run(
      sql`insert into uploads
        (id, state, owner, created_at, caller, destination, request_id, origins, outcomes, steps, attempts, reserved)
        values (${upload.id}, 'uploading', ${upload.owner}, ${upload.createdAt}, ${upload.caller}, ${upload.destination},
        ${upload.requestId}, ${JSON.stringify(upload.origins)}, '{}', '[]', 0, ${JSON.stringify(taken)})`,
    )
    const all = files.flatMap(({ index, wanted }) => (full.has(index) ? [] : wanted))
    const claims = new Map<Wanted, Claim>()
    // In the same order everywhere, so that two uploads do not block each other.
    for (const wanted of all.length > 1 ? all.toSorted(byName) : all)
      claims.set(wanted, await claim(db, claimant, wanted))
    return { is: 'begun', claims, full }
  })
}

type Placed = Pick<Wanted, 'location' | 'key'>

function byName(one: Placed, other: Placed): number {
  return objectName(one.location, one.key) < objectName(other.location, other.key) ? -1 : 1
}

/** Claims objects for an upload that has begun: for its fallback, or again after it had to wait. */
export function claimMore(database: Database, claimant: Claimant, wanted: Wanted): Promise<Claim> {
  const before = [...claimant.claimed]
  return database.tx(db => {
    claimant.claimed.clear()
    for (const name of before) claimant.claimed.add(name)
    return claim(db, claimant, wanted)
  })
}

/** How an upload ended. */
export interface UploadEnd {
  readonly state: Exclude<UploadState, 'uploading'>
  readonly files: readonly StoredFile[]
  readonly failed: readonly FailedFile[]
  /** Files that are stored although their input has failed, because a required mirror has no copy. */
  readonly others?: readonly StoredFile[]
  /** Names of the objects that it has claimed. Default: not known. */
  readonly claimed?: ReadonlySet<string>
  /** Those that a transfer may have written, or may still write. If they are not stored, they pass to the process. */
  readonly open?: ReadonlySet<string>
}

/** Stored files of an upload, as they were written. */
export interface Finished {
  /** With the times at which they expire: the latest of all uploads of each object. */
  readonly files: readonly StoredFile[]
  /** Indexes of files whose objects were removed or replaced since: by another upload, or because this process has paused. */
  readonly lost: readonly number[]
}

const LOST = 'It was removed or replaced there at the same time.'

/**
 * Ends the delivery of an upload: writes its outcomes, its history and its objects, and gives back what it has not used of its
 * quotas, in one transaction.
 */
export function finish(database: Database, upload: NewUpload, end: UploadEnd): Promise<Finished> {
  return database.tx(async db => {
    const { state, failed, others = [], claimed, open = [] } = end
    const entries = [...end.files, ...others].flatMap(toEntries)
    /** The claimed objects that are stored. */
    const settled = new Set<string>()
    /** When the entries expire whose objects are stored. */
    const ends = new Map<string, End>()
    // In the same order as claims, so that two uploads do not block each other.
    for (const entry of entries.length > 1 ? entries.toSorted(byName) : entries) {
      const expiresAt = await settle(db, entry, upload.id)
      if (expiresAt === undefined) continue
      const name = objectName(entry.location, entry.key)
      if (!claimed || claimed.has(name)) settled.add(name)
      ends.set(idOf(entry), expiresAt)
    }
    // Each file before its copies: where its fallback is a mirror, too, the history has the one that is linked.
    for (const entry of entries) {
      const expiresAt = ends.get(idOf(entry))
      if (expiresAt !== undefined) await insertFile(db, upload, entry, expiresAt)
    }
    const files: StoredFile[] = []
    const lost: number[] = []
    for (const file of end.files) {
      const expiresAt = ends.get(idOf(file))
      if (expiresAt === undefined) lost.push(file.index)
      else
        files.push({ ...(file.mirrors ? withoutLost(file, ends) : file), expiresAt: expiresAt ?? undefined })
    }
    if (settled.size !== claimed?.size) {
      const left = [...open].filter(name => !settled.has(name))
      await free(db, upload.id, upload.owner, left)
    }
    if (files.length < upload.origins.length) {
      const also = others.filter(file => ends.has(idOf(file)))
      await giveBackUnused(db, upload.id, [...files, ...also])
    }
    const isWhole = lost.length === 0
    await db.run(
      sql`update uploads set state = ${isWhole ? state : 'failed'}, ended_at = ${state === 'stored' && isWhole ? null : db.time},
        outcomes = ${JSON.stringify({ files, failed })}, owner = ${upload.owner}, due_at = null, reserved = '[]', problem = null
        where id = ${upload.id}`,
    )
    return { files, lost }
  })
}

/** The ID of an entry in its upload. */
const idOf = ({ index, location, key }: Placed & { readonly index: number }) =>
  `${index} ${objectName(location, key)}`

function withoutLost(file: StoredFile, ends: ReadonlyMap<string, End>): StoredFile {
  const isLost = (copy: Copy) => isStored(copy) && !ends.has(idOf({ ...copy, index: file.index }))
  const mirrors = file.mirrors?.map(copy =>
    isLost(copy) ? { destination: copy.destination, error: LOST } : copy,
  )
  return { ...file, mirrors }
}

/**
 * Adds a file to the history of an upload that has ended: its transfer, which had been given up, was successful after all, or a
 * mirror was late.
 *
 * @param quotas those of the client, if the file counts
 * @returns false if the object belongs to another upload now
 */
export function finishLate(
  database: Database,
  upload: NewUpload,
  file: StoredFile,
  quotas: readonly QuotaRule[],
): Promise<boolean> {
  return database.tx(async db => {
    const expiresAt = await settle(db, file, upload.owner)
    if (expiresAt === undefined) return false
    await insertFile(db, upload, file, expiresAt)
    if (quotas.length > 0) await count(db, quotas, 1, file.size)
    return true
  })
}

type Entry = Omit<StoredFile, 'mirrors'>

/** One entry for the file and one for each copy at a mirror. What describes the content is the same in all of them. */
function toEntries({ mirrors = [], ...file }: StoredFile): Entry[] {
  const copies = mirrors.filter(isStored).map(copy => {
    const { deleteUrl, ...shared } = file
    return { ...shared, ...copy }
  })
  return [file, ...copies]
}

const isStored = (copy: Copy): copy is Copy & Required<Pick<Copy, 'key' | 'url' | 'location'>> =>
  copy.key !== undefined && copy.url !== undefined && copy.location !== undefined

async function insertFile(db: Db, upload: NewUpload, file: Entry, expiresAt: End): Promise<void> {
  const { index, destination, location, key, url, deleteUrl = null, size, contentType, sha256, origin } = file
  await db.run(
    sql`insert into files (upload, position, destination, location, object, key, url,
        delete_url, size, content_type, sha256, origin, caller, request_id, expires_at)
      values (${upload.id}, ${index}, ${destination}, ${location}, ${objectName(location, key)}, ${key}, ${url},
        ${deleteUrl}, ${size}, ${contentType}, ${sha256}, ${origin}, ${upload.caller}, ${upload.requestId}, ${expiresAt})
      on conflict (upload, position, destination) do nothing`,
  )
}
