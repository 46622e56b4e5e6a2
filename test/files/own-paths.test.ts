import { link, mkdtemp, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createOwnCheck } from '../../src/files/own-paths.ts'
import { eventually } from '../helpers/eventually.ts'

async function makeDirectory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'own-paths-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  return path
}

it('own files are known by their path, as neighbours, below folders, and by hard links', async () => {
  const directory = await makeDirectory()
  const [config, folder, other] = ['config.json', 'data', 'other.json'].map(name => join(directory, name))
  if (!config || !folder || !other) return expect.fail('three paths')
  await writeFile(config, '{}')
  await writeFile(other, '{}')
  await link(config, join(directory, 'hard'))
  const isOwn = createOwnCheck([config, folder])
  expect(await isOwn(config)).toBe(true)
  expect(await isOwn(`${config}-wal`)).toBe(true)
  expect(await isOwn(join(folder, 'a/b'))).toBe(true)
  expect(await isOwn(join(directory, 'hard'), await stat(join(directory, 'hard')))).toBe(true)
  expect(await isOwn(other, await stat(other))).toBe(false)
})

it('a replaced configuration is known a moment later', async () => {
  const directory = await makeDirectory()
  const config = join(directory, 'config.json')
  await writeFile(join(directory, 'first'), '{}')
  await symlink('first', config)
  const isOwn = createOwnCheck([config])
  const second = join(directory, 'second')
  expect(await isOwn(second)).toBe(false)
  await writeFile(second, '{}')
  await symlink('second', `${config}.new`)
  await rename(`${config}.new`, config)
  await eventually(async () => expect(await isOwn(second)).toBe(true))
})

it('a new file with the inode number of the replaced configuration is not refused', async () => {
  const directory = await makeDirectory()
  const config = join(directory, 'config.json')
  await writeFile(config, '{}')
  const isOwn = createOwnCheck([config])
  const identity = await stat(config)
  expect(await isOwn(join(directory, 'hard'), identity)).toBe(true)
  await writeFile(`${config}.new`, '{}')
  await rename(`${config}.new`, config)
  expect(await isOwn(join(directory, 'picture.png'), identity)).toBe(false)
})
