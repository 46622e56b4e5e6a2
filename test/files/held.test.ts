import { mkdir, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { systemCode } from '../../src/errors.ts'
import { holdFolder } from '../../src/files/held.ts'
import { makeDirectory } from '../helpers/directory.ts'

it.runIf(process.platform === 'linux')(
  'a folder that others remove is absent or where it was, never under a name that Linux marks',
  async () => {
    const path = join(await makeDirectory(), 'folder')
    const found = new Set<string>()
    for (let round = 0; round < 1000; round++) {
      await mkdir(path)
      const held = holdFolder(path, 'refuse').then(
        async folder => {
          await folder.close()
          return folder.real
        },
        (error: unknown) => systemCode(error) ?? String(error),
      )
      // The moment of the removal moves through all that opening does.
      for (let turn = 0; turn < round % 20; turn++) await new Promise(setImmediate)
      await rmdir(path)
      found.add(await held)
    }
    expect([...found].filter(one => one !== path && one !== 'ENOENT')).toEqual([])
    expect(found).toContain(path)
  },
)
