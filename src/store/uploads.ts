import { type Claim, type Claimant, claim, claimAll, type Wanted } from './claims.ts'
import type { Copy, FailedFile, QuotaRule, QuotaWindow, StoredFile, UploadState } from './contract.ts'
import type { Database } from './database.ts'
import { contentName, free, objectName, settle } from './objects.ts'
import { addReserved, type Reserved, reserve } from './quotas.ts'
import { type RequestKey, reserveRequest } from './requests.ts'
import { type Db, Rows, sql, type Value } from './sql.ts'
import { giveBackUnused, type Known, type NewUpload } from './upload-rows.ts'

/** One file of an upload with the objects that it needs: at its destination, and at each mirror. */
export interface PlannedFile {
  readonly index: number
  /** Bytes. */
  readonly size: number
  readonly wanted: readonly Wanted[]
}

/** What an upload may do. */
export type Begun =
  /** For each file, in order, its claims, or the quota that has no room for it. */
  | {
      readonly is: 'begun'
      readonly files: readonly ({ readonly claims: readonly Claim[] } | { readonly full: QuotaWindow })[]
    }
  | Known

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
  }: { readonly request?: RequestKey | undefined; readonly quotas?: readonly QuotaRule[] },
): Promise<Begun> {
  return database.tx(async db => {
    claimant.claimed.clear() // of an attempt at this transaction that was rolled back
    const reserved = request && (await reserveRequest(db, request, upload))
    if (reserved && 'is' in reserved) return reserved
    claimant.takesOver = reserved?.takesOver
    const { fitting, full, taken } = await reserveQuotas(db, quotas, files)
    await db.run(
      sql`insert into uploads
        (id, state, owner, created_at, caller, destination, request_id, origins, outcomes, steps, attempts, reserved)
        values (${upload.id}, 'uploading', ${upload.owner}, ${upload.createdAt}, ${upload.caller}, ${upload.destination},
        ${upload.requestId}, ${JSON.stringify(upload.origins)}, '{}', '[]', 0, ${JSON.stringify(taken)})`,
    )
    const claims = await claimAll(
      db,
      claimant,
      fitting.flatMap(({ wanted }) => wanted),
    )
    let next = 0
    return {
      is: 'begun',
      files: files.map(file => {
        const window = full.get(file.index)
        if (window) return { full: window }
        next += file.wanted.length
        return { claims: claims.slice(next - file.wanted.length, next) }
      }),
    }
  })
}

/** Most uploads fit as a whole. Otherwise each file is tried for itself, in order. */
async function reserveQuotas(
  db: Db,
  rules: readonly QuotaRule[],
  files: readonly PlannedFile[],
): Promise<{
  readonly fitting: readonly PlannedFile[]
  readonly full: ReadonlyMap<number, QuotaWindow>
  readonly taken: readonly Reserved[]
}> {
  const full = new Map<number, QuotaWindow>()
  if (rules.length === 0 || files.length === 0) return { fitting: files, full, taken: [] }
  const now = await db.now()
  const bytes = files.reduce((sum, { size }) => sum + size, 0)
  const whole = await reserve(db, rules, files.length, bytes, now)
  if ('taken' in whole) return { fitting: files, full, taken: whole.taken }
  const [fitting, taken]: [PlannedFile[], Reserved[]] = [[], []]
  for (const file of files) {
    const one = await reserve(db, rules, 1, file.size, now)
    if ('full' in one) full.set(file.index, one.full)
    else {
      fitting.push(file)
      taken.push(...one.taken)
    }
  }
  return { fitting, full, taken: addReserved(taken) }
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
  /** Names of objects that a transfer may still write. They pass to the process. */
  readonly left?: readonly string[]
  /** Whether it has stored all objects that it has claimed, so that there is nothing to free. Default: not known. */
  readonly isSettled?: boolean
}

/** What an upload has stored, as it was written. */
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
    const { state, failed, others = [], left = [] } = end
    const objects = [...end.files, ...others].flatMap(file => toEntries(upload, file)).map(toObject)
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
    const entries = [...files, ...also].flatMap(file => toEntries(upload, file))
    await insertFiles(db, upload, entries)
    const isClean = end.isSettled && ends.size === new Set(objects.map(({ name }) => name)).size
    if (!isClean) await free(db, upload.id, upload.owner, left)
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
  file: StoredFile & { readonly destination: string },
  quotas: readonly QuotaRule[],
): Promise<boolean> {
  return database.tx(async db => {
    const settled = await settle(db, [toObject(file)], upload.owner)
    if (settled.size === 0) return false
    await insertFiles(db, upload, [file])
    const unlimited = quotas.map(({ client, group, windowMs }) => ({ client, group, windowMs }))
    if (unlimited.length > 0) await reserve(db, unlimited, 1, file.size, await db.now())
    return true
  })
}

type Entry = Omit<StoredFile, 'destination' | 'mirrors'> & { readonly destination: string }

/** One entry for the file and one for each copy at a mirror. What describes the content is the same in all of them. */
function toEntries(upload: NewUpload, { destination, mirrors = [], ...file }: StoredFile): Entry[] {
  const copies = mirrors.filter(isStored).map(({ expiresAt, ...copy }) => {
    const { deleteUrl, expiresAt: _, ...shared } = file
    return { ...shared, ...copy, expiresAt }
  })
  return [{ ...file, destination: destination ?? upload.destination }, ...copies]
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
