import { readFile, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { undoNote } from '../../../src/client/notes/undo.ts'
import { makeDirectory } from '../../helpers/directory.ts'

const BACKUP = '# A\n\n![](a.png)![b][r] ![[c.png]]\n<img src="d.png">\n\n[r]: b.png "t"\n'
const NOTE =
  '# A\n\n![](https://i.example/1)![b][r] ![c.png](https://i.example/3)\n<img src="https://i.example/4">\n\n[r]: https://i.example/2 "t"\n'

it.each([
  ['with its links replaced', NOTE, true],
  ['that is the backup itself', BACKUP, true],
  ['with a new first line', `new\n${NOTE}`, false],
  ['with a new last line', `${NOTE}new`, false],
  ['without its last line', NOTE.trimEnd().split('\n').slice(0, -1).join('\n'), false],
  ['with a word between the links', NOTE.replace('![b]', 'word ![b]'), false],
  ['with a line in the place of a link', NOTE.replace('https://i.example/1', 'x)\nnew\n![](y'), false],
  ['with another word', NOTE.replace('# A', '# B'), false],
])('a note %s is restored if nothing else would be lost', async (_, note, isRestored) => {
  const path = join(await makeDirectory(), 'note.md')
  await writeFile(path, note)
  await writeFile(`${path}.bak`, BACKUP)
  const report = await undoNote(path, false)
  expect(report?.failures.length).toBe(isRestored ? 0 : 1)
  expect(await readFile(path, 'utf8')).toBe(isRestored ? BACKUP : note)
})

it('a note that was changed in two runs is restored from both backups', async () => {
  const path = join(await makeDirectory(), 'note.md')
  // The second run found the images that were missing in the first one.
  const between = BACKUP.replace('a.png', 'https://i.example/1')
  for (const [time, [name, text]] of Object.entries({
    '.bak': BACKUP,
    '.2.bak': between,
    '': NOTE,
  }).entries()) {
    await writeFile(`${path}${name}`, text)
    await utimes(`${path}${name}`, time, time)
  }
  for (const _ of [1, 2]) expect(await undoNote(path, false)).toMatchObject({ failures: [] })
  expect(await readFile(path, 'utf8')).toBe(BACKUP)
})
