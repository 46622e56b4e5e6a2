import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { findEntries } from '../../src/cli/entries.ts'
import { prepare } from '../../src/cli/prepare.ts'
import type { Terminal } from '../../src/cli/terminal.ts'
import { makeDirectory } from '../helpers/directory.ts'

it('a file that vanishes between listing and sending is told as such', async () => {
  const cwd = await makeDirectory()
  await writeFile(join(cwd, 'a.png'), 'x')
  const [entry] = await findEntries(['a.png'], {}, { cwd, platform: 'linux' })
  await rm(join(cwd, 'a.png'))
  await expect(prepare(entry!, {} as Terminal)).rejects.toThrow(
    'it was removed or changed before it could be sent',
  )
})
