import { type Claim, type Claimant, claim, type Wanted } from './claims.ts'
import type { Copy, FailedFile, QuotaRule, QuotaWindow, StoredFile, UploadState } from './contract.ts'
import type { Database } from './database.ts'
import { contentName, free, objectName, settle } from './objects.ts'
import { count, reserve } from './quotas.ts'
import { type Attempted, reserveRequest } from './requests.ts'
import { type Db, Rows, sql, type Value } from './sql.ts'
import { giveBackUnused, type Known, type NewUpload } from './upload-rows.ts'

/** One file of an upload with the objects that it needs: at its destination, and at each mirror. */
export interface PlannedFile {
  readonly index: number
  /** Bytes. */
  readonly size: number
  readonly wanted: readonly Wanted[]
}

/** An object that a file needs, and what the upload may do with it. */
export interface Claimed {
  readonly wanted: Wanted
  readonly claim: Claim
}

/** Decision about an upload. */
export type Begun<F extends PlannedFile = PlannedFile> =
  /** For each file, in order, its objects, or the quota that has no room for it. */
  | {
      readonly is: 'begun'
      readonly files: readonly ({ readonly file: F } & (
        | { readonly objects: readonly Claimed[] }
        | { readonly full: QuotaWindow }
      ))[]
    }
  | Known

const NO_QUOTA = { taken: [], full: new Map<number, QuotaWindow>() }

/**
 * Begins an upload: reserves its idempotency key, its quotas and its objects, in one transaction. Nothing is sent before that.
 */
export function begin<F extends PlannedFile>(
  database: Database,
  upload: NewUpload,
  claimant: Claimant,
  files: readonly F[],
  {
    request,
    quotas = [],
  }: { readonly request?: Attempted | undefined; readonly quotas?: readonly QuotaRule[] },
): Promise<Begun<F>> {
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
    const claimed = new Map<Wanted, Claimed>()
    // In the same order everywhere, so that two uploads do not block each other.
    for (const wanted of all.length > 1 ? all.toSorted(byName) : all)
      claimed.set(wanted, { wanted, claim: await claim(db, claimant, wanted) })
    return {
      is: 'begun',
      files: files.map(file => {
        const window = full.get(file.index)
        return window
          ? { file, full: window }
          : { file, objects: file.wanted.flatMap(one => claimed.get(one) ?? []) }
      }),
    }
  })
}

function byName(one: Wanted, other: Wanted): number {
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
    const objects = [...end.files, ...others].flatMap(toEntries).map(toObject)
    const ends = await settle(db, objects, upload.id)
    const written = <T extends StoredFile>(file: T): T[] => {
      const endOf = ({ location, key }: Pick<Entry, 'location' | 'key'>) =>
        ends.get(contentName(objectName(location, key), file.sha256))
      const expiresAt = endOf(file)
      if (expiresAt === undefined) return []
      const mirrors = file.mirrors?.map(copy => {
        if (!isStored(copy)) return copy
        const end = endOf(copy)
        if (end === undefined) return { destination: copy.destination, error: LOST }
        return { ...copy, expiresAt: end ?? undefined }
      })
      return [{ ...file, expiresAt: expiresAt ?? undefined, ...(mirrors && { mirrors }) }]
    }
    const files = end.files.flatMap(written)
    const also = others.flatMap(written)
    await insertFiles(db, upload, [...files, ...also].flatMap(toEntries))
    const settled = new Set(
      objects.flatMap(one => (ends.has(contentName(one.name, one.sha256)) ? one.name : [])),
    )
    const isSettled = (name: string) => settled.has(name)
    if (!claimed || ![...claimed].every(isSettled)) {
      const left = [...open].filter(name => !isSettled(name))
      await free(db, upload.id, upload.owner, left)
    }
    const kept = new Set(files.map(({ index }) => index))
    const lost = end.files.map(({ index }) => index).filter(index => !kept.has(index))
    const isWhole = lost.length === 0
    if (files.length < upload.origins.length) await giveBackUnused(db, upload.id, [...files, ...also])
    await db.run(
      sql`update uploads set state = ${isWhole ? state : 'failed'}, ended_at = ${state === 'stored' && isWhole ? null : db.time},
        outcomes = ${JSON.stringify({ files, failed })}, owner = ${upload.owner}, due_at = null, reserved = '[]', problem = null
        where id = ${upload.id}`,
    )
    return { files, lost }
  })
}

const toObject = ({ destination, location, key, sha256, expiresAt }: Entry) => ({
  name: objectName(location, key),
  ...{ destination, location, key, sha256 },
  expiresAt: expiresAt ?? null,
})

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
    const settled = await settle(db, [toObject(file)], upload.owner)
    if (settled.size === 0) return false
    await insertFiles(db, upload, [file])
    if (quotas.length > 0) await count(db, quotas, 1, file.size)
    return true
  })
}
type Entry = Omit<StoredFile, 'mirrors'>

/** One entry for the file and one for each copy at a mirror. What describes the content is the same in all of them. */
function toEntries({ mirrors = [], ...file }: StoredFile): Entry[] {
  const copies = mirrors.filter(isStored).map(({ expiresAt, ...copy }) => {
    const { deleteUrl, expiresAt: _, ...shared } = file
    return { ...shared, ...copy, expiresAt }
  })
  return [file, ...copies]
}

const isStored = (copy: Copy): copy is Copy & Required<Pick<Copy, 'key' | 'url' | 'location'>> =>
  copy.key !== undefined && copy.url !== undefined && copy.location !== undefined

async function insertFiles(
  db: Db,
  { id, caller, requestId }: NewUpload,
  entries: readonly Entry[],
): Promise<void> {
  if (entries.length === 0) return
  const rows: Value[][] = entries.map(one => [
    ...[id, one.index, one.destination, one.location, objectName(one.location, one.key), one.key, one.url],
    ...[one.deleteUrl, one.size, one.contentType, one.sha256, one.origin, caller, requestId, one.expiresAt],
  ])
  await db.run(
    sql`insert into files (upload, position, destination, location, object, key, url,
        delete_url, size, content_type, sha256, origin, caller, request_id, expires_at)
      values ${new Rows(rows)} on conflict (upload, position, destination) do nothing`,
  )
}
