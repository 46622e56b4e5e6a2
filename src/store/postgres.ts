import type { Pool } from 'pg'
import { systemCode, UploadError } from '../errors.ts'
import { once } from '../flow/once.ts'
import { PostgresDialect, type PostgresPool, sql } from '../packages/kysely.ts'
import { installCommand, isInstalled } from '../packages/optional.ts'
import type { Store } from './contract.ts'
import { buildIndexConcurrently } from './postgres-index.ts'
import { createSqlStore, type StoreOptions } from './sql.ts'
import { storeUnavailable } from './unavailable.ts'

/** More would only queue inside PostgreSQL. */
const CONNECTIONS = 10
const CONNECT_TIMEOUT_MS = 3000
const QUERY_TIMEOUT_MS = 5000
/** For statements that take long in a large database, or wait for another process. */
const LONG_TIMEOUT_MS = 10 * 60 * 1000
const IS_LONG = /^(create|drop|analyze|delete|select pg_advisory)/
/** For closing the connections, because the database may not respond. */
const END_TIMEOUT_MS = 2000
/** The advisory lock of the migration: any number that all processes of this program use. */
const LOCK = 7_263_501_842
/** The first number of the advisory locks of names. */
const NAME_LOCKS = 726_350_184
/** Another process does the work, so only its locks limit a transaction that deletes old rows. */
const PRUNING = { mostRows: 10_000, longMs: 100 }
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
 * @throws UploadError `store_unavailable` if `pg` is not installed
 */
export function createPostgresStore(
  url: string,
  queryTimeoutMs = QUERY_TIMEOUT_MS,
  { use }: StoreOptions = {},
): Store {
  if (!isInstalled('pg'))
    throw storeUnavailable(
      `The database of the server needs the package "pg", which is not installed. Run "${installCommand('pg')}" where upload-server is installed.`,
    )
  return createSqlStore({
    async connect() {
      const { default: pg } = await loadPg()
      const pool = new pg.Pool({
        query_timeout: queryTimeoutMs,
        connectionString: url,
        max: CONNECTIONS,
        connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
        keepAlive: true,
        // Times and sizes are whole numbers far below 2^53. The types of pg only describe a parser for each type ID.
        types: {
          getTypeParser: (id, format) =>
            (id === BIGINT ? Number : pg.types.getTypeParser(id, format)) as never,
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
      const dialect = new PostgresDialect({ pool: withoutHungConnections(pool) })
      return { dialect, isReadOnly: use === 'read' }
    },
    async now(db) {
      const { rows } = await sql<{ ms: number }>`
        select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as ms`.execute(db)
      return rows[0]?.ms ?? 0
    },
    async lock(transaction, names) {
      const locks =
        names === undefined
          ? sql`select pg_advisory_xact_lock(${LOCK})`
          : sql`select pg_advisory_xact_lock(${NAME_LOCKS}, hashtext(name)) from unnest(${names}::text[]) as name`
      await locks.execute(transaction)
    },
    buildIndex: buildIndexConcurrently,
    pruning: PRUNING,
    explain,
  })
}

/** A pool that closes a connection whose query got no response, instead of reusing it. */
function withoutHungConnections(pool: Pool): PostgresPool {
  return {
    async connect() {
      const client = await pool.connect()
      let hung: unknown
      const query = async (text: string, values: unknown[]) => {
        if (hung) throw hung
        try {
          const limit = IS_LONG.test(text) ? { query_timeout: LONG_TIMEOUT_MS } : {}
          return await client.query({ text, values, ...limit })
        } catch (error) {
          if (isTimeout(error)) hung = error
          throw error
        }
      }
      // The other signature of `query` is for cursors, which nothing here uses.
      return { query: query as never, release: () => client.release(hung !== undefined) }
    },
    async end() {
      const late = new Promise(resolve => setTimeout(resolve, END_TIMEOUT_MS).unref())
      await Promise.race([pool.end(), late])
    },
  }
}

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
      `The database of the server denies access (${code}). Check store.url and the permissions of its user.`,
      error,
    )
  }
  if (isTimeout(error)) {
    return storeUnavailable(
      'The database of the server did not finish a query in time. It is overloaded or does not respond. Try again in a moment, or raise the limit with "?query_timeout=MILLISECONDS" in store.url.',
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
