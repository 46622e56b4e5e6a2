import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { createVaults } from '../../../src/client/notes/vault.ts'
import { makeDirectory } from '../../helpers/directory.ts'

async function openVault(files: readonly string[]) {
  const root = await makeDirectory()
  for (const name of ['.obsidian/app.json', ...files]) {
    await mkdir(dirname(join(root, name)), { recursive: true })
    await writeFile(join(root, name), '')
  }
  const vault = await createVaults(new AbortController().signal)(join(root, 'note.md'), root)
  return async (link: string, folder = '') =>
    (await vault.find(link, join(root, folder)))?.slice(root.length + 1)
}

it('a link leads to what is named so, near first, then the shortest path', async () => {
  const find = await openVault(['a.png', 'x/a.png', 'x/deep/a.png', 'y/x/a.png', 'y/B.PNG', 'z/aa.png'])
  expect(await find('a.png')).toBe('a.png')
  expect(await find('/a.png', 'x')).toBe('a.png')
  expect(await find('./a.png', 'x')).toBe('x/a.png')
  expect(await find('../b.png', 'y/x')).toBe('y/B.PNG')
  expect(await find('deep/A.png')).toBe('x/deep/a.png')
  expect(await find('x/a.png', 'y')).toBe('x/a.png')
  expect(await find('b.png', 'x')).toBe('y/B.PNG')
  expect(await find('p/a.png')).toBeUndefined()
  expect(await find('./aa.png')).toBeUndefined()
  const far = await openVault(['x/deep/a.png', 'y/a.png', 'y/long-name/a.png', 'z/a.png'])
  expect(await far('a.png')).toBe('y/a.png')
  expect(await far('a.png', 'x')).toBe('x/deep/a.png')
})

it('attack: thousands of files of one name and as many links to them take no longer than they should', async () => {
  const count = 2000
  const find = await openVault(Array.from({ length: count }, (_, index) => `v/${index}/p/a.png`))
  for (let index = 0; index < 6000; index++) {
    const found = await find(index % 3 === 0 ? `x${index}/p/a.png` : `${index % count}/p/a.png`, 'v/7')
    expect(found).toBe(index % 3 === 0 ? undefined : `v/${index % count}/p/a.png`)
    await find('a.png', 'v/7')
  }
}, 60_000)
