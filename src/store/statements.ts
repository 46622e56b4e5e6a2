import { keysOf } from '../members.ts'
import { type CompiledQuery, sql } from '../packages/kysely.ts'
import type { Delivery, HistoryEntry, JobState, NewJob, Reservation } from './contract.ts'
import { HISTORY_COLUMNS, type HistoryRow } from './history-columns.ts'
import type { QuotaUse } from './quota-contract.ts'
import { prepareRows, prepareStatement, type RowsStatement } from './statement.ts'
import { type Database, IN_HISTORY } from './tables.ts'

/** States before a delivery. `interrupted`: another process may have cleaned up a job whose process still runs. */
const DELIVERABLE: readonly JobState[] = ['uploading', 'interrupted']
const HISTORY_STEPS = '["history"]'

/** A statement with its values. */
export interface Statement extends CompiledQuery {
  /** The row that it inserts. `gather` inserts several at once. */
  readonly inserting?: { readonly insert: RowsStatement<never>; readonly row: unknown }
  /** What it settles of a quota. `merge` settles the sum. */
  readonly settling?: QuotaUse & { readonly owner: string }
}

/** What every upload writes. */
export interface Statements {
  begin(job: NewJob, idempotencyKey?: string, reservation?: Reservation): Statement[]
  /** @param isHolding whether the job has locks */
  deliver(id: string, delivery: Delivery, isHolding: boolean): Statement[]
  /** The statements of one transaction, with one for each quota, at the end, because others wait for its row. */
  merge(statements: readonly Statement[]): Statement[]
  /** The same statements, in which those that insert into the same table are one, for a database that each of them has to reach. */
  gather(statements: readonly Statement[]): Statement[]
}

/** Maximum number of rows of a statement. PostgreSQL accepts 65,535 values. */
const MOST_ROWS = 100

export function compileStatements(db: Database): Statements {
  const [begin, reserve, lead] = [prepareBegin(db), prepareReserve(db), prepareLead(db)]
  const addEntry = prepareAddEntry(db)
  const [deliver, finish] = [prepareDeliver(db), prepareFinish(db)]
  const [addExpiry, release, settle] = [prepareAddExpiry(db), prepareRelease(db), prepareSettle(db)]
  const insertOne = <Row>(insert: RowsStatement<Row>, row: Row): Statement => {
    const { sql, query, queryId, parameters } = insert([row])
    return { sql, query, queryId, parameters, inserting: { insert, row } }
  }
  return {
    merge(statements) {
      const uses = statements.flatMap(({ settling }) => settling ?? [])
      if (uses.length < 2) return [...statements]
      return [...statements.filter(({ settling }) => !settling), ...sumUses(uses).map(settle)]
    },
    gather(statements) {
      const rowsOf = new Map<RowsStatement<never>, unknown[]>()
      for (const { inserting } of statements) {
        if (!inserting) continue
        const rows = rowsOf.get(inserting.insert) ?? []
        rows.push(inserting.row)
        rowsOf.set(inserting.insert, rows)
      }
      const inserts = [...rowsOf].flatMap(([insert, rows]) =>
        inGroups(rows, MOST_ROWS).map(group => insert(group as never[])),
      )
      return [...inserts, ...statements.filter(({ inserting }) => !inserting)]
    },
    begin(job, idempotencyKey, reservation) {
      const { id, owner } = job
      const statements: Statement[] = [insertOne(begin, { ...job, origins: JSON.stringify(job.origins) })]
      if (idempotencyKey === undefined) return statements
      if (reservation) statements.push(insertOne(reserve, { ...reservation, id, idempotencyKey }))
      else statements.push(lead({ id, owner, idempotencyKey }))
      return statements
    },
    deliver(id, delivery, isHolding) {
      const { state, owner, files, history, quota = [], now } = delivery
      const statements: Statement[] = []
      for (const entry of history) {
        statements.push(insertOne(addEntry, entry))
        const { destination, key, expiresAt } = entry
        if (expiresAt !== undefined) statements.push(addExpiry({ destination, key, expiresAt }))
      }
      for (const use of quota) {
        const settling = { ...use, owner }
        statements.push({ ...settle(settling), settling })
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

function inGroups<T>(all: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, n) => all.slice(n * size, (n + 1) * size))
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
  return prepareRows<Omit<NewJob, 'origins'> & { origins: string }>(jobs =>
    db
      .insertInto('jobs')
      .values(
        jobs.map(job => ({
          id: job.id,
          state: sql.lit('uploading' as const),
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
        })),
      )
      .onConflict(conflict => conflict.column('id').doNothing()),
  )
}

/** Reserves an idempotency key. The whole transaction fails if another request has it. */
function prepareReserve(db: Database) {
  return prepareRows<Reservation & { id: string; idempotencyKey: string }>(rows =>
    db.insertInto('repetitions').values(
      rows.map(({ idempotencyKey, fingerprint, owner, seed, createdAt, id }) => ({
        ...{ key: idempotencyKey, fingerprint, owner, seed, created_at: createdAt, job_id: id },
      })),
    ),
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
  return prepareRows<HistoryEntry>(entries => {
    const names = keysOf(HISTORY_COLUMNS)
    // TypeScript does not follow names through `fromEntries`; `HistoryRow` is made of the same table.
    const toRow = (entry: HistoryEntry) =>
      Object.fromEntries(names.map(name => [HISTORY_COLUMNS[name], entry[name]])) as unknown as HistoryRow
    return db
      .insertInto('history')
      .values(entries.map(toRow))
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

function sumUses(uses: readonly (QuotaUse & { owner: string })[]) {
  const sums = new Map<string, QuotaUse & { owner: string }>()
  for (const use of uses) {
    const name = JSON.stringify([use.client, use.windowMs, use.startsAt, use.owner])
    const sum = sums.get(name)
    sums.set(name, {
      ...use,
      usedFiles: use.usedFiles + (sum?.usedFiles ?? 0),
      usedBytes: use.usedBytes + (sum?.usedBytes ?? 0),
      reservedFiles: use.reservedFiles + (sum?.reservedFiles ?? 0),
      reservedBytes: use.reservedBytes + (sum?.reservedBytes ?? 0),
    })
  }
  return [...sums.values()]
}

/** Releases what a job has reserved of a quota, and adds what it has used. */
function prepareSettle(db: Database) {
  // They are less already if another process has cleaned up after this one.
  const less = (column: string, by: number) =>
    sql<number>`case when ${sql.ref(column)} > ${by} then ${sql.ref(column)} - ${by} else 0 end`
  return prepareStatement<QuotaUse & { owner: string }>(use =>
    db
      .updateTable('quotas')
      .set(eb => ({
        used_files: eb('used_files', '+', use.usedFiles),
        used_bytes: eb('used_bytes', '+', use.usedBytes),
        reserved_files: less('reserved_files', use.reservedFiles),
        reserved_bytes: less('reserved_bytes', use.reservedBytes),
      }))
      .where('client', '=', use.client)
      .where('window_ms', '=', use.windowMs)
      .where('starts_at', '=', use.startsAt)
      .where('owner', '=', use.owner),
  )
}

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
