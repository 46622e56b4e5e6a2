import { messageOf, type UploadError } from '../errors.ts'
import { keysOf } from '../members.ts'
import { type Kysely, sql, type Transaction } from '../packages/kysely.ts'
import type { Database, Tables } from './tables.ts'
import { storeUnavailable } from './unavailable.ts'

/** An index of the history, which only some searches need. */
export interface IndexDefinition {
  readonly name: string
  /** The rest of its `create index`: its table and its columns. */
  readonly on: string
  /** Name of an index that it replaces. */
  readonly earlier: string
}

/** The differences between databases. */
export interface MigrationSettings {
  /** Locks some names, or the migration, for one process. Absent if every write transaction is exclusive. */
  lock?(transaction: Database, names?: readonly string[]): Promise<void>
  /** Creates an index of a large table without blocking uploads, and drops an earlier one. */
  buildIndex(db: Database, index: IndexDefinition): Promise<void>
  /** Whether tables have row IDs, with the primary key in a separate index, unless they are created without. */
  readonly hasRowids?: boolean
}

/** One entry for each version of the schema; never changed once released. */
const MIGRATIONS: ((db: Transaction<Tables>, settings: MigrationSettings) => Promise<void>)[] = [
  createTables,
  slimIndexes,
  dropRowidsOfJobs,
  addExpiry,
  addPlaces,
  addSeeds,
  addQuotas,
  addQuotaRecalls,
]

export const SCHEMA_VERSION = MIGRATIONS.length

/** Migrates the schema to the current version. Several processes may start at the same time. */
export async function migrate(db: Database, settings: MigrationSettings): Promise<void> {
  // This is the usual case, and needs no lock. A new database does not have the table.
  if ((await readVersion(db).catch(() => undefined)) === SCHEMA_VERSION) return
  await db.transaction().execute(async transaction => {
    await settings.lock?.(transaction)
    await sql`create table if not exists schema_version (version integer not null)`.execute(transaction)
    const found = await readVersion(transaction)
    if (found === undefined) await transaction.insertInto('schema_version').values({ version: 0 }).execute()
    const version = found ?? 0
    if (version > SCHEMA_VERSION) throw tooNew(version)
    for (const step of MIGRATIONS.slice(version)) await step(transaction, settings)
    if (version < SCHEMA_VERSION) {
      await transaction.updateTable('schema_version').set({ version: SCHEMA_VERSION }).execute()
    }
  })
}

/** @throws UploadError unless this version of the program can read the database as it is */
export async function assertMigrated(db: Database): Promise<void> {
  const version = await readVersion(db).catch(error => {
    if (!/schema_version/.test(messageOf(error))) throw error
  })
  if (version === undefined)
    throw storeUnavailable(
      'The database has no tables of upload-server. Check the settings of "store". The server creates the tables when it starts.',
    )
  if (version > SCHEMA_VERSION) throw tooNew(version)
  if (version < SCHEMA_VERSION)
    throw storeUnavailable(
      `The database was written by an earlier version of upload-server (schema ${version}, and this version reads ${SCHEMA_VERSION}). The server updates it when it starts.`,
    )
}

async function readVersion(db: Database): Promise<number | undefined> {
  return (await db.selectFrom('schema_version').select('version').executeTakeFirst())?.version
}

function tooNew(version: number): UploadError {
  return storeUnavailable(
    `The database of the server was written by a newer version of upload-server (schema ${version}, and this version supports ${SCHEMA_VERSION}). Start that version, or restore a backup that this version has written.`,
  )
}

function jobsTable({ schema }: Kysely<Tables>) {
  return schema
    .createTable('jobs')
    .addColumn('id', 'text', column => column.primaryKey())
    .addColumn('state', 'text', column => column.notNull())
    .addColumn('created_at', 'bigint', column => column.notNull())
    .addColumn('finished_at', 'bigint')
    .addColumn('owner', 'text', column => column.notNull())
    .addColumn('request_id', 'text', column => column.notNull())
    .addColumn('caller', 'text', column => column.notNull())
    .addColumn('destination', 'text', column => column.notNull())
    .addColumn('origins', 'text', column => column.notNull())
    .addColumn('files', 'text', column => column.notNull())
    .addColumn('steps', 'text', column => column.notNull())
    .addColumn('attempts', 'integer', column => column.notNull())
    .addColumn('problem', 'text')
    .addColumn('next_attempt_at', 'bigint', column => column.notNull())
}

