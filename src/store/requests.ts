import type { Upload } from './contract.ts'
import { isAlive } from './owners.ts'
import { type Db, sql } from './sql.ts'
import { fail, type Known, type NewUpload, readUpload } from './upload-rows.ts'

/** After this time an idempotency key counts as new. */
export const REQUEST_KEPT_MS = 24 * 60 * 60 * 1000

/** The `Idempotency-Key` of a request. */
export interface RequestKey {
  /** Unique to the client. */
  readonly key: string
  /** Hash of what the request asks for. */
  readonly fingerprint: string
}

/** The same for an attempt at the request. */
export interface Attempted extends RequestKey {
  /** Random. The random parts of its object keys are made from it, so that each attempt makes the same keys. */
  readonly seed: string
}

/**
 * Reserves an idempotency key. It is free if it is new, or if the upload that had it is old, has stored nothing, has lost a
 * file since, or belonged to a process that has ended.
 *
 * @returns the upload that has the key; undefined if the new one has it now
 */
export async function reserveRequest(
  db: Db,
  request: Attempted,
  upload: Pick<NewUpload, 'id' | 'createdAt'>,
): Promise<Known | undefined> {
  const { key, fingerprint, seed } = request
  const { id, createdAt } = upload
  const inserted = await db.run(
    sql`insert into requests (key, fingerprint, upload, seed, created_at)
      values (${key}, ${fingerprint}, ${id}, ${seed}, ${createdAt}) on conflict (key) do nothing`,
  )
  if (inserted > 0) return undefined
  const [row] = await db.all<{ upload: string }>(
    sql`select upload from requests where key = ${key}${db.forUpdate}`,
  )
  // Its process may have been killed while the database was still committing its end.
  await db.all(sql`select id from uploads where id = ${row?.upload ?? null}${db.forUpdate}`)
  const before = await earlierRequest(db, request, createdAt)
  if (!before) return reserveRequest(db, request, upload) // it was pruned in between
  if (before.known) return before.known
  const time = before.first?.time ?? createdAt
  await db.run(
    sql`update requests set upload = ${id}, fingerprint = ${fingerprint}, seed = ${seed}, created_at = ${time} where key = ${key}`,
  )
  if (before.upload?.state === 'uploading')
    await fail(db, before.upload.id, 'The process ended, and the client has repeated the request.')
  return undefined
}

/** Record of an idempotency key. */
export interface EarlierRequest {
  /** The last upload with this key. */
  readonly upload: Upload | undefined
  /** The same, unless the key is free: see `reserveRequest`. */
  readonly known: Known | undefined
  /**
   * When the first attempt at the request began, and what the random parts of its object keys are made from. Undefined if the
   * record is old, or if what was stored is gone: the request is a new one then.
   */
  readonly first: { readonly time: number; readonly seed: string } | undefined
}

/** @returns undefined if the key is new */
export async function earlierRequest(
  db: Db,
  { key, fingerprint }: RequestKey,
  now: number,
): Promise<EarlierRequest | undefined> {
  const [row] = await db.all<RequestRow>(
    sql`select fingerprint, upload, seed, created_at as time from requests where key = ${key}`,
  )
  if (!row) return undefined
  const upload = await readUpload(db, row.upload)
  const isOld = row.time < now - REQUEST_KEPT_MS
  const isKnown = upload && !isOld && !(await isFree(db, upload, row.fingerprint === fingerprint))
  return {
    upload,
    known: isKnown ? { is: 'known', upload, fingerprint: row.fingerprint } : undefined,
    first: isOld || upload?.files.length ? undefined : row,
  }
}

async function isFree(db: Db, upload: Upload, isSame: boolean): Promise<boolean> {
  if (upload.state === 'uploading') return isSame && !(await isAlive(db, upload.owner))
  if (upload.state === 'failed' && upload.files.length === 0) return true
  if (!isSame) return false
  const [gone] = await db.all(
    sql`select 1 as one from files left join objects on objects.name = files.object where upload = ${upload.id}
      and (removed_at is not null or objects.expires_at <= ${db.time}) limit 1`,
  )
  return gone !== undefined
}

interface RequestRow {
  readonly fingerprint: string
  readonly upload: string
  readonly seed: string
  readonly time: number
}
