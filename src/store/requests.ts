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
  /** Random. The random parts of its object keys are made from it, so that each attempt makes the same keys. */
  readonly seed: string
}

/**
 * Reserves an idempotency key. It is free if it is new, or if the upload that had it is old, has stored nothing, has lost a
 * file since, or belonged to a process that has ended.
 *
 * @returns the earlier upload; or, if the new one has the key now, the ID of the one whose claims it may use
 */
export async function reserveRequest(
  db: Db,
  request: RequestKey,
  upload: Pick<NewUpload, 'id' | 'createdAt'>,
): Promise<Known | { readonly takesOver?: string }> {
  const { key, fingerprint, seed } = request
  const { id, createdAt } = upload
  const inserted = await db.run(
    sql`insert into requests (key, fingerprint, upload, seed, created_at)
      values (${key}, ${fingerprint}, ${id}, ${seed}, ${createdAt}) on conflict (key) do nothing`,
  )
  if (inserted > 0) return {}
  const [row] = await db.all<RequestRow>(
    sql`select fingerprint, upload, seed, created_at from requests where key = ${key}${db.forUpdate}`,
  )
  if (!row) return reserveRequest(db, request, upload) // it was pruned in between
  // Its process may have been killed while the database was still committing its end.
  await db.all(sql`select id from uploads where id = ${row.upload}${db.forUpdate}`)
  const before = await readUpload(db, row.upload)
  const isOld = row.created_at < createdAt - REQUEST_KEPT_MS
  const isSame = row.fingerprint === fingerprint
  const isOver = before === undefined || isOld || (await isFree(db, before, isSame))
  if (!isOver) return { is: 'known', upload: before, fingerprint: row.fingerprint }
  const time = isOld || hasStored(before) ? createdAt : row.created_at
  await db.run(
    sql`update requests set upload = ${id}, fingerprint = ${fingerprint}, seed = ${seed}, created_at = ${time} where key = ${key}`,
  )
  if (before?.state === 'uploading')
    await fail(db, before.id, 'The process ended, and the client has repeated the request.')
  return before && isSame ? { takesOver: before.id } : {}
}

const hasStored = (upload: Upload | undefined): boolean => (upload?.files.length ?? 0) > 0

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

/** What the database knows of an idempotency key. */
export interface EarlierRequest {
  /** When the first attempt at the request began, and what the random parts of its object keys are made from. */
  readonly time: number
  readonly seed: string
  /** The upload that has the key, unless it is free: see `begin`. */
  readonly known: Known | undefined
}

/** @returns undefined if the key is new */
export async function earlierRequest(
  db: Db,
  { key, fingerprint }: Pick<RequestKey, 'key' | 'fingerprint'>,
  now: number,
): Promise<EarlierRequest | undefined> {
  const [row] = await db.all<RequestRow>(
    sql`select fingerprint, upload, seed, created_at from requests where key = ${key}`,
  )
  if (!row || row.created_at < now - REQUEST_KEPT_MS) return undefined
  const upload = await readUpload(db, row.upload)
  const isKnown = upload && !(await isFree(db, upload, row.fingerprint === fingerprint))
  // Its files are gone, so this is a new request.
  if (!isKnown && hasStored(upload)) return undefined
  const known = isKnown ? ({ is: 'known', upload, fingerprint: row.fingerprint } as const) : undefined
  return { time: row.created_at, seed: row.seed, known }
}

interface RequestRow {
  readonly fingerprint: string
  readonly upload: string
  readonly seed: string
  readonly created_at: number
}
