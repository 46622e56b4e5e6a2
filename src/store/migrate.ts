import type { UploadError } from '../errors.ts'
import { type Kysely, sql, type Transaction } from '../packages/kysely.ts'
import type { Database, Tables } from './tables.ts'
import { storeUnavailable } from './unavailable.ts'

/** What databases differ in. */
export interface MigrationSettings {
  /** Lets one process at a time migrate. Left out where a transaction that writes does so by itself. */
  lock?(transaction: Transaction<Tables>): Promise<void>
  /** Whether a table has numbers of its own for its rows, and its key in an index beside it, unless it is made without. */
  readonly hasRowids?: boolean
}

/** One entry for each version of the schema; never changed once released. */
const MIGRATIONS: ((db: Transaction<Tables>, settings: MigrationSettings) => Promise<void>)[] = [
  createTables,
  slimIndexes,
  dropRowidsOfJobs,
]

/** Brings the schema up to date. Safe when several processes start together. */
export async function migrate(db: Database, settings: MigrationSettings): Promise<void> {
  // Most of the time there is nothing to do, and nobody to wait for. A new store has no such table.
  if ((await readVersion(db).catch(() => undefined)) === MIGRATIONS.length) return
  await db.transaction().execute(async transaction => {
    await settings.lock?.(transaction)
    await sql`create table if not exists schema_version (version integer not null)`.execute(transaction)
    const found = await readVersion(transaction)
    if (found === undefined) await transaction.insertInto('schema_version').values({ version: 0 }).execute()
    const version = found ?? 0
    if (version > MIGRATIONS.length) throw tooNew(version)
    for (const step of MIGRATIONS.slice(version)) await step(transaction, settings)
    if (version < MIGRATIONS.length) {
      await transaction.updateTable('schema_version').set({ version: MIGRATIONS.length }).execute()
    }
  })
}

async function readVersion(db: Database): Promise<number | undefined> {
  return (await db.selectFrom('schema_version').select('version').executeTakeFirst())?.version
}

function tooNew(version: number): UploadError {
  return storeUnavailable(
    `The store of the server was made by a newer version of upload-server (schema ${version}). Use that one.`,
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
  // Few jobs are in these states at any time, so the index stays small and the common path does not touch it.
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

/** What every upload writes shall touch few pages. */
async function slimIndexes(transaction: Transaction<Tables>): Promise<void> {
  await sql`update jobs set finished_at = created_at where state = 'interrupted'`.execute(transaction)
  await transaction.schema.dropIndex('jobs_open').ifExists().execute()
  await indexOpenJobs(transaction)
  // Only a destination with `dedupe` looks for bytes; see `indexBytes`.
  await transaction.schema.dropIndex('history_bytes').ifExists().execute()
}

/** Few jobs are open at any time. */
async function indexOpenJobs(transaction: Transaction<Tables>): Promise<void> {
  await sql`create index jobs_open on jobs (created_at) where finished_at is null`.execute(transaction)
}

/** What every upload writes shall touch few pages: the table and its key are one then. */
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

/** Makes findStored fast. */
export async function indexBytes(db: Database, { lock }: MigrationSettings): Promise<void> {
  await db.transaction().execute(async transaction => {
    await lock?.(transaction)
    const { schema } = transaction
    await schema
      .createIndex('history_bytes')
      .ifNotExists()
      .on('history')
      .columns(['sha256', 'destination'])
      .execute()
  })
}
