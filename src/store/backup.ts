import { mkdtemp, open, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { messageOf, systemCode, UploadError } from '../errors.ts'
import { syncFolder } from '../files/folder-sync.ts'
import { holdFolder } from '../files/held.ts'
import { codeOf, openToRead } from './sqlite.ts'
import { loadSqlite, type SqliteDatabase } from './sqlite-library.ts'

/** Pages of 4 KiB between two looks at the signal. */
const PAGES = 1000
/** Time to wait for a program that has locked the whole database. Writers don't: they append to the log. */
const BUSY_MS = 5000

/**
 * Writes a copy of a database that other processes may use at the same time, with the online backup of SQLite:
 * https://sqlite.org/backup.html
 *
 * The copy is made in a folder of its own, mode 0700, and then renamed, so that the file is complete or empty at any time.
 *
 * @param path of the database
 * @param target absolute path of the new file, mode 0600. Its folder must exist
 * @param signal ends the backup and removes what was written
 * @returns the number of history entries in the copy
 * @throws Error whose message tells what to do; the reason of the signal
 */
export async function backUpSqlite(path: string, target: string, signal: AbortSignal): Promise<number> {
  await assertExists(path)
  await claim(target)
  let folder: string | undefined
  try {
    folder = await mkdtemp(`${target}.`)
    const copy = join(folder, 'copy.db')
    await writeFile(copy, '', { flag: 'wx', mode: 0o600 })
    const entries = await copyPages(path, copy, signal)
    await rename(copy, target)
    await syncEntries(dirname(target))
    return entries
  } catch (error) {
    await rm(target, { force: true })
    signal.throwIfAborted()
    throw explain(error, path, target)
  } finally {
    if (folder !== undefined) await rm(folder, { recursive: true, force: true })
  }
}

async function assertExists(path: string): Promise<void> {
  const status = await stat(path).catch(error => {
    if (systemCode(error) !== 'ENOENT') throw error
  })
  if (status === undefined)
    throw new Error(
      `There is no database at "${path}". The server has not stored anything yet, or it uses another configuration: use --config.`,
    )
}

/** Creates the file. Fails if it exists, also as a symlink that leads nowhere. */
async function claim(target: string): Promise<void> {
  const handle = await open(target, 'wx', 0o600).catch(error => {
    throw new Error(
      `Could not create the backup "${target}": ${adviceFor(systemCode(error)) ?? messageOf(error)}`,
    )
  })
  await handle.close()
}

async function copyPages(path: string, copy: string, signal: AbortSignal): Promise<number> {
  const { backup } = loadSqlite()
  const database = openToRead(path, undefined, BUSY_MS)
  try {
    // Without a transaction, each write of another process between two steps makes the backup start again.
    database.exec('begin')
    const entries = countEntries(database)
    await backup(database, copy, { rate: PAGES, progress: () => signal.throwIfAborted() })
    signal.throwIfAborted()
    return entries
  } finally {
    database.close()
  }
}

function countEntries(database: SqliteDatabase): number {
  const hasHistory = database.prepare("select 1 from sqlite_schema where name = 'files'").get() !== undefined
  return hasHistory ? Number(database.prepare('select count(*) as count from files').get().count) : 0
}

async function syncEntries(folder: string): Promise<void> {
  const held = await holdFolder(folder, 'follow')
  try {
    await syncFolder(held)
  } finally {
    await held.close()
  }
}

function explain(error: unknown, path: string, target: string): Error {
  if (error instanceof UploadError) return error
  const code = codeOf(error)
  if (/^SQLITE_(NOTADB|CORRUPT)/.test(code))
    return new Error(`The database "${path}" is damaged or not an SQLite database (${code}).`)
  if (/^SQLITE_(BUSY|LOCKED)$/.test(code))
    return new Error(`The database "${path}" is locked by another program. Try again in a moment.`)
  return new Error(`Could not write the backup "${target}": ${adviceFor(code) ?? messageOf(error)}`, {
    cause: error,
  })
}

function adviceFor(code = ''): string | undefined {
  if (code === 'EEXIST') return 'the file exists, and a backup never replaces a file. Use another name.'
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'its folder does not exist. Create the folder first.'
  if (/^(EACCES|EPERM|EROFS|SQLITE_(PERM|READONLY|CANTOPEN))$/.test(code))
    return `its folder is not writable (${code}). Check the permissions, or use another folder.`
  if (/^(ENOSPC|EDQUOT|SQLITE_(FULL|IOERR))$/.test(code))
    return `the disk is full or has failed (${code}). Free some space, or use another disk.`
  return undefined
}
