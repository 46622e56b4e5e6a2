import { UploadError } from '../errors.ts'
import type { Selectable } from '../packages/kysely.ts'
import type { StoreAccess } from './access.ts'
import { createBatcher } from './batch.ts'
import { IdempotencyKeyTaken, type Job, type JobStore, type Progress, type StoredFile } from './contract.ts'
import { toFile } from './history-columns.ts'
import { prune } from './prune.ts'
import { type Database, IN_HISTORY, type Tables } from './tables.ts'

/** The jobs of a database. @param holders jobs that have locks */
export function createJobStore(access: StoreAccess, holders: Set<string>): JobStore {
  const { read, write, commit } = access
  const writeSoon = createBatcher(commit)
  /** Jobs of this process that were not delivered before this turn of the event loop. Without others, a write does not wait. */
  const inProgress = new Set<string>()
  return {
    async begin(job, idempotencyKey, reservation) {
      const isAlone = inProgress.size === 0
      try {
        await writeSoon(statements => statements.begin(job, idempotencyKey, reservation), isAlone)
      } catch (error) {
        const isTaken =
          reservation !== undefined && !(error instanceof UploadError) && (await read(isReserved))
        throw isTaken ? new IdempotencyKeyTaken('another request has reserved it', { cause: error }) : error
      }
      inProgress.add(job.id)

      async function isReserved(db: Database): Promise<boolean> {
        const rows = db
          .selectFrom('repetitions')
          .select('seed')
          .where('key', '=', idempotencyKey ?? '')
        const found = await rows.executeTakeFirst()
        return found !== undefined && found.seed !== reservation?.seed
      }
    },
    async deliver(id, delivery) {
      const isAlone = inProgress.size <= 1
      setImmediate(() => inProgress.delete(id))
      const isHolding = holders.has(id)
      await writeSoon(statements => statements.deliver(id, delivery, isHolding), isAlone)
      holders.delete(id)
    },

    claim: (id, owner, from = owner) => write(db => claimJob(db, id, owner, from)),
    advance: (id, owner, progress) => write(db => advanceJob(db, id, owner, progress)),
    job: id => read(db => readJob(db, id)),
    due: (now, limit, longestPauseMs) => read(db => readDue(db, now, limit, longestPauseMs)),
    pending: () => read(readPending),
    abandon: (owner, report) => write(db => abandonJobs(db, owner, report)),
    pruneJobs: async before => void (await prune(access, 'jobs', before, undefined, firstIdAt(before))),
  }
}

/** Where the IDs of jobs begin that were made at a time or later: they are UUIDs of version 7, which begin with it. */
function firstIdAt(time: number): string {
  const digits = Math.max(0, time).toString(16).padStart(12, '0')
  return `${digits.slice(0, 8)}-${digits.slice(8)}`
}

async function claimJob(db: Database, id: string, owner: string, from: string): Promise<Job | undefined> {
  const row = await db
    .updateTable('jobs')
    .set({ state: 'finalizing', owner })
    .where('id', '=', id)
    .where(eb =>
      eb.or([
        eb('state', '=', 'delivered'),
        eb.and([eb('state', '=', 'finalizing'), eb('owner', '=', from)]),
      ]),
    )
    .returningAll()
    .executeTakeFirst()
  return row && toJob(row)
}

async function advanceJob(
  db: Database,
  id: string,
  owner: string,
  { state, steps, attempts, problem, now, pauseMs = 0 }: Progress,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('jobs')
    .set({
      state,
      steps: JSON.stringify(steps),
      attempts,
      problem: problem ?? null,
      next_attempt_at: now + pauseMs,
      finished_at: state === 'finished' ? now : null,
    })
    .where('id', '=', id)
    .where('owner', '=', owner)
    .where('state', '=', 'finalizing')
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

const unfinished = (db: Database) => db.selectFrom('jobs').selectAll().where('finished_at', 'is', null)

async function readDue(db: Database, now: number, limit: number, longestPauseMs: number): Promise<Job[]> {
  const rows = await unfinished(db)
    .where('state', '=', 'delivered')
    .where(eb => eb.or([eb('next_attempt_at', '<=', now), eb('next_attempt_at', '>', now + longestPauseMs)]))
    .orderBy('next_attempt_at')
    .limit(limit)
    .execute()
  return rows.map(toJob)
}

async function readPending(db: Database): Promise<Job[]> {
  const rows = await unfinished(db)
    .where('state', 'in', ['delivered', 'finalizing'])
    .orderBy('created_at')
    .execute()
  return rows.map(toJob)
}

/** Reports interrupted jobs inside the transaction: see `JobStore.abandon`. */
async function abandonJobs(db: Database, owner: string, report: (job: Job) => void): Promise<void> {
  await db
    .updateTable('jobs')
    .set({ state: 'delivered' })
    .where('finished_at', 'is', null)
    .where('owner', '=', owner)
    .where('state', '=', 'finalizing')
    .execute()
  const rows = await db
    .updateTable('jobs')
    .set(eb => ({ state: 'interrupted', finished_at: eb.ref('created_at') }))
    .where('finished_at', 'is', null)
    .where('owner', '=', owner)
    .where('state', '=', 'uploading')
    .returningAll()
    .execute()
  await db.deleteFrom('key_holds').where('owner', '=', owner).execute()
  await db
    .updateTable('quotas')
    .set({ reserved_files: 0, reserved_bytes: 0 })
    .where('owner', '=', owner)
    .execute()
  await db.deleteFrom('owners').where('id', '=', owner).execute()
  for (const row of rows) report(toJob(row))
}

/** See `JobStore.job`. */
export async function readJob(db: Database, id: string): Promise<Job | undefined> {
  const row = await db.selectFrom('jobs').selectAll().where('id', '=', id).executeTakeFirst()
  if (row?.files !== IN_HISTORY) return row && toJob(row)
  const files = await readFiles(db, row)
  // Without its history entries, the files of the job are unknown.
  return files.length === 0 ? undefined : toJob({ ...row, files: JSON.stringify(files) })
}

async function readFiles(
  db: Database,
  { id, destination }: Selectable<Tables['jobs']>,
): Promise<StoredFile[]> {
  const rows = await db
    .selectFrom('history')
    .selectAll()
    .where('job_id', '=', id)
    .orderBy('position')
    .execute()
  return rows.map(row => {
    const file = toFile(row)
    return row.destination === destination ? file : { ...file, destination: row.destination }
  })
}

function toJob(row: Selectable<Tables['jobs']>): Job {
  return {
    id: row.id,
    state: row.state,
    createdAt: row.created_at,
    owner: row.owner,
    requestId: row.request_id,
    caller: row.caller,
    destination: row.destination,
    origins: JSON.parse(row.origins),
    files: JSON.parse(row.files),
    steps: JSON.parse(row.steps),
    attempts: row.attempts,
    problem: row.problem ?? undefined,
  }
}
