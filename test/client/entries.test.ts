import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { type EntryOptions, findEntries } from '../../src/client/entries.ts'
import { makeDirectory } from '../helpers/directory.ts'

const FILES = [
  'a.png',
  '[1] {a,b}*.png',
  'out/1.png',
  'out/deep/2.png',
  'out/deep/3.txt',
  'out/.hidden/4.png',
  'out/node_modules/5.png',
  'report/index.html',
  'report/img/6.png',
]

let root: string
let cwd: string
beforeEach(async () => {
  root = await makeDirectory()
  cwd = join(root, 'here')
  for (const name of [...FILES, 'empty/.keep', '../beside/7.png']) {
    await mkdir(join(cwd, name, '..'), { recursive: true })
    await writeFile(join(cwd, name), name)
  }
  await symlink('..', join(cwd, 'out/deep/up'))
})

const find = (names: string[], options: EntryOptions = {}, platform: NodeJS.Platform = 'linux') =>
  findEntries(names, options, { cwd, platform })

describe('the arguments of upload', () => {
  it.each<[string, string[], string[]]>([
    ['files in their order', ['report/index.html', 'a.png'], ['report/index.html', 'a.png']],
    ['a folder with all below it', ['out/'], ['out/1.png', 'out/deep/2.png', 'out/deep/3.txt']],
    ['a quoted pattern', ['out/**/*.png'], ['out/1.png', 'out/deep/2.png']],
    ['a pattern with alternatives', ['out/deep/*.{txt,jpg}'], ['out/deep/3.txt']],
    ['a pattern of an absolute path', ['/ROOT/here/out/*.png'], ['/ROOT/here/out/1.png']],
    ['a pattern that leads out', ['../beside/*'], ['../beside/7.png']],
    ['a name that is there and looks like a pattern', ['[1] {a,b}*.png'], ['[1] {a,b}*.png']],
    [
      'a file once that a folder and a pattern find',
      ['out', 'out/*.png', 'out/1.png'],
      ['out/1.png', 'out/deep/2.png', 'out/deep/3.txt', 'out/1.png'],
    ],
    [
      'all but what a name with ! in front excludes',
      ['out', 'a.png', '!out/**/*.txt'],
      ['out/1.png', 'out/deep/2.png', 'a.png'],
    ],
    ['all but a folder', ['!out/deep', 'out'], ['out/1.png']],
    ['addresses and standard input', ['https://x/*.png', '-'], ['https://x/*.png', '-']],
  ])('name %s', async (_, names, expected) => {
    const at = (name: string) => name.replace('/ROOT', root)
    const entries = await find(names.map(at))
    expect(entries.map(({ name }) => name)).toEqual(expected.map(at))
    expect(entries.filter(({ fault }) => fault !== undefined)).toEqual([])
  })

  it('are written with backslashes on Windows, patterns too', async () => {
    expect((await find(['out\\**\\*.png'], {}, 'win32')).map(({ name }) => name)).toEqual([
      'out/1.png',
      'out/deep/2.png',
    ])
  })

  it.each([
    ['empty', 'the folder contains no files'],
    ['out/*.gif', 'no file matches the pattern'],
    ['absent', 'the file does not exist'],
  ])('that find nothing are faults: %s', async (name, fault) => {
    expect(await find([name])).toEqual([expect.objectContaining({ name, fault })])
  })

  it('are no patterns in a list', async () => {
    expect(await find(['out/*.png'], { isLiteral: true })).toEqual([
      expect.objectContaining({ fault: 'the file does not exist' }),
    ])
  })
})

describe('attack: symlinks of a cloned folder', () => {
  beforeEach(async () => {
    await mkdir(join(cwd, '.git'))
    for (const name of ['here/.git/config', 'secret/id_rsa', 'here/out/.env']) {
      await mkdir(join(root, name, '..'), { recursive: true })
      await writeFile(join(root, name), 'secret')
    }
    await symlink('.git/config', join(cwd, 'config.png'))
    await symlink(join(root, 'secret/id_rsa'), join(cwd, 'key.png'))
    await symlink('../secret', join(cwd, 'shots'))
    await symlink('.git', join(cwd, 'git'))
    await symlink('/proc/self/environ', join(cwd, 'environ.png'))
    await symlink('a.png', join(cwd, 'fine.png'))
    await symlink('out', join(cwd, 'also'))
  })

  it.each<[string, string[], EntryOptions]>([
    [
      'of a list',
      ['config.png', 'key.png', 'shots/id_rsa', './git/config', 'environ.png'],
      { isLiteral: true },
    ],
    [
      'of a list with absolute names',
      ['/ROOT/here/config.png', '/ROOT/here/shots/id_rsa'],
      { isLiteral: true },
    ],
    ['named by the shell', ['config.png', 'key.png', 'shots/id_rsa', '../here/shots/id_rsa'], {}],
    ['at the beginning of a pattern', ['/ROOT/here/shots/*', 'git/c*'], {}],
    ['in place of a folder', ['shots', 'git/'], {}],
  ])('that lead out or to what begins with a dot are not followed: %s', async (_, names, options) => {
    const entries = await find(
      names.map(name => name.replace('/ROOT', root)),
      options,
    )
    expect(entries).toHaveLength(names.length)
    for (const { fault } of entries)
      expect(fault).toMatch(/^it is (?:a symlink (?:that leads out of|to \.)|outside of the allowed folders)/)
  })

  it('are followed within, where the user names them with the dot, and by absolute paths', async () => {
    const names = ['fine.png', 'also/1.png', '.git/config', 'out/.env', join(cwd, 'key.png')]
    const entries = await find(names)
    expect(entries.map(({ fault }) => fault)).toEqual(names.map(() => undefined))
  })
})

describe('folders', () => {
  it.each<[string, string[], EntryOptions, (string | undefined)[]]>([
    ['are not kept', ['report'], {}, [undefined, undefined]],
    ['are that of the option', ['report'], { path: 'r/1' }, ['r/1', 'r/1']],
    ['are kept as they are named', ['report'], { keepFolders: true }, ['report', 'report/img']],
    [
      'are kept below that of the option',
      ['report'],
      { keepFolders: true, path: 'r' },
      ['r/report', 'r/report/img'],
    ],
    ['are stripped', ['report'], { keepFolders: true, stripComponents: 1 }, [undefined, 'img']],
    ['are kept of a pattern', ['report/**/*.png'], { keepFolders: true }, ['report/img']],
    [
      'are kept of an absolute path below here',
      ['/ROOT/here/report/img'],
      { keepFolders: true },
      ['report/img'],
    ],
    ['are kept from the named one on elsewhere', ['../beside'], { keepFolders: true }, ['beside']],
    ['of a pattern elsewhere begin where it does', ['../**/7.png'], { keepFolders: true }, ['beside']],
  ])('%s', async (_, names, options, expected) => {
    const entries = await find(
      names.map(name => name.replace('/ROOT', root)),
      options,
    )
    expect(entries.map(({ folder }) => folder)).toEqual(expected)
  })

  it('that can not be kept are a fault', async () => {
    expect(await find(['a.png'], { path: '../x' })).toEqual([
      expect.objectContaining({ fault: expect.stringContaining('".." segment') }),
    ])
  })
})
