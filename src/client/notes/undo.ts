import { lstat, rename } from 'node:fs/promises'
import { messageOf } from '../../errors.ts'
import { backupsOf } from './note-file.ts'
import type { NoteReport } from './upload-images.ts'

/**
 * Puts the newest backup of a note in its place again. It is refused if the note was written since.
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
    const [note, backup] = [await lstat(real), await lstat(from)]
    if (!backup.isFile()) throw new Error(`${from} is not a regular file`)
    // The backup was written after the new text of the note.
    if (note.mtimeMs > backup.mtimeMs)
      throw new Error(`it was changed after it was backed up. To discard these changes, rename ${from}`)
    if (!isDryRun) await rename(from, real)
    return { path, links: 0, from, failures: [] }
  } catch (error) {
    return { path, links: 0, failures: [{ reason: messageOf(error) }] }
  }
}
