import type { Selectable } from 'kysely'
import type { Job, JobState, JobStore } from '../store.ts'
import { createBatcher } from './batch.ts'
import { compileHistory, historyParameters } from './history.ts'
import type { Access, Database, Tables } from './tables.ts'

/** A delivery may follow these: somebody may have thought its process gone too early. */
const DELIVERABLE: readonly JobState[] = ['uploading', 'interrupted']

/** The jobs of a store. */
export function createJobStore({ read, write }: Access): JobStore {
  const writeSoon = createBatcher(write)
  let compiled: ReturnType<typeof compileHot> | undefined
  const hot = (db: Database) => {
    compiled ??= compileHot(db)
    return compiled
  }
  return {
    begin: ({ id, createdAt, owner, requestId, caller, destination, origins }, idempotencyKey) =>
      writeSoon(async db => {
        const request = [requestId, caller, destination, JSON.stringify(origins)]
        const parameters = [id, 'uploading', createdAt, null, owner, ...request, '[]', '[]', 0, null, 0]
        await db.executeQuery({ ...hot(db).begin, parameters })
        if (idempotencyKey === undefined) return
        await db.updateTable('repetitions').set({ job_id: id }).where('key', '=', idempotencyKey).execute()
      }),

    deliver: (id, { state, owner, files, steps, history, now }) =>
      writeSoon(async db => {
        const statements = hot(db)
        for (const entry of history) {
          await db.executeQuery({ ...statements.history, parameters: historyParameters(entry) })
        }
        const finishedAt = state === 'delivered' || state === 'finalizing' ? null : now
        const changes = [state, JSON.stringify(files), JSON.stringify(steps), finishedAt]
        const parameters = [...changes, id, ...DELIVERABLE, 'finalizing', owner]
        await db.executeQuery({ ...statements.deliver, parameters })
      }),

    claim: (id, owner, from = owner) =>
      write(async db => {
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
      }),

    advance: (id, owner, { state, steps, attempts, problem, now, pauseMs = 0 }) =>
      write(async db => {
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
      }),

    job: id =>
      read(async db => {
        const row = await db.selectFrom('jobs').selectAll().where('id', '=', id).executeTakeFirst()
        return row && toJob(row)
      }),

    due: (now, limit) =>
      read(async db => {
        const rows = await db
          .selectFrom('jobs')
          .selectAll()
          .where('state', '=', 'delivered')
          .where('next_attempt_at', '<=', now)
          .orderBy('next_attempt_at')
          .limit(limit)
          .execute()
        return rows.map(toJob)
      }),

    pending: () =>
      read(async db => {
        const rows = await db
          .selectFrom('jobs')
          .selectAll()
          .where('state', 'in', ['delivered', 'finalizing'])
          .orderBy('created_at')
          .execute()
        return rows.map(toJob)
      }),

    abandon: (owner, report) =>
      write(async db => {
        await db
          .updateTable('jobs')
          .set({ state: 'delivered' })
          .where('owner', '=', owner)
          .where('state', '=', 'finalizing')
          .execute()
        const rows = await db
          .updateTable('jobs')
          .set({ state: 'interrupted' })
          .where('owner', '=', owner)
          .where('state', '=', 'uploading')
          .returningAll()
          .execute()
        await db.deleteFrom('owners').where('id', '=', owner).execute()
        for (const row of rows) report(toJob(row))
      }),

    pruneJobs: before =>
      write(async db => {
        await db
          .deleteFrom('jobs')
          .where('state', 'in', ['finished', 'failed', 'interrupted'])
          .where(eb => eb(eb.fn.coalesce('finished_at', 'created_at'), '<', before))
          .execute()
      }),
  }
}

/**
 * The statements of every upload, compiled once: building them each time costs more than running them. The values only
 * stand for parameters, in their order.
 */
function compileHot(db: Database) {
  const begin = db
    .insertInto('jobs')
    .values({
      id: '',
      state: 'uploading',
      created_at: 0,
      finished_at: 0,
      owner: '',
      request_id: '',
      caller: '',
      destination: '',
      origins: '',
      files: '',
      steps: '',
      attempts: 0,
      problem: '',
      next_attempt_at: 0,
    })
    .onConflict(conflict => conflict.column('id').doNothing())
  const deliver = db
    .updateTable('jobs')
    .set({ state: 'finished', files: '', steps: '', finished_at: 0 })
    .where('id', '=', '')
    .where(eb =>
      eb.or([eb('state', 'in', DELIVERABLE), eb.and([eb('state', '=', 'finalizing'), eb('owner', '=', '')])]),
    )
  return { begin: begin.compile(), deliver: deliver.compile(), history: compileHistory(db) }
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
