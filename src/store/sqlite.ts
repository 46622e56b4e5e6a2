import { access, chmod, constants, open } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import type { Database } from 'libsql'
import { systemCode, UploadError } from '../errors.ts'
import { makePath } from '../files/make-path.ts'
import { type CompiledQuery, SqliteDialect, type SqliteStatement, sql } from '../packages/kysely.ts'
import type { Store } from './contract.ts'
import { type Connection, createSqlStore, type Engine, type StoreOptions } from './sql.ts'
import { type SqliteFiles, watchSqliteFiles } from './sqlite-files.ts'
import { loadSqlite, requireSqlite } from './sqlite-library.ts'
import { AT_REST, mayHoldJobs, noteConnection } from './sqlite-rest.ts'
import { runInThread } from './sqlite-thread.ts'
import { storeUnavailable } from './unavailable.ts'

/**
 * The embedded store: one SQLite file, mode 0600, in a directory of mode 0700. Write-ahead log; a commit survives the
 * end of the process at any instant (`synchronous = NORMAL`: the last commits may be lost when the machine loses power,
 * never the file). When it is moved, removed or replaced, the one in its place is used.
 *
 * @throws UploadError `store_unavailable` when SQLite is not installed
 */
export function createSqliteStore(path: string, options?: StoreOptions): Store {
  requireSqlite()
  let files: SqliteFiles | undefined
  const engine: Engine = {
    async connect() {
      await files?.removeRest()
      const connection = await connect(path)
      files = watchSqliteFiles(path)
      return { ...connection, isLost: files.isLost }
    },
    hasRowids: true,
    runBeside: statement => runInThread(path, statement),
    explain: error => explain(error, basename(path)),
    mayHoldJobs: () => mayHoldJobs(path),
    async setAtRest(db, isAtRest) {
      const mark = isAtRest ? AT_REST : 0
      const { rows } = await sql<{ user_version: number }>`pragma user_version`.execute(db)
      if (rows[0]?.user_version !== mark) await sql`pragma user_version = ${sql.lit(mark)}`.execute(db)
    },
  }
  return createSqlStore(engine, options)
}

/** Of 4 KiB: the log that a commit takes into the file. */
const LOG_PAGES = 250

async function connect(path: string): Promise<Connection> {
  const Libsql = loadSqlite()
  await prepareFile(path)
  noteConnection(path)
  const database = openFile(Libsql, path)
  try {
    // Waiting happens in createSqlStore, not here: this library blocks the process while it waits.
    database.pragma('busy_timeout = 0')
    database.pragma('journal_mode = WAL')
    database.pragma('synchronous = NORMAL')
    // The commit that takes the log into the file holds up everything else: rather a little often than much at once.
    database.pragma(`wal_autocheckpoint = ${LOG_PAGES}`)
  } catch (error) {
    database.close()
    throw error
  }
  const prepare = createPrepare(database)
  return {
    dialect: new SqliteDialect({ database: { prepare, close: () => close(database) } }),
    commitNow: statements => commitNow(prepare, statements),
    detach: () => detach(database),
  }
}

/** What was written is in the file then, where `mayHoldJobs` looks for it. */
function close(database: Database): void {
  tryPragmas(database, 'wal_checkpoint(TRUNCATE)')
  database.close()
}

/**
 * Has SQLite take the log into the file and forget it. This library closes a connection when the last of its statements
 * is collected, and SQLite then removes the log by its name: it would be that of the next connection.
 */
function detach(database: Database): void {
  tryPragmas(database, 'wal_checkpoint(TRUNCATE)', 'journal_mode = DELETE')
}

function tryPragmas(database: Database, ...pragmas: string[]): void {
  for (const pragma of pragmas) {
    try {
      database.pragma(pragma)
    } catch {
      // Another process has the file open, too, or its disk is gone. What is lost is done again.
    }
  }
}

function commitNow(prepare: (text: string) => SqliteStatement, statements: readonly CompiledQuery[]): void {
  // This fails, and changes nothing, while another transaction is under way.
  prepare('begin').run([])
  try {
    for (const { sql, parameters } of statements) prepare(sql).run(parameters)
    prepare('commit').run([])
  } catch (error) {
    prepare('rollback').run([])
    throw error
  }
}

