import { type CompiledQuery, sql } from '../packages/kysely.ts'
import type { Delivery, HistoryEntry, JobState, NewJob } from './contract.ts'
import { type Database, IN_HISTORY } from './tables.ts'

/** A delivery may follow these: somebody may have thought its process gone too early. */
const DELIVERABLE: readonly JobState[] = ['uploading', 'interrupted']
const HISTORY_STEPS = '["history"]'

/** What every upload writes: statements with their values. */
export interface Statements {
  begin(job: NewJob, idempotencyKey?: string): CompiledQuery[]
  /** @param isHolding whether the job holds keys */
  deliver(id: string, delivery: Delivery, isHolding: boolean): CompiledQuery[]
}

/** Compiles them once: building them each time would cost more than running them. */
export function compileStatements(db: Database): Statements {
  const [begin, lead, addEntry] = [compileBegin(db), compileLead(db), compileAddEntry(db)]
  const [deliver, finish] = [compileDeliver(db), compileFinish(db)]
  const [addExpiry, release] = [compileAddExpiry(db), compileRelease(db)]
  return {
    begin({ id, createdAt, owner, requestId, caller, destination, origins }, idempotencyKey) {
      const parameters = [id, createdAt, owner, requestId, caller, destination, JSON.stringify(origins)]
      const job = { ...begin, parameters }
      return idempotencyKey === undefined
        ? [job]
        : [job, { ...lead, parameters: [id, idempotencyKey, owner] }]
    },
    deliver(id, delivery, isHolding) {
      const { state, owner, files, history, now } = delivery
      const statements: CompiledQuery[] = []
      for (const entry of history) {
        statements.push({ ...addEntry, parameters: parametersOf(entry) })
        const { destination, key, expiresAt } = entry
        if (expiresAt !== undefined)
          statements.push({ ...addExpiry, parameters: [destination, key, expiresAt, expiresAt] })
      }
      if (isHolding) statements.push({ ...release, parameters: [id] })
      if (isToldByHistory(delivery)) {
        statements.push({ ...finish, parameters: [now, id, owner] })
      } else {
        const finishedAt = state === 'delivered' || state === 'finalizing' ? null : now
        const changes = [state, JSON.stringify(files), JSON.stringify(delivery.steps), finishedAt]
        statements.push({ ...deliver, parameters: [...changes, id, owner] })
      }
      return statements
    },
  }
}

/** Whether the history says all of a finished job: then its files are not written a second time. */
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

// In all of these the values only stand for parameters, in their order.

function compileBegin(db: Database): CompiledQuery {
  return db
    .insertInto('jobs')
    .values({
      id: '',
      state: sql.lit('uploading'),
      created_at: 0,
      owner: '',
      request_id: '',
      caller: '',
      destination: '',
      origins: '',
      files: sql.lit('[]'),
      steps: sql.lit('[]'),
      attempts: sql.lit(0),
      next_attempt_at: sql.lit(0),
    })
    .onConflict(conflict => conflict.column('id').doNothing())
    .compile()
}

function compileLead(db: Database): CompiledQuery {
  const update = db.updateTable('repetitions').set({ job_id: '' })
  return update.where('key', '=', '').where('owner', '=', '').compile()
}

/** An entry that is there already stays as it is, so that a delivery may be written again. */
function compileAddEntry(db: Database): CompiledQuery {
  return db
    .insertInto('history')
    .values({
      job_id: '',
      position: 0,
      time: 0,
      origin: '',
      url: '',
      key: '',
      size: 0,
      content_type: '',
      sha256: '',
      delete_url: '',
      destination: '',
      caller: '',
      request_id: '',
      expires_at: 0,
    })
    .onConflict(conflict => conflict.columns(['job_id', 'position', 'destination']).doNothing())
    .compile()
}

/** In the order of `compileAddEntry`. */
function parametersOf(entry: HistoryEntry): (string | number | null)[] {
  const { jobId, index, time, origin, url, key, size, contentType, sha256, deleteUrl } = entry
  const file = [origin, url, key, size, contentType, sha256, deleteUrl ?? null]
  const { destination, caller, requestId, expiresAt } = entry
  return [jobId, index, time, ...file, destination, caller, requestId, expiresAt ?? null]
}

/** Of an object that is there already the later end counts. */
function compileAddExpiry(db: Database): CompiledQuery {
  return db
    .insertInto('expiries')
    .values({ destination: '', key: '', due_at: 0, next_attempt_at: 0, attempts: sql.lit(0) })
    .onConflict(conflict =>
      conflict.columns(['destination', 'key']).doUpdateSet({
        due_at: later,
        next_attempt_at: later,
        attempts: sql.lit(0),
        problem: sql.lit(null),
      }),
    )
    .compile()
}

const later = sql<number>`case when excluded.due_at > expiries.due_at then excluded.due_at else expiries.due_at end`

function compileRelease(db: Database): CompiledQuery {
  return db.deleteFrom('key_holds').where('holder', '=', '').compile()
}

function compileDeliver(db: Database): CompiledQuery {
  return updateDeliverable(db).set({ state: 'finished', files: '', steps: '', finished_at: 0 }).compile()
}

function compileFinish(db: Database): CompiledQuery {
  return updateDeliverable(db)
    .set({
      state: sql.lit('finished' as const),
      files: sql.lit(IN_HISTORY),
      steps: sql.lit(HISTORY_STEPS),
      finished_at: 0,
    })
    .compile()
}

/** The job by its id and its owner: it alone may be at its finalization. */
function updateDeliverable(db: Database) {
  return db
    .updateTable('jobs')
    .where('id', '=', '')
    .where(eb => {
      const isDeliverable = eb(
        'state',
        'in',
        DELIVERABLE.map(state => sql.lit(state)),
      )
      return eb.or([isDeliverable, eb.and([eb('state', '=', sql.lit('finalizing')), eb('owner', '=', '')])])
    })
}
