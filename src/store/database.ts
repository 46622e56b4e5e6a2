import { setTimeout as sleep } from 'node:timers/promises'
import { type ErrorCode, UploadError } from '../errors.ts'
import type { Db } from './sql.ts'

/** The database of uploads and their history. Several processes may share one. */
export interface Database {
  /** Runs statements that only read. */
  read<T>(work: (db: Db) => Promise<T>): Promise<T>
  /**
   * Runs a transaction. It is repeated if another one was in its way, so `work` must change nothing else.
   *
   * @throws UploadError `database_unavailable`, `insufficient_storage`, `shutting_down`
   */
  tx<T>(work: (db: Db) => Promise<T>): Promise<T>
  /** Why the last write failed. Undefined if it succeeded, or there was none. A full disk can still be read. */
  problem(): Error | undefined
  close(): Promise<void>
}

/** What is done with a database. Only `create` creates it, and `read` changes nothing. A missing one has no entries. */
export type DatabaseUse = 'create' | 'change' | 'read'

/** One kind of database. */
export interface Engine {
  /** Opens the database and creates the tables. */
  connect(): Promise<Connection>
  /** Turns an error of the database into one for the caller. `again`: the same work may succeed in a moment. */
  explain(error: unknown): Error | 'again'
}

export interface Connection {
  /** @param isTransaction whether the statements of the work take effect together, or only read */
  run<T>(work: (db: Db) => Promise<T>, isTransaction: boolean): Promise<T>
  close(): Promise<void>
}

const PAUSE_MS = 15
/** Default of the time to wait for a database that another program has locked. */
const PATIENCE_MS = 3000
const FAULTS: readonly ErrorCode[] = ['database_unavailable', 'insufficient_storage']

/**
 * A database that is opened at its first use. If that fails, the next use tries again, so that a server can start without it.
 *
 * @param patienceMs time to wait for a database that another program has locked. Default 3 s
 */
export function createDatabase(engine: Engine, patienceMs = PATIENCE_MS): Database {
  let opening: Promise<Connection> | undefined
  let isClosed = false
  let problem: UploadError | undefined

  async function run<T>(work: (db: Db) => Promise<T>, isTransaction: boolean): Promise<T> {
    for (const start = performance.now(); ; await sleep(PAUSE_MS)) {
      try {
        if (isClosed) throw closed()
        opening ??= engine.connect().catch(error => {
          opening = undefined
          throw error
        })
        const connection = await opening
        const result = await connection.run(work, isTransaction)
        if (isTransaction) problem = undefined
        return result
      } catch (error) {
        const explained = engine.explain(error)
        if (explained instanceof UploadError && FAULTS.includes(explained.code)) problem = explained
        if (explained !== 'again') throw explained
        if (performance.now() - start > patienceMs) throw busy(error)
      }
    }
  }

  return {
    read: work => run(work, false),
    tx: work => run(work, true),
    problem: () => problem,
    async close() {
      isClosed = true
      const last = await opening?.catch(() => undefined)
      opening = undefined
      await last?.close()
    },
  }
}

/** An operator has to fix it, which can take a while. It is still right for a client to wait and retry. */
export function storeUnavailable(message: string, cause?: unknown): UploadError {
  return new UploadError('database_unavailable', message, { cause, retryAfterS: 5 })
}

/** The tables of a database are not those of this version. Only an operator can change that, so the server does not start. */
export class OtherSchema extends UploadError {
  /** @param name of the database, such as a file name */
  constructor(name: string) {
    super(
      'database_unavailable',
      `The database of the server, ${name}, was made by another version of upload-server. Use that version, or set database.path or database.url to a new database.`,
    )
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