async function createTables(transaction: Transaction<Tables>): Promise<void> {
  const { schema }: Kysely<Tables> = transaction
  await jobsTable(transaction).execute()
  // Few jobs are in these states at any time, so the index stays small.
  await sql`create index jobs_open on jobs (state, owner) where state in ('uploading', 'delivered', 'finalizing')`.execute(
    transaction,
  )
  await schema
    .createTable('history')
    .addColumn('job_id', 'text', column => column.notNull())
    .addColumn('position', 'integer', column => column.notNull())
    .addColumn('time', 'bigint', column => column.notNull())
    .addColumn('origin', 'text', column => column.notNull())
    .addColumn('url', 'text', column => column.notNull())
    .addColumn('key', 'text', column => column.notNull())
    .addColumn('size', 'bigint', column => column.notNull())
    .addColumn('content_type', 'text', column => column.notNull())
    .addColumn('sha256', 'text', column => column.notNull())
    .addColumn('delete_url', 'text')
    .addColumn('destination', 'text', column => column.notNull())
    .addColumn('caller', 'text', column => column.notNull())
    .addColumn('request_id', 'text', column => column.notNull())
    .addPrimaryKeyConstraint('history_key', ['job_id', 'position', 'destination'])
    .execute()
  await schema.createIndex('history_time').on('history').column('time').execute()
  await schema.createIndex('history_bytes').on('history').columns(['sha256', 'destination']).execute()
  await schema
    .createTable('repetitions')
    .addColumn('key', 'text', column => column.primaryKey())
    .addColumn('fingerprint', 'text', column => column.notNull())
    .addColumn('owner', 'text', column => column.notNull())
    .addColumn('created_at', 'bigint', column => column.notNull())
    .addColumn('job_id', 'text')
    .addColumn('status', 'integer')
    .addColumn('body', 'text')
    .execute()
  await schema
    .createTable('owners')
    .addColumn('id', 'text', column => column.primaryKey())
    .addColumn('seen_at', 'bigint', column => column.notNull())
    .execute()
}

/** Every upload should write few pages. */
async function slimIndexes(transaction: Transaction<Tables>): Promise<void> {
  await sql`update jobs set finished_at = created_at where state = 'interrupted'`.execute(transaction)
  await transaction.schema.dropIndex('jobs_open').ifExists().execute()
  await indexOpenJobs(transaction)
  // Only destinations with `dedupe` need it; see `INDEXES`.
  await transaction.schema.dropIndex('history_bytes').ifExists().execute()
}

/** Few jobs are open at any time. */
async function indexOpenJobs(transaction: Transaction<Tables>): Promise<void> {
  await sql`create index jobs_open on jobs (created_at) where finished_at is null`.execute(transaction)
}

/** Every upload should write few pages. Without row IDs, a table and its primary key are one tree. */
async function dropRowidsOfJobs(
  transaction: Transaction<Tables>,
  { hasRowids }: MigrationSettings,
): Promise<void> {
  if (!hasRowids) return
  await sql`alter table jobs rename to jobs_before`.execute(transaction)
  await jobsTable(transaction).modifyEnd(sql`without rowid`).execute()
  await sql`insert into jobs select * from jobs_before order by id`.execute(transaction)
  await transaction.schema.dropTable('jobs_before').execute()
  await indexOpenJobs(transaction)
}

