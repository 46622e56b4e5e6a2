import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { type EntryOptions, findEntries } from '../../src/cli/entries.ts'
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
    ['empty', 'it holds no file'],
    ['out/*.gif', 'no file matches it'],
    ['absent', 'there is no such file'],
  ])('that find nothing are faults: %s', async (name, fault) => {
    expect(await find([name])).toEqual([expect.objectContaining({ name, fault })])
  })

  it('are no patterns in a list', async () => {
    expect(await find(['out/*.png'], { isLiteral: true })).toEqual([
      expect.objectContaining({ fault: 'there is no such file' }),
    ])
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
    ['are stripped', ['report'], { keepFolders: true, strip: 1 }, [undefined, 'img']],
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
