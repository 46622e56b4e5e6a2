import type { PoolClient } from 'pg'
import { systemCode, UploadError } from '../errors.ts'
import { createCanceller } from '../flow/cancellation.ts'
import { once } from '../flow/once.ts'
import { createSlots } from '../flow/slots.ts'
import { installCommand, isInstalled } from '../packages/optional.ts'
import {
  type Connection,
  createDatabase,
  type Database,
  type DatabaseUse,
  OtherSchema,
  storeUnavailable,
} from './database.ts'
import { SCHEMA, SCHEMA_VERSION } from './schema.ts'
import { type Db, Raw, type Sql, sql, type Value } from './sql.ts'

/** More would only queue inside PostgreSQL. */
const CONNECTIONS = 10
const CONNECT_TIMEOUT_MS = 3000
const QUERY_TIMEOUT_MS = 5000
/** For closing the connections, because the database may not respond. */
const END_TIMEOUT_MS = 2000
/** The advisory lock for creating the tables: any number that all processes of this program use. */
const LOCK = 7_263_501_842
const BIGINT = 20

/** Loads the package `pg`, which stops the process for 40 ms. */
export const loadPg = once(() => import('pg'))

/**
 * The database for several servers behind a reverse proxy.
 *
 * A query without a response fails after 5 s, and its connection is closed, because a database may hang or become
 * unreachable without closing connections. The limit is not sent to the database, because some proxies reject it.
 *
 * @param url such as `postgres://user:password@host:5432/database`, also with `?query_timeout=MILLISECONDS`
 * @param queryTimeoutMs time limit of a query if the URL has none. Default 5 s
 * @throws UploadError `database_unavailable` if `pg` is not installed
 */
export function openPostgres(
  url: string,
  queryTimeoutMs = QUERY_TIMEOUT_MS,
  { use }: { readonly use?: DatabaseUse | undefined } = {},
): Database {
  if (!isInstalled('pg'))
    throw storeUnavailable(
      `The database of the server needs the package "pg", which is not installed. Run "${installCommand('pg')}" where upload-server is installed.`,
    )
  return createDatabase({ connect: () => connect(url, queryTimeoutMs, use !== 'read'), explain })
}

async function connect(url: string, queryTimeoutMs: number, mayCreate: boolean): Promise<Connection> {
  const { default: pg } = await loadPg()
  const pool = new pg.Pool({
    query_timeout: queryTimeoutMs,
    connectionString: url,
    max: CONNECTIONS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    // Times and sizes are whole numbers far below 2^53. The types of pg only describe a parser for each type ID.
    types: {
      getTypeParser: (id, format) => (id === BIGINT ? Number : pg.types.getTypeParser(id, format)) as never,
    },
  })
  // A broken connection is replaced at its next use. Without these listeners, its error would end the process. The
  // listener of the pool only gets errors of idle connections.
  pool.on('error', () => {})
  pool.on('connect', client => {
    client.on('error', () => {})
    // In large tables, PostgreSQL would compile short queries for 0.3 s. Other databases may not know the setting.
    client.query('set jit = off').catch(() => {})
  })

  // The time limit of the pool is for a connection that is opened, not for one that is in use.
  const free = createSlots(CONNECTIONS, Number.POSITIVE_INFINITY)
  const forever = createCanceller().signal
  async function connectAndRun<T>(work: (db: Db) => Promise<T>, isTransaction: boolean): Promise<T> {
    const client = await pool.connect()
    let failure: unknown
    try {
      if (!isTransaction) return await work(createDb(client))
      await client.query('begin')
      const result = await work(createDb(client))
      await client.query('commit')
      return result
    } catch (error) {
      failure = error
      if (isTransaction && !isTimeout(error)) await client.query('rollback').catch(() => {})
      throw error
    } finally {
      // A connection whose query got no response is closed instead of used again.
      client.release(isTimeout(failure))
    }
  }

  const connection: Connection = {
    run: (work, isTransaction) => free.run(() => connectAndRun(work, isTransaction), forever),
    async close() {
      const late = new Promise(resolve => setTimeout(resolve, END_TIMEOUT_MS).unref())
      await Promise.race([pool.end(), late])
    },
  }
  try {
    // A user without the right to create tables can use a database that has them.
    if (!(await connection.run(hasSchema, false))) {
      if (!mayCreate)
        throw storeUnavailable('The database of the server has no tables. Start the server first.')
      await connection.run(createTables, true)
    }
  } catch (error) {
    await connection.close()
    throw error
  }
  return connection
}

