import { createRequire } from 'node:module'
import { storeUnavailable } from './database.ts'

/** Has the API of `node:sqlite`. */
const PACKAGE = '@photostructure/sqlite'
export type SqliteLibrary = typeof import('@photostructure/sqlite')
export type SqliteDatabase = InstanceType<SqliteLibrary['DatabaseSync']>

/** From 3.7.0 to 3.51.2 two processes may lose commits or damage the file: https://sqlite.org/wal.html#walresetbug */
const SOUND_SINCE = '3.51.3'

/** The module to load: the SQLite of Node if it has no known data loss, otherwise the package with the same API. */
export function sqliteModule(ofNode = process.versions['sqlite'] ?? ''): string {
  return isSound(ofNode) ? 'node:sqlite' : PACKAGE
}

/** @throws UploadError `database_unavailable` if the package is missing */
export function loadSqlite(name = sqliteModule()): SqliteLibrary {
  if (name !== PACKAGE) return withoutExperimentalWarning(() => createRequire(import.meta.url)(name))
  try {
    return createRequire(import.meta.url)(name)
  } catch (error) {
    throw storeUnavailable(
      `The database of the server needs the package "${PACKAGE}", which is not installed or does not run on ${process.platform}-${process.arch}. Install it, update Node to 22.23 or newer, or set database.driver to "postgres".`,
      error,
    )
  }
}

/** Node may run with another SQLite than it was built with. @throws UploadError `database_unavailable` */
export function assertSound(version: string): void {
  if (isSound(version)) return
  throw storeUnavailable(
    `The database of the server needs SQLite ${SOUND_SINCE} or newer, and this Node runs with SQLite ${version}, which may damage the file. Update SQLite or Node.`,
  )
}

function isSound(version: string): boolean {
  const partsOf = (one: string) => one.split('.').map(Number)
  const [have, need] = [partsOf(version), partsOf(SOUND_SINCE)]
  const different = need.findIndex((part, index) => part !== (have[index] ?? 0))
  return different === -1 || (have[different] ?? 0) > (need[different] ?? 0)
}

/**
 * Node 22 prints a warning that its SQLite is experimental. Only command-line flags turn off a single warning, and this
 * program is started without them. Node emits the warning synchronously while the module loads, so this replaces
 * `emitWarning` during that time and drops experimental warnings.
 */
function withoutExperimentalWarning<T>(load: () => T): T {
  const { emitWarning } = process
  process.emitWarning = (warning: string | Error, ...rest: unknown[]) => {
    if (rest[0] !== 'ExperimentalWarning') Reflect.apply(emitWarning, process, [warning, ...rest])
  }
  try {
    return load()
  } finally {
    process.emitWarning = emitWarning
  }
}
