import type { StoredFile, Upload } from './contract.ts'
import { giveBack, type Reserved } from './quotas.ts'
import { type Db, Raw, sql } from './sql.ts'

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
  const [row] = await db.all<UploadRow>(sql`select ${COLUMNS} from uploads where id = ${id}`)
  return row && toUpload(row)
}

export const COLUMNS =
  new Raw(`id, state, owner, created_at as "createdAt", ended_at as "endedAt", caller, destination,
  request_id as "requestId", origins, outcomes, steps, attempts, problem`)

/** What `COLUMNS` returns. Lists and outcomes are JSON. */
export type UploadRow = Omit<Upload, 'endedAt' | 'problem' | 'origins' | 'steps' | 'files' | 'failed'> & {
  readonly endedAt: number | null
  readonly problem: string | null
  readonly origins: string
  readonly steps: string
  readonly outcomes: string
}

export function toUpload({ outcomes, ...row }: UploadRow): Upload {
  const { files = [], failed = [] } = JSON.parse(outcomes)
  return {
    ...{ ...row, files, failed },
    origins: JSON.parse(row.origins),
    steps: JSON.parse(row.steps),
    endedAt: row.endedAt ?? undefined,
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
