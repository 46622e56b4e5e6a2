import { statSync } from 'node:fs'
import { access, chmod, constants, open, stat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { messageOf, systemCode, UploadError } from '../errors.ts'
import { makePath } from '../files/make-path.ts'
import {
  type Connection,
  createDatabase,
  type Database,
  type DatabaseUse,
  OtherSchema,
  storeUnavailable,
} from './database.ts'
import { SCHEMA, SCHEMA_VERSION } from './schema.ts'
import { type Db, Raw, type Sql } from './sql.ts'
import { assertSound, loadSqlite, type SqliteDatabase, type SqliteLibrary } from './sqlite-library.ts'

export interface SqliteOptions {
  /** Default: `create`. */
  readonly use?: DatabaseUse | undefined
  /** Time to wait for a database that another program has locked. Default 3 s. */
  readonly patienceMs?: number
  /** Default: the SQLite without known data loss; see sqlite-library.ts. */
  readonly library?: Pick<SqliteLibrary, 'DatabaseSync'>
}

/**
 * The embedded database: one SQLite file, mode 0600, in a directory of mode 0700. It has a write-ahead log, so a commit
 * survives the end of the process. After a power failure, the last commits may be lost, but the file is intact
 * (`synchronous = NORMAL`). Once the file is moved, removed or replaced, every use fails.
 *
 * @throws UploadError `database_unavailable` if SQLite is not installed
 */
export function openSqlite(path: string, options: SqliteOptions = {}): Database {
  const { library = loadSqlite(), use = 'create', patienceMs } = options
  const connectTo = async () => {
    if (use !== 'create' && (await isMissing(path))) return connect(new library.DatabaseSync(':memory:'))
    if (use === 'read') {
      const database = openToRead(path, library)
      orClose(database, () => hasSchema(database, path))
      return toConnection(database, path, one => one.close())
    }
    await prepareFile(path)
    return connect(new library.DatabaseSync(path), path)
  }
  return createDatabase({ connect: connectTo, explain: error => explain(error, path) }, patienceMs)
}

/** Whether there is no database. One whose creation was interrupted is an empty file. */
async function isMissing(path: string): Promise<boolean> {
  const status = await stat(path).catch(error => {
    if (systemCode(error) !== 'ENOENT') throw error
  })
  return !status?.size
}

/**
 * Opens a database that must exist, without permission to change it. `readOnly` of SQLite would leave its log behind, also
 * where Node's SQLite removes it.
 */
export function openToRead(
  path: string,
  { DatabaseSync }: NonNullable<SqliteOptions['library']> = loadSqlite(),
  timeout = 0,
): SqliteDatabase {
  const database = new DatabaseSync(path, { timeout })
  orClose(database, () => {
    assertSound(versionOf(database))
    database.exec('pragma query_only = on')
  })
  return database
}

function orClose(database: SqliteDatabase, work: () => void): void {
  try {
    work()
  } catch (error) {
    database.close()
    throw error
  }
}

const versionOf = (database: SqliteDatabase): string =>
  database.prepare('select sqlite_version() as version').get().version

/** @param path undefined for a database in memory */
function connect(database: SqliteDatabase, path?: string): Connection {
  orClose(database, () => {
    assertSound(versionOf(database))
    database.exec('pragma journal_mode = WAL')
    database.exec('pragma synchronous = NORMAL')
    createTables(database, path)
  })
  return toConnection(database, path, close)
}

/** Several processes may do it at once. @throws OtherSchema */
function createTables(database: SqliteDatabase, path = ''): void {
  if (hasSchema(database, path)) return
  database.exec('begin immediate')
  if (!hasSchema(database, path)) {
    // A table without row numbers is one tree instead of two, so that a commit writes fewer pages.
    for (const statement of SCHEMA)
      database.exec(statement.startsWith('create table') ? `${statement} without rowid` : statement)
    database.exec(`pragma user_version = ${SCHEMA_VERSION}`)
  }
  database.exec('commit')
}

/** @returns false if there are no tables. @throws OtherSchema */
function hasSchema(database: SqliteDatabase, path: string): boolean {
  const { version } = database.prepare('select user_version as version from pragma_user_version').get()
  if (version === SCHEMA_VERSION) return true
  if (database.prepare('select 1 from sqlite_schema').get() !== undefined)
    throw new OtherSchema(basename(path))
  return false
}

/** @param end closes the database */
function toConnection(
  database: SqliteDatabase,
  path: string | undefined,
  end: (database: SqliteDatabase) => void,
): Connection {
  const db = createDb(database)
  const [begin, commit] = [database.prepare('begin immediate'), database.prepare('commit')]
  const assertThere = path === undefined ? () => {} : watchFiles(path)
  /** Jobs in their order. One runs at a time: another one must not run inside its transaction. */
  const waiting: Job[] = []
  let working: Promise<void> | undefined

  /** Runs a job that only reads, or jobs that share a transaction. */
  async function perform(jobs: readonly Job[], { isTransaction }: Job): Promise<void> {
    try {
      assertThere()
      // If another program has locked the database, this fails, and not a later statement.
      if (isTransaction) begin.run()
      const results: unknown[] = []
      for (const { work } of jobs) results.push(await work(db))
      if (isTransaction) commit.run()
      for (const [n, job] of jobs.entries()) job.resolve(results[n])
    } catch (error) {
      rollBack(database)
      const [first] = jobs
      if (jobs.length === 1) first?.reject(error)
      // One of them has failed. The others must not.
      else for (const job of jobs) await perform([job], job)
    }
  }

  async function performAll(): Promise<void> {
    for (let [first] = waiting; first; [first] = waiting) {
      // The transactions of one turn of the event loop share a commit, because it costs more than their statements.
      await nextTurn()
      let count = 1
      while (first.isTransaction && waiting[count]?.isTransaction) count++
      await perform(waiting.splice(0, count), first)
    }
    working = undefined
  }

  return {
    run(work, isTransaction) {
      return new Promise((resolve, reject) => {
        // The result of a job is that of its work.
        waiting.push({ work, isTransaction, resolve: resolve as Job['resolve'], reject })
        working ??= performAll()
      })
    },
    async close() {
      await working
      end(database)
    },
  }
}

function rollBack(database: SqliteDatabase): void {
  try {
    // On a full disk, SQLite has already rolled back, and rejects a second rollback.
    if (database.isTransaction) database.exec('rollback')
  } catch {
    // The disk has failed. The next transaction can't begin, and says so.
  }
}

interface Job {
  readonly work: (db: Db) => Promise<unknown>
  readonly isTransaction: boolean
  resolve(result: unknown): void
  reject(error: unknown): void
}

/** Maximum number of prepared statements. Statements with lists have many variants. */
const MOST_STATEMENTS = 200
const NOTHING = new Raw('')

function createDb(database: SqliteDatabase): Db {
  type Statement = ReturnType<SqliteDatabase['prepare']>
  const statements = new Map<string, Statement>()
  const prepare = (text: string): Statement => {
    const found = statements.get(text)
    if (found) return found
    if (statements.size === MOST_STATEMENTS) statements.clear()
    const statement = database.prepare(text.replace(/\$(\d+)/g, '?$1'))
    statements.set(text, statement)
    return statement
  }
  return {
    // The rows are of the type that the caller expects of its statement.
    all: async <R>({ text, values }: Sql) => prepare(text).all(...values) as R[],
    run: async ({ text, values }) => Number(prepare(text).run(...values).changes),
    now: async () => Date.now(),
    get time() {
      return Date.now()
    },
    forUpdate: NOTHING,
    forUpdateSkipLocked: NOTHING,
  }
}

/**
 * The package closes the file only after all statements were garbage-collected, unlike Node. The checkpoint makes the file
 * complete before that.
 */
function close(database: SqliteDatabase): void {
  try {
    database.exec('pragma wal_checkpoint(TRUNCATE)')
  } catch {
    // Another process uses the file and will make the checkpoint, or the disk has failed.
  }
  database.close()
}

/** Interval of the checks that the files exist. */
const GONE_FOR_MS = 100

/** @returns throws once the file or its log was removed or replaced, because SQLite would not notice, and writes would be lost */
function watchFiles(path: string): () => void {
  const files = [path, `${path}-wal`]
  const first = files.map(numberOf)
  let lastLook = performance.now()
  return () => {
    const now = performance.now()
    if (now - lastLook < GONE_FOR_MS) return
    for (const [index, file] of files.entries()) {
      const number = numberOf(file)
      first[index] ??= number // the log is made with the first transaction
      if (number !== first[index]) throw vanished(basename(file))
    }
    lastLook = now
  }
}

/** The inode number. While a file is open, no other file gets it. */
function numberOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino
}

