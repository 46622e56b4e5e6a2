import { keysOf } from '../members.ts'
import { type CompiledQuery, sql } from '../packages/kysely.ts'
import type { Delivery, HistoryEntry, JobState, NewJob } from './contract.ts'
import { HISTORY_COLUMNS, type HistoryRow } from './history-columns.ts'
import { prepareStatement } from './statement.ts'
import { type Database, IN_HISTORY } from './tables.ts'

/** States before a delivery. `interrupted`: another process may have cleaned up a job whose process still runs. */
const DELIVERABLE: readonly JobState[] = ['uploading', 'interrupted']
const HISTORY_STEPS = '["history"]'

/** What every upload writes: statements with their values. */
export interface Statements {
  begin(job: NewJob, idempotencyKey?: string): CompiledQuery[]
  /** @param isHolding whether the job has locks */
  deliver(id: string, delivery: Delivery, isHolding: boolean): CompiledQuery[]
}

export function compileStatements(db: Database): Statements {
  const [begin, lead, addEntry] = [prepareBegin(db), prepareLead(db), prepareAddEntry(db)]
  const [deliver, finish] = [prepareDeliver(db), prepareFinish(db)]
  const [addExpiry, release] = [prepareAddExpiry(db), prepareRelease(db)]
  return {
    begin(job, idempotencyKey) {
      const { id, owner } = job
      const statements = [begin({ ...job, origins: JSON.stringify(job.origins) })]
      if (idempotencyKey !== undefined) statements.push(lead({ id, owner, idempotencyKey }))
      return statements
    },
    deliver(id, delivery, isHolding) {
      const { state, owner, files, history, now } = delivery
      const statements: CompiledQuery[] = []
      for (const entry of history) {
        statements.push(addEntry(entry))
        const { destination, key, expiresAt } = entry
        if (expiresAt !== undefined) statements.push(addExpiry({ destination, key, expiresAt }))
      }
      if (isHolding) statements.push(release({ id }))
      if (isToldByHistory(delivery)) {
        statements.push(finish({ id, owner, finishedAt: now }))
      } else {
        const finishedAt = state === 'delivered' || state === 'finalizing' ? null : now
        const [allFiles, steps] = [JSON.stringify(files), JSON.stringify(delivery.steps)]
        statements.push(deliver({ id, owner, state, files: allFiles, steps, finishedAt }))
      }
      return statements
    },
  }
}

/** Whether all files of a finished job are in the history. Then they are not written to the job as well. */
function isToldByHistory({ state, files, steps, history }: Delivery): boolean {
  return (
    state === 'finished' &&
    files.length > 0 &&
    files.length === history.length &&
    files.every(file => file.mirrors === undefined) &&
    steps.length === 1 &&
    steps[0] === 'history'
  )
}

function prepareBegin(db: Database) {
  return prepareStatement<Omit<NewJob, 'origins'> & { origins: string }>(job =>
    db
      .insertInto('jobs')
      .values({
        id: job.id,
        state: sql.lit('uploading'),
        created_at: job.createdAt,
        owner: job.owner,
        request_id: job.requestId,
        caller: job.caller,
        destination: job.destination,
        origins: job.origins,
        files: sql.lit('[]'),
        steps: sql.lit('[]'),
        attempts: sql.lit(0),
        next_attempt_at: sql.lit(0),
      })
      .onConflict(conflict => conflict.column('id').doNothing()),
  )
}

/** Refers the record of an idempotency key to a job. */
function prepareLead(db: Database) {
  return prepareStatement<{ id: string; owner: string; idempotencyKey: string }>(
    ({ id, owner, idempotencyKey }) =>
      db
        .updateTable('repetitions')
        .set({ job_id: id })
        .where('key', '=', idempotencyKey)
        .where('owner', '=', owner),
  )
}

/** An existing entry is not changed, so that a delivery can be written again. */
function prepareAddEntry(db: Database) {
  return prepareStatement<HistoryEntry>(entry => {
    const names = keysOf(HISTORY_COLUMNS)
    // TypeScript does not follow names through `fromEntries`; `HistoryRow` is made of the same table.
    const row = Object.fromEntries(
      names.map(name => [HISTORY_COLUMNS[name], entry[name]]),
    ) as unknown as HistoryRow
    return db
      .insertInto('history')
      .values(row)
      .onConflict(conflict => conflict.columns(['job_id', 'position', 'destination']).doNothing())
  })
}

/** If the object has an expiry already, the later one applies. */
function prepareAddExpiry(db: Database) {
  return prepareStatement<{ destination: string; key: string; expiresAt: number }>(
    ({ destination, key, expiresAt }) =>
      db
        .insertInto('expiries')
        .values({ destination, key, due_at: expiresAt, next_attempt_at: expiresAt, attempts: sql.lit(0) })
        .onConflict(conflict =>
          conflict.columns(['destination', 'key']).doUpdateSet({
            due_at: later,
            next_attempt_at: later,
            attempts: sql.lit(0),
            problem: sql.lit(null),
          }),
        ),
  )
}

const later = sql<number>`case when excluded.due_at > expiries.due_at then excluded.due_at else expiries.due_at end`

/** Releases the locks of a job. */
function prepareRelease(db: Database) {
  return prepareStatement<{ id: string }>(({ id }) => db.deleteFrom('key_holds').where('holder', '=', id))
}

/** A job by its ID and its owner, which is the only process that may run its hooks. */
interface Owned {
  readonly id: string
  readonly owner: string
}

interface Delivered extends Owned {
  readonly state: JobState
  readonly files: string
  readonly steps: string
  readonly finishedAt: number | null
}

function prepareDeliver(db: Database) {
  return prepareStatement<Delivered>(({ id, owner, state, files, steps, finishedAt }) =>
    updateDeliverable(db, { id, owner }).set({ state, files, steps, finished_at: finishedAt }),
  )
}

function prepareFinish(db: Database) {
  return prepareStatement<Owned & { finishedAt: number }>(({ id, owner, finishedAt }) =>
    updateDeliverable(db, { id, owner }).set({
      state: sql.lit('finished' as const),
      files: sql.lit(IN_HISTORY),
      steps: sql.lit(HISTORY_STEPS),
      finished_at: finishedAt,
    }),
  )
}

function updateDeliverable(db: Database, { id, owner }: Owned) {
  return db
    .updateTable('jobs')
    .where('id', '=', id)
    .where(eb => {
      const isDeliverable = eb(
        'state',
        'in',
        DELIVERABLE.map(state => sql.lit(state)),
      )
      return eb.or([
        isDeliverable,
        eb.and([eb('state', '=', sql.lit('finalizing')), eb('owner', '=', owner)]),
      ])
    })
}
