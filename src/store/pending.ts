import type { Upload } from './contract.ts'
import type { Database } from './database.ts'
import { isAlive } from './owners.ts'
import { type Db, sql } from './sql.ts'
import { COLUMNS, fail, toUpload, type UploadRow } from './upload-rows.ts'

/**
 * Ends the uploads of processes that have ended. Uploads whose files are all stored are due at once.
 *
 * @param report called for each interrupted upload, possibly twice, before the change is committed, so that none is missed
 */
export function reap(database: Database, report: (upload: Upload) => void): Promise<void> {
  return database.tx(async db => {
    const owners = await db.all<{ owner: string }>(
      sql`select distinct owner from uploads where ended_at is null and owner <> ''`,
    )
    for (const { owner } of owners) {
      if (await isAlive(db, owner)) continue
      const rows = await db.all<UploadRow>(
        sql`select ${COLUMNS} from uploads where owner = ${owner} and ended_at is null${db.forUpdate}`,
      )
      for (const upload of rows.map(toUpload)) {
        if (upload.state === 'uploading') {
          report(upload)
          await fail(db, upload.id, 'The process ended during the upload.')
        }
      }
      await db.run(
        sql`update uploads set owner = '', due_at = ${db.time} where owner = ${owner} and state = 'stored'`,
      )
      await db.run(sql`delete from owners where id = ${owner}`)
    }
  })
}

/**
 * Takes an upload whose files are all stored, to run its post-upload steps. Only one caller gets it.
 *
 * @returns undefined if another process runs them
 */
export function takeStored(database: Database, id: string, owner: string): Promise<Upload | undefined> {
  return database.tx(async db => {
    const [row] = await db.all<UploadRow>(sql`select ${COLUMNS} from uploads where id = ${id}${db.forUpdate}`)
    if (row?.state !== 'stored') return undefined
    if (row.owner !== '' && row.owner !== owner && (await isAlive(db, row.owner))) return undefined
    await db.run(sql`update uploads set owner = ${owner}, due_at = null where id = ${id}`)
    return toUpload(row)
  })
}

/** The progress of the post-upload steps. */
export interface Progress {
  readonly state: 'stored' | 'done'
  readonly steps: readonly string[]
  readonly attempts: number
  readonly problem?: string | undefined
  /** Pause before they are tried again, milliseconds. Undefined: they are running. */
  readonly pauseMs?: number | undefined
}

/** Writes the progress. @returns false if another process has taken the upload; then nothing is written */
export function advance(
  database: Database,
  id: string,
  owner: string,
  { state, steps, attempts, problem, pauseMs }: Progress,
): Promise<boolean> {
  return database.tx(async db => {
    const dueAt = pauseMs === undefined ? null : sql`${db.time} + ${pauseMs}`
    const changed = await db.run(
      sql`update uploads set state = ${state}, steps = ${JSON.stringify(steps)}, attempts = ${attempts}, problem = ${problem ?? null},
        owner = ${pauseMs === undefined ? owner : ''}, due_at = ${dueAt},
        ended_at = ${state === 'done' ? db.time : null}
        where id = ${id} and state = 'stored' and (owner = ${owner} or owner = '')`,
    )
    return changed > 0
  })
}

/**
 * Uploads whose post-upload steps are due.
 *
 * @param longestPauseMs an attempt that is later than this was planned by a clock that has been set back, and is due
 */
export async function dueUploads(db: Db, limit: number, longestPauseMs: number): Promise<string[]> {
  const now = await db.now()
  const rows = await db.all<{ id: string }>(
    sql`select id from uploads where ended_at is null and owner = '' and state = 'stored'
      and (due_at <= ${now} or due_at > ${now + longestPauseMs}) order by due_at limit ${limit}`,
  )
  return rows.map(({ id }) => id)
}

/** All uploads whose post-upload steps are pending or running. */
export async function pendingUploads(db: Db): Promise<Upload[]> {
  const rows = await db.all<UploadRow>(
    sql`select ${COLUMNS} from uploads where ended_at is null and state = 'stored' order by created_at`,
  )
  return rows.map(toUpload)
}