function vanished(file: string): UploadError {
  return storeUnavailable(
    `The file ${file} of the server's database was moved, removed or replaced while the server had it open. Put it back, or restart the server to use the file that is there now.`,
  )
}

/** SQLite creates its other files with the same mode. */
async function prepareFile(path: string): Promise<void> {
  await makePath(dirname(path), 0o700)
  // An existing file is not opened, because closing it would release the locks that SQLite has on it in this process.
  const handle = await open(path, 'ax', 0o600).catch(error => {
    if (systemCode(error) !== 'EEXIST') throw error
  })
  await handle?.close()
  // Otherwise SQLite would open it read-only, and stay read-only after its permissions are fixed.
  await access(path, constants.W_OK)
  await chmod(path, 0o600)
}

/** @param path of the database. Its folder is only written to the log, not sent to clients */
function explain(error: unknown, path: string): Error | 'again' {
  if (error instanceof UploadError) return error
  const code = codeOf(error)
  const file = basename(path)
  const cause = new Error(`${path}: ${messageOf(error)}`, { cause: error })
  if (/^SQLITE_(BUSY|LOCKED)$/.test(code)) return 'again'
  if (/^(SQLITE_FULL|ENOSPC|EDQUOT)$/.test(code)) {
    return new UploadError(
      'insufficient_storage',
      `The disk with the database of the server, ${file}, is full (${code}). It is not the disk of the destination. Free some space on it, then try again.`,
      { cause, retryAfterS: 5 },
    )
  }
  if (/^SQLITE_(IOERR|READONLY|CANTOPEN|PERM)|^(EROFS|EACCES|EPERM|ENOTDIR|EEXIST|EIO)$/.test(code)) {
    return storeUnavailable(
      `The database of the server, ${file}, can't be read or written (${code}). SQLite also writes files next to it. Fix its folder, its permissions or its disk, then try again.`,
      cause,
    )
  }
  if (/^SQLITE_(NOTADB|CORRUPT)/.test(code)) {
    return storeUnavailable(
      `The database of the server, ${file}, is damaged or not an SQLite database (${code}). Replace it with a backup, or remove it.`,
      cause,
    )
  }
  return error instanceof Error ? error : new Error(String(error))
}

/** The last byte of result codes, with the name and the message of each: https://sqlite.org/rescode.html */
const CODES: readonly (readonly [code: number, name: string, message: string])[] = [
  [3, 'SQLITE_PERM', 'access permission denied'],
  [5, 'SQLITE_BUSY', 'database is locked'],
  [6, 'SQLITE_LOCKED', 'database table is locked'],
  [8, 'SQLITE_READONLY', 'attempt to write a readonly database'],
  [10, 'SQLITE_IOERR', 'disk I/O error'],
  [11, 'SQLITE_CORRUPT', 'database disk image is malformed'],
  [13, 'SQLITE_FULL', 'database or disk is full'],
  [14, 'SQLITE_CANTOPEN', 'unable to open database file'],
  [26, 'SQLITE_NOTADB', 'file is not a database'],
]

/** The name of a result code, or another code of an error. The package gives errors of `all` and `iterate` only a message. */
export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return ''
  const number = 'errcode' in error ? Number(error.errcode) & 0xff : undefined
  const known = CODES.find(([code, , message]) =>
    number === undefined ? error.message === message : code === number,
  )
  if (known) return known[1]
  return 'code' in error ? String(error.code) : ''
}
