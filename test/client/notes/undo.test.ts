import { readFile, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { undoNote } from '../../../src/client/notes/undo.ts'
import { makeDirectory } from '../../helpers/directory.ts'

it.each([
  ['before its backup, as the command does', 1, true],
  ['at the same time', 2, true],
  ['after it', 3, false],
])('a note that was written %s is restored if nothing would be lost', async (_, written, isRestored) => {
  const path = join(await makeDirectory(), 'note.md')
  await writeFile(path, 'with links')
  await writeFile(`${path}.bak`, 'as it was')
  await utimes(path, written, written)
  await utimes(`${path}.bak`, 2, 2)
  const report = await undoNote(path, false)
  expect(report?.failures.length).toBe(isRestored ? 0 : 1)
  expect(await readFile(path, 'utf8')).toBe(isRestored ? 'as it was' : 'with links')
})
