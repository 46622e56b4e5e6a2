import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { readMasks } from '../../../src/client/reports/masks.ts'
import { makeDirectory } from '../../helpers/directory.ts'

const AREA = { x: 0, y: 1, width: 2, height: 3 }

async function read(value: unknown) {
  const cwd = await makeDirectory()
  await writeFile(join(cwd, 'masks.json'), typeof value === 'string' ? value : JSON.stringify(value))
  return readMasks('masks.json', { cwd, stdin: process.stdin })
}

it.each([
  ['a.png', 'a.png', true],
  ['a.png', 'Card/a.png', false],
  ['*', 'Card/a.png', true],
  ['Card/*.png', 'Card/deep/a.png', true],
  ['Card/*.png', 'Card/a.jpg', false],
  ['*clock*', 'Card/clock.png', true],
  ['a*a', 'a', false],
  ['a.png', 'aXpng', false],
])('the pattern %s, and the image %s', async (pattern, path, isMasked) => {
  const masks = await read({ [pattern]: [AREA] })
  expect(masks(path)).toEqual(isMasked ? [AREA] : [])
})

it.each<[string, unknown, RegExp]>([
  ['no JSON', '{', /Could not read masks\.json for --masks: /],
  ['a list', [AREA], /must be an object/],
  ['one area', { a: AREA }, /"a" must be a list/],
  ['a text for a number', { a: [{ ...AREA, x: '1' }] }, /not whole numbers/],
  ['attack: a negative number', { a: [{ ...AREA, width: -1 }] }, /not whole numbers/],
  ['attack: a number without end', '{"a":[{"x":0,"y":0,"width":1e999,"height":1}]}', /not whole numbers/],
  ['attack: areas without end', { a: Array.from({ length: 101 }, () => AREA) }, /up to 100 areas/],
  [
    'attack: paths without end',
    Object.fromEntries(Array.from({ length: 1001 }, (_, index) => [index, []])),
    /up to 1000 paths/,
  ],
  ['attack: a file without end', ' '.repeat(1024 * 1024 + 1), /larger than 1 MiB/],
])('refuses %s', async (_, value, says) => {
  await expect(read(value)).rejects.toThrow(says)
})

it('says that the file is missing', async () => {
  const cwd = await makeDirectory()
  await expect(readMasks('absent.json', { cwd, stdin: process.stdin })).rejects.toThrow(
    'Could not read absent.json for --masks: no such file or folder.',
  )
})

it('attack: a pattern of many stars, and a path that nearly fits', async () => {
  const masks = await read({ [`${'*a'.repeat(400)}b`]: [AREA] })
  expect(masks('a'.repeat(4000))).toEqual([])
})
