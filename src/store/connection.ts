import { setTimeout as sleep } from 'node:timers/promises'
import { UploadError } from '../errors.ts'
import { type CompiledQuery, type Dialect, Kysely } from '../packages/kysely.ts'
import type { PruningLimits } from './access.ts'
import { assertMigrated, type MigrationSettings, migrate } from './migrate.ts'
import { compileStatements, type Statements } from './statements.ts'
import type { Database, Tables } from './tables.ts'
import { storeUnavailable } from './unavailable.ts'

/** One kind of database. */
export interface Engine extends MigrationSettings {
  connect(): Promise<DatabaseConnection>
  /** Turns an error of the database into one for the caller. `again`: the error is transient, and the work can be retried. */
  explain(error: unknown): Error | 'again'
  /** Default: the limits of a database that works in the event loop. */
  readonly pruning?: PruningLimits
  /** The time of the database, milliseconds since the epoch, if it may be on another machine. */
  now?(db: Database): Promise<number>
}

export interface DatabaseConnection {
  readonly dialect: Dialect
  /**
   * Runs statements in one transaction synchronously, which costs less than through the dialect.
   *
   * @throws if nothing was written, for example because another transaction is in progress
   */
  commitNow?(statements: readonly CompiledQuery[]): void
  /** @throws UploadError if the database file was removed or replaced, because writes would be lost */
  assertThere?(): void
  /** Whether the database is only read, so that its schema is not migrated. */
  readonly isReadOnly?: boolean
}

interface OpenedDatabase extends DatabaseConnection {
  readonly db: Database
  readonly statements: Statements
}

/** A database that is opened at its first use. If that fails, the next use tries again, so a server can start without it. */
export interface DatabaseAccess {
  /** Works with the database, and retries while another program has locked it. @param isLong all other work waits for it */
  use<T>(work: (opened: OpenedDatabase) => Promise<T>, isLong?: boolean): Promise<T>
  /** The database, if it is open. */
  current(): OpenedDatabase | undefined
  close(): Promise<void>
}

const PAUSE_MS = 15

/** @param patienceMs time to wait for a database that another program has locked */
export function createDatabaseAccess(engine: Engine, patienceMs: number): DatabaseAccess {
  let opening: Promise<OpenedDatabase> | undefined
  let opened: OpenedDatabase | undefined
  let isClosed = false
  /** Number of long works in progress. */
  let long = 0

  async function open(): Promise<OpenedDatabase> {
    const connection = await engine.connect()
    const db: Database = new Kysely<Tables>({ dialect: connection.dialect })
    try {
      await (connection.isReadOnly ? assertMigrated(db) : migrate(db, engine))
    } catch (error) {
      await db.destroy().catch(() => {})
      throw error
    }
    opened = { ...connection, db, statements: compileStatements(db) }
    return opened
  }

  async function attempt<T>(work: (opened: OpenedDatabase) => Promise<T>): Promise<T> {
    if (isClosed) throw closed()
    opening ??= open().catch(error => {
      opening = undefined
      throw error
    })
    const ready = await opening
    ready.assertThere?.()
    const result = await work(ready)
    ready.assertThere?.()
    return result
  }

  async function persist<T>(work: (opened: OpenedDatabase) => Promise<T>): Promise<T> {
    for (const start = performance.now(); ; await sleep(PAUSE_MS)) {
      try {
        return await attempt(work)
      } catch (error) {
        const explained = engine.explain(error)
        if (explained !== 'again') throw explained
        if (performance.now() - start > patienceMs && long === 0) throw busy(error)
      }
    }
  }

  return {
    async use(work, isLong = false) {
      if (!isLong) return persist(work)
      long++
      return persist(work).finally(() => long--)
    },
    current: () => (isClosed ? undefined : opened),
    async close() {
      isClosed = true
      const last = await opening?.catch(() => undefined)
      await last?.db.destroy()
    },
  }
}

function closed(): UploadError {
  return new UploadError('shutting_down', 'The server is shutting down. Try again in a moment.', {
    retryAfterS: 5,
  })
}

function busy(cause: unknown): UploadError {
  return storeUnavailable(
    'The database of the server is locked by another program. Try again in a moment.',
    cause,
  )
}
