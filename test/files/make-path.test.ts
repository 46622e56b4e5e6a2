import { mkdir, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makePath } from '../../src/files/make-path.ts'
import { makeDirectory } from '../helpers/directory.ts'

const PRIVATE = 0o700
const modeOf = async (path: string) => (await stat(path)).mode & 0o777

describe('makePath', () => {
  it('makes what is missing, and answers with the outermost', async () => {
    const directory = await makeDirectory()
    expect(await makePath(join(directory, 'a', 'b', 'c'), PRIVATE)).toBe(join(directory, 'a'))
    for (const path of ['a', 'a/b', 'a/b/c']) expect(await modeOf(join(directory, path))).toBe(PRIVATE)
    expect(await makePath(join(directory, 'a', 'd'), PRIVATE)).toBe(join(directory, 'a', 'd'))
  })

  it('leaves what is there, links to folders included', async () => {
    const directory = await makeDirectory()
    await mkdir(join(directory, 'real'), 0o755)
    await symlink('real', join(directory, 'link'))
    expect(await makePath(join(directory, 'real'), PRIVATE)).toBeUndefined()
    expect(await makePath(join(directory, 'link'), PRIVATE)).toBeUndefined()
    expect(await modeOf(join(directory, 'real'))).toBe(0o755)
    expect(await makePath('/', PRIVATE)).toBeUndefined()
  })

  it('makes a folder once for many at the same time', async () => {
    const directory = await makeDirectory()
    const path = join(directory, 'a', 'b', 'c')
    await Promise.all(Array.from({ length: 20 }, () => makePath(path, PRIVATE)))
    expect((await stat(path)).isDirectory()).toBe(true)
  })

  it('fails where a file is in the way', async () => {
    const file = join(await makeDirectory(), 'file')
    await writeFile(file, '')
    await expect(makePath(file, PRIVATE)).rejects.toMatchObject({ code: 'EEXIST' })
    await expect(makePath(join(file, 'a'), PRIVATE)).rejects.toMatchObject({ code: 'ENOTDIR' })
  })
})