/** This library gives no code when it can't open a file. */
function openFile(Libsql: new (path: string) => Database, path: string): Database {
  try {
    return new Libsql(path)
  } catch (cause) {
    throw Object.assign(new Error('The store can not be opened', { cause }), { code: 'SQLITE_CANTOPEN' })
  }
}

/** Kysely asks for a statement at each query; preparing it anew would cost more than running it. */
function createPrepare(database: Database): (text: string) => SqliteStatement {
  const statements = new Map<string, SqliteStatement>()
  const execute = (text: string): SqliteStatement => ({
    reader: false,
    all: () => [],
    iterate: () => [].values(),
    run() {
      database.exec(text)
      return { changes: 0, lastInsertRowid: 0 }
    },
  })
  // A statement that found the file locked would stay in the way of every commit until it is run again, which this one
  // is not: so it is the first one of a transaction, and no other one can find it locked.
  const begin = execute('begin immediate')
  const commit = execute('commit')
  const rollback = execute('rollback')
  const nothing = execute('')
  return text => {
    if (text === 'begin') return begin
    if (text === 'commit') return commit
    // On a full disk SQLite has rolled back by itself, and refuses to do it again.
    if (text === 'rollback') return database.inTransaction ? rollback : nothing
    const statement = statements.get(text) ?? database.prepare(text)
    statements.set(text, statement)
    return statement
  }
}

/** SQLite gives the files it makes beside this one the same mode. */
async function prepareFile(path: string): Promise<void> {
  await makePath(dirname(path), 0o700)
  // One that is there is not opened: closing it would drop the locks that SQLite has on it in this process.
  const handle = await open(path, 'ax', 0o600).catch(error => {
    if (systemCode(error) !== 'EEXIST') throw error
  })
  await handle?.close()
  // SQLite would open it for reading alone, and stay with that when it can be written again.
  await access(path, constants.W_OK)
  await chmod(path, 0o600)
}

/** @param file what the store is called in its folder; where that lies is not for clients */
function explain(error: unknown, file: string): Error | 'again' {
  if (error instanceof UploadError) return error
  const code = codeOf(error)
  if (/^SQLITE_(BUSY|LOCKED)/.test(code)) return 'again'
  if (/^(SQLITE_FULL|ENOSPC|EDQUOT)$/.test(code)) {
    return new UploadError(
      'insufficient_storage',
      `The disk with the store of the server is full (${code}). Free some space there, then try again.`,
      { cause: error, retryAfterS: 5 },
    )
  }
  if (/^SQLITE_(IOERR|READONLY|CANTOPEN|PERM)|^(EROFS|EACCES|EPERM|ENOTDIR|EEXIST|EIO)$/.test(code)) {
    return storeUnavailable(
      `The store of the server, ${file}, can't be read or written (${code}). It is written beside that file, too: mend its folder, its permissions or its disk, then try again.`,
      error,
    )
  }
  if (/^SQLITE_(NOTADB|CORRUPT)/.test(code)) {
    return storeUnavailable(
      `The store of the server, ${file}, is damaged or no SQLite database (${code}). Put a sound one in its place, or none.`,
      error,
    )
  }
  return error instanceof Error ? error : new Error(String(error))
}

/** Primary result codes: https://sqlite.org/rescode.html */
const PRIMARY_CODES: Record<number, string> = {
  3: 'SQLITE_PERM',
  5: 'SQLITE_BUSY',
  6: 'SQLITE_LOCKED',
  8: 'SQLITE_READONLY',
  10: 'SQLITE_IOERR',
  11: 'SQLITE_CORRUPT',
  13: 'SQLITE_FULL',
  14: 'SQLITE_CANTOPEN',
  26: 'SQLITE_NOTADB',
}

/** This library knows the names of few extended codes, and gives the number of the others; the last byte is the primary code. */
function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  const [, number] = /^UNKNOWN_SQLITE_ERROR_(\d+)$/.exec(code) ?? []
  return number === undefined ? code : (PRIMARY_CODES[Number(number) & 0xff] ?? code)
}
