import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import type { Stats } from 'node:fs'
import { access, constants, lstat, open, readFile, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { systemCode } from '../../errors.ts'

/** Largest note that is read, bytes. */
const LARGEST_NOTE = 4 * 1024 * 1024

/** A note as it was read. */
export interface Note {
  /** Its path, symlinks resolved. */
  readonly real: string
  readonly bytes: Buffer
  readonly text: string
}

/** @throws Error for what can't be read, written or is not UTF-8 text */
export async function readNote(path: string): Promise<Note> {
  const real = await realpath(path)
  const status = await stat(real)
  if (!status.isFile()) throw new Error('it is not a regular file')
  if (status.size > LARGEST_NOTE) throw new Error(`it is larger than ${LARGEST_NOTE} bytes`)
  await access(real, constants.R_OK | constants.W_OK)
  const bytes = await readFile(real)
  if (!isUtf8(bytes)) throw new Error('it is not UTF-8 text')
  return { real, bytes, text: bytes.toString('utf8') }
}

/**
 * Replaces a note by a text, completely or not at all, and keeps the old text next to it (`note.md.bak`).
 *
 * @throws Error when the note is no longer what was read, and those of the system; then nothing has changed
 */
export async function replaceNote(note: Note, text: string, withBackup: boolean): Promise<void> {
  const beside = join(dirname(note.real), `.${basename(note.real).slice(0, 100)}.${randomUUID()}`)
  const like = await stat(note.real)
  try {
    await create(beside, text, like)
    if (!(await readFile(note.real)).equals(note.bytes))
      throw new Error('it was changed by another program. Run the command again')
    if (withBackup) await backUp(note, like)
    await rename(beside, note.real)
  } finally {
    await rm(beside, { force: true })
  }
}

/** Creates a file with the owner and the permissions of a note. Setuid, setgid and sticky are not permissions to read. */
async function create(path: string, content: string | Buffer, { mode, uid, gid }: Stats): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(content)
    // If the system does not permit that, the file belongs to the user who runs the command.
    await file.chown(uid, gid).catch(() => {})
    await file.chmod(mode & 0o777)
    await file.sync()
  } catch (error) {
    await rm(path, { force: true })
    throw error
  } finally {
    await file.close()
  }
}

const backupOf = (real: string, number: number) => (number === 1 ? `${real}.bak` : `${real}.${number}.bak`)

/** The backups of a note, the oldest first. @throws an error of the system if there is no such note */
export async function backupsOf(path: string): Promise<{ real: string; backups: string[] }> {
  const real = await realpath(path)
  const backups: string[] = []
  for (;;) {
    const backup = backupOf(real, backups.length + 1)
    if (!(await lstat(backup).catch(() => undefined))) return { real, backups }
    backups.push(backup)
  }
}

/** No backup takes the place of another: the first one is what the note was at first. */
async function backUp({ real, bytes }: Note, like: Stats): Promise<void> {
  for (let number = 1; ; number++) {
    try {
      return await create(backupOf(real, number), bytes, like)
    } catch (error) {
      if (systemCode(error) !== 'EEXIST') throw error
    }
  }
}
