import { lstat, rename, stat } from 'node:fs/promises'
import { messageOf } from '../../errors.ts'
import { backupsOf } from './note-file.ts'
import type { NoteReport } from './upload-images.ts'

/**
 * Puts the newest backup of a note in its place again. It is refused if the note was changed after the backup was made.
 *
 * @param isDryRun whether nothing is written
 * @returns undefined if the note has no backup
 */
export async function undoNote(
  path: string,
  isDryRun: boolean,
): Promise<(NoteReport & { readonly from?: string }) | undefined> {
  try {
    const { real, backups } = await backupsOf(path)
    const from = backups.at(-1)
    if (from === undefined) return undefined
    const [note, backup] = await Promise.all([stat(real), lstat(from)])
    if (!backup.isFile()) throw new Error(`${from} is not a regular file`)
    if (note.mtimeMs > backup.mtimeMs)
      throw new Error(`it was changed after it was backed up. To discard these changes, rename ${from}`)
    if (!isDryRun) await rename(from, real)
    return { path, links: 0, from, failures: [] }
  } catch (error) {
    return { path, links: 0, failures: [{ reason: messageOf(error) }] }
  }
}