/** No statement here reads all rows of an existing table, which may be large. */
async function addExpiry(transaction: Transaction<Tables>): Promise<void> {
  const { schema }: Kysely<Tables> = transaction
  for (const column of ['expires_at', 'removed_at'])
    await schema.alterTable('history').addColumn(column, 'bigint').execute()
  await schema
    .createTable('expiries')
    .addColumn('destination', 'text', column => column.notNull())
    .addColumn('key', 'text', column => column.notNull())
    .addColumn('due_at', 'bigint', column => column.notNull())
    .addColumn('next_attempt_at', 'bigint', column => column.notNull())
    .addColumn('attempts', 'integer', column => column.notNull())
    .addColumn('problem', 'text')
    .addPrimaryKeyConstraint('expiries_key', ['destination', 'key'])
    .execute()
  await sql`create index expiries_failed on expiries (next_attempt_at) where attempts > 0`.execute(
    transaction,
  )
  await schema
    .createTable('key_holds')
    .addColumn('destination', 'text', column => column.notNull())
    .addColumn('name', 'text', column => column.notNull())
    .addColumn('content', 'text', column => column.notNull())
    .addColumn('holder', 'text', column => column.notNull())
    .addColumn('owner', 'text', column => column.notNull())
    .addColumn('held_at', 'bigint', column => column.notNull())
    .addPrimaryKeyConstraint('key_holds_key', ['holder', 'destination', 'name'])
    .execute()
  await schema.createIndex('key_holds_name').on('key_holds').columns(['name', 'destination']).execute()
}

/** This does not read the rows of the table either. */
async function addPlaces(transaction: Transaction<Tables>): Promise<void> {
  const { schema }: Kysely<Tables> = transaction
  await schema.alterTable('history').addColumn('place', 'text').execute()
}

async function addSeeds(transaction: Transaction<Tables>): Promise<void> {
  const { schema }: Kysely<Tables> = transaction
  await schema.alterTable('repetitions').addColumn('seed', 'text').execute()
}

async function addQuotas(transaction: Transaction<Tables>): Promise<void> {
  const { schema }: Kysely<Tables> = transaction
  let table = schema
    .createTable('quotas')
    .addColumn('client', 'text', column => column.notNull())
    .addColumn('window_ms', 'bigint', column => column.notNull())
    .addColumn('starts_at', 'bigint', column => column.notNull())
    .addColumn('owner', 'text', column => column.notNull())
  for (const count of ['used_files', 'used_bytes', 'reserved_files', 'reserved_bytes'] as const)
    table = table.addColumn(count, 'bigint', column => column.notNull())
  await table.addPrimaryKeyConstraint('quotas_key', ['client', 'window_ms', 'starts_at', 'owner']).execute()
  await schema.createIndex('quotas_owner').on('quotas').column('owner').execute()
}

async function addQuotaRecalls(transaction: Transaction<Tables>): Promise<void> {
  const { schema }: Kysely<Tables> = transaction
  await schema
    .alterTable('quotas')
    .addColumn('wanted_at', 'bigint', column => column.notNull().defaultTo(0))
    .execute()
}

/**
 * Indexes that slow down every upload and that not every server needs. Each is in the order of the results, so that the
 * database only reads the rows that it returns. The earlier ones are without that order.
 */
const INDEXES = {
  bytes: {
    name: 'history_same',
    on: 'history (sha256, destination, time) where removed_at is null',
    earlier: 'history_bytes',
  },
  callers: {
    name: 'history_of',
    on: 'history (caller, time) where removed_at is null',
    earlier: 'history_callers',
  },
  keys: {
    name: 'history_at',
    on: 'history (key, destination, time, expires_at) where removed_at is null',
    earlier: 'history_kept',
  },
  objects: {
    name: 'history_object',
    on: 'history ((place || key), time, expires_at) where removed_at is null',
    earlier: 'history_place',
  },
  due: { name: 'expiries_due', on: 'expiries (destination, next_attempt_at)', earlier: 'expiries_next' },
} as const satisfies Record<string, IndexDefinition>
export type IndexName = keyof typeof INDEXES
export const INDEX_NAMES = keysOf(INDEXES)

/** For a history with fewer entries, an index is created at once. */
const FEW_ENTRIES = 2000

/** Creates an index if it does not exist. */
export async function makeIndex(db: Database, which: IndexName, engine: MigrationSettings): Promise<void> {
  const index = INDEXES[which]
  const further = await db.selectFrom('history').select('job_id').offset(FEW_ENTRIES).limit(1).execute()
  if (further.length > 0) return engine.buildIndex(db, index)
  await db.transaction().execute(async transaction => {
    await engine.lock?.(transaction)
    for (const statement of statementsOf(index)) await sql.raw(statement).execute(transaction)
  })
}

/** The statements that create an index, and block writes meanwhile. */
export function statementsOf({ name, on, earlier }: IndexDefinition): string[] {
  return [`create index if not exists ${name} on ${on}`, `drop index if exists ${earlier}`]
}
