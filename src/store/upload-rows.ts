import type { StoredFile, Upload, UploadState } from './contract.ts'
import { giveBack, type Reserved } from './quotas.ts'
import { type Db, sql } from './sql.ts'

export type NewUpload = Pick<
  Upload,
  'id' | 'owner' | 'createdAt' | 'caller' | 'destination' | 'requestId' | 'origins'
>

/** Gives back what an upload has reserved of quotas and not used. It is read again: another process may have done it. */
export async function giveBackUnused(db: Db, id: string, stored: readonly StoredFile[]): Promise<void> {
  const [row] = await db.all<{ reserved: string }>(sql`select reserved from uploads where id = ${id}`)
  if (!row || row.reserved === '[]') return
  const reserved: Reserved[] = JSON.parse(row.reserved)
  const bytes = stored.reduce((sum, { size }) => sum + size, 0)
  await giveBack(
    db,
    reserved.map(one => ({ ...one, files: one.files - stored.length, bytes: one.bytes - bytes })),
  )
}

/** Ends an upload of which nothing is stored. */
export async function fail(db: Db, id: string, problem: string): Promise<void> {
  await giveBackUnused(db, id, [])
  await db.run(
    sql`update uploads set state = 'failed', ended_at = ${db.time}, reserved = '[]', problem = ${problem}
      where id = ${id} and state = 'uploading'`,
  )
}

export async function readUpload(db: Db, id: string): Promise<Upload | undefined> {
  const [row] = await db.all<UploadRow>(sql`select * from uploads where id = ${id}`)
  return row && toUpload(row)
}

export interface UploadRow {
  readonly id: string
  readonly state: UploadState
  readonly owner: string
  readonly created_at: number
  readonly ended_at: number | null
  readonly caller: string
  readonly destination: string
  readonly request_id: string
  readonly origins: string
  readonly outcomes: string
  readonly steps: string
  readonly attempts: number
  readonly problem: string | null
}

export function toUpload(row: UploadRow): Upload {
  const { id, state, owner, caller, destination, attempts } = row
  const { files = [], failed = [] } = JSON.parse(row.outcomes)
  return {
    ...{ id, state, owner, caller, destination, attempts, files, failed },
    createdAt: row.created_at,
    endedAt: row.ended_at ?? undefined,
    requestId: row.request_id,
    origins: JSON.parse(row.origins),
    steps: JSON.parse(row.steps),
    problem: row.problem ?? undefined,
  }
}

/** The upload of an earlier request with the same idempotency key. */
export interface Known {
  readonly is: 'known'
  readonly upload: Upload
  /** Hash of what that request asked for. */
  readonly fingerprint: string
}
