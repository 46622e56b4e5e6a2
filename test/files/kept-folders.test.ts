import { expect, it } from 'vitest'
import { holdFolder } from '../../src/files/held.ts'
import { createKeptFolders } from '../../src/files/kept-folders.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { eventually } from '../helpers/eventually.ts'
import { openFilesBelow } from '../helpers/open-files.ts'

it('two that open one folder at once leave one open, and the end none', async () => {
  const path = await makeDirectory()
  const kept = createKeptFolders()
  const both = await Promise.all([holdFolder(path, 'refuse'), holdFolder(path, 'refuse')])
  for (const folder of both) kept.keep(path, folder)
  await eventually(() => expect(openFilesBelow(path)).toHaveLength(1))
  await kept.close()
  expect(openFilesBelow(path)).toEqual([])
})

it('one that is opened after the end is closed when it has been used', async () => {
  const path = await makeDirectory()
  const kept = createKeptFolders()
  await kept.close()
  const late = kept.keep(path, await holdFolder(path, 'refuse'))
  await expect(kept.use(late, async ({ real }) => real)).resolves.toContain('upload-server-test-')
  expect(openFilesBelow(path)).toEqual([])
})