/** The comment of the table `uploads`. */
const MADE_WITH = `upload-server, schema ${SCHEMA_VERSION}`

/** @returns false if there are no tables. @throws OtherSchema */
async function hasSchema(db: Db): Promise<boolean> {
  // Functions such as to_regclass may not see tables that another server has just made.
  const [found] = await db.all<{ name: string; comment: string | null }>(
    sql`select current_database() as name, description as comment from pg_class
      left join pg_description on objoid = pg_class.oid and objsubid = 0 and classoid = 'pg_class'::regclass
      where relname = 'uploads' and relnamespace = any(current_schemas(false)::regnamespace[])`,
  )
  if (found && found.comment !== MADE_WITH) throw new OtherSchema(`"${found.name}"`)
  return found !== undefined
}

/** Several servers may do it at once. */
async function createTables(db: Db): Promise<void> {
  await db.all(sql`select pg_advisory_xact_lock(${LOCK})`)
  if (await hasSchema(db)) return
  for (const text of [...SCHEMA, `comment on table uploads is '${MADE_WITH}'`])
    await db.run({ text, values: [] })
}

const TIME = sql`floor(extract(epoch from clock_timestamp()) * 1000)::bigint`
const FOR_UPDATE = new Raw(' for update')
const FOR_UPDATE_SKIP_LOCKED = new Raw(' for update skip locked')

function createDb(client: PoolClient): Db {
  const query = ({ text, values }: Sql) => client.query(text, values.map(toParameter))
  const all = async <R>(statement: Sql): Promise<R[]> => (await query(statement)).rows
  return {
    all,
    run: async statement => (await query(statement)).rowCount ?? 0,
    async now() {
      const [row] = await all<{ ms: number }>(sql`select ${TIME} as ms`)
      return row?.ms ?? 0
    },
    time: TIME,
    forUpdate: FOR_UPDATE,
    forUpdateSkipLocked: FOR_UPDATE_SKIP_LOCKED,
  }
}

/** PostgreSQL accepts no NUL in a text. Clients can send one in the name of a file. */
const toParameter = (value: Value) => (typeof value === 'string' ? value.replaceAll('\0', '\ufffd') : value)

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.message === 'Query read timeout'
}

function explain(error: unknown): Error | 'again' {
  if (error instanceof UploadError) return error
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  // Codes of appendix A of PostgreSQL's manual. Serialization failures and deadlocks are in class 40.
  if (/^40(001|P01)$/.test(code)) return 'again'
  if (/^53[12]00$/.test(code)) {
    return new UploadError(
      'insufficient_storage',
      `The database of the server has no space left (${code}). It is not the destination. Free some space for the database, then try again.`,
      { cause: error, retryAfterS: 5 },
    )
  }
  if (/^(28|3D|42501|25006)/.test(code)) {
    return storeUnavailable(
      `The database of the server denies access (${code}). Check database.url and the permissions of its user.`,
      error,
    )
  }
  if (isTimeout(error)) {
    return storeUnavailable(
      'The database of the server did not finish a query in time. It is overloaded or does not respond. Try again in a moment, or raise the limit with "?query_timeout=MILLISECONDS" in database.url.',
      error,
    )
  }
  const isGone =
    /^(08|57P|53300)/.test(code) ||
    /terminated|timeout exceeded|not queryable|Connection ended/i.test(String(error))
  if (isGone || systemCode(error) !== undefined) {
    return storeUnavailable(
      `The database of the server does not respond (${code || 'no connection'}). Try again in a moment.`,
      error,
    )
  }
  return error instanceof Error ? error : new Error(String(error))
}
