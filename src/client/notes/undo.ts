import { lstat, readFile, rename } from 'node:fs/promises'
import { messageOf } from '../../errors.ts'
import { backupsOf } from './note-file.ts'
import { findReferences } from './references.ts'
import type { NoteReport } from './upload-images.ts'

/**
 * Puts the newest backup of a note in its place again. It is refused if the note differs in more than the links that the
 * backup had.
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
    if (!(await lstat(from)).isFile()) throw new Error(`${from} is not a regular file`)
    if (!hasOnlyOtherLinks(await readFile(real, 'utf8'), await readFile(from, 'utf8')))
      throw new Error(`it was changed after it was backed up. To discard these changes, rename ${from}`)
    if (!isDryRun) await rename(from, real)
    return { path, links: 0, from, failures: [] }
  } catch (error) {
    return { path, links: 0, failures: [{ reason: messageOf(error) }] }
  }
}

/** Whether a note is its backup with other text, without a line break, in the places of its references to images. */
function hasOnlyOtherLinks(note: string, backup: string): boolean {
  const references = findReferences(backup)
  const starts = [0, ...references.map(({ to }) => to)]
  let at = 0
  for (const [index, start] of starts.entries()) {
    const kept = backup.slice(start, references[index]?.from)
    const found = index === references.length ? note.lastIndexOf(kept) : note.indexOf(kept, at)
    const link = note.slice(at, found)
    if (found < at || (index === 0 ? link !== '' : link.includes('\n'))) return false
    at = found + kept.length
  }
  return at === note.length
}
