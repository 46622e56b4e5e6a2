import { expect, it } from 'vitest'
import { prepareReview } from '../../../src/client/reports/compare.ts'
import type { Image } from '../../../src/client/reports/images.ts'
import { type Paired, pair } from '../../../src/client/reports/pairs.ts'
import { countsOf, totalsOf } from '../../../src/client/reports/review.ts'

const at = (inside: string, sha256 = inside): Image => ({
  result: { name: `some/folder/${inside}`, sha256, url: `https://img.example.com/${sha256}` },
  inside,
})

const never = new AbortController().signal

const show = ({ name, state, from, ...more }: Paired) =>
  [from, name, state, more.expected?.inside, more.difference?.inside]
    .filter(one => one !== undefined)
    .join(' ')

it('pairs images by their path, and tells renamed ones by their content', () => {
  const before = [at('a.png', '1'), at('Card/old.png', '2'), at('b.png', '3'), at('twin.png', '4')]
  const present = [at('a.png', '5'), at('Card/new.png', '2'), at('b.png', '3')]
  const after = [...present, at('c.png', '4'), at('d.png', '4')]
  expect(pair(before, after).map(show)).toEqual([
    'a.png changed',
    'Card/old.png Card/new.png renamed',
    'b.png same',
    'twin.png c.png renamed',
    'd.png new',
  ])
})

it.each([
  ['folders', at],
  ['lists, which do not tell the folder', (...of: Parameters<typeof at>) => ({ result: at(...of).result })],
])('pairs images of %s by their paths, not by their last names', (_, image) => {
  const before = [image('Tooltip/default.png', '1'), image('Card/small.png', '2')]
  const after = [image('Card/default.png', '3'), image('Card/small.png', '4')]
  const states = pair(before, after).map(({ name, state }) => [name.split('/').slice(-2).join('/'), state])
  expect(states).toEqual([
    ['Card/default.png', 'new'],
    ['Card/small.png', 'changed'],
    ['Tooltip/default.png', 'gone'],
  ])
})

it('shows what Playwright expected, what it got and the difference as one image', () => {
  const names = ['home-actual', 'home-diff', 'home-expected', 'menu-actual', 'menu-expected']
  const after = [...names.map(name => at(`tests/${name}.png`)), at('other-actual.png')]
  expect(pair([], after).map(show)).toEqual([
    'tests/home.png changed tests/home-expected.png tests/home-diff.png',
    'tests/menu.png changed tests/menu-expected.png',
    'other-actual.png new',
  ])
})

it('compares the results of uploads: an image that failed is not gone', async () => {
  const images = ['a', 'b', 'c', 'd'].map(name => ({ result: at(`${name}.png`).result }))
  const after = [
    { name: 'now/a.png', error: 'too large' },
    { name: 'now/b.png', sha256: 'other' },
    { name: 'now/c.png', sha256: 'c.png' },
    { name: 'now/e.png', url: 'https://img.example.com/e' },
  ]
  const nothing = async () => undefined
  const options = { findDifference: nothing, makeSmall: undefined, threshold: 0, fetch: nothing, note() {} }
  const present = after.map(result => ({ result }))
  const prepared = await prepareReview({ name: 'main.json', images }, present, options, never)
  const review = prepared.conclude(after, [])
  expect(review.rows.map(({ name, state }) => `${name} ${state}`)).toEqual([
    'b.png changed',
    'now/e.png new',
    'd.png gone',
    'a.png failed',
    'c.png same',
  ])
  expect(countsOf(review)).toEqual({ changed: 1, new: 1, gone: 1, renamed: 0, failed: 1, same: 1 })
  expect(totalsOf(review)).toBe('1 changed · 1 new · 1 gone · 1 failed · 1 the same')
  expect(JSON.parse(JSON.stringify(review))).toEqual(review)
})

it('fetches and shows an earlier image by a new link, if the old one is signed', async () => {
  const bucket = 'https://bucket.example.com/a.png?signature='
  const old = { name: 'main/a.png', sha256: '1', size: 7, url: `${bucket}1` }
  const other = { name: 'main/b.png', sha256: '2', size: 7, url: 'https://img.example.com/b.png' }
  const after = ['a.png', 'b.png'].map(name => ({
    name,
    sha256: '3',
    url: `https://img.example.com/3${name}`,
  }))
  const [fetched, sought]: [string[], object[]] = [[], []]
  const options = {
    ...{ findDifference: async () => undefined, makeSmall: undefined, threshold: 0, note() {} },
    fetch: async (link: string) => void fetched.push(link),
    find: async (files: readonly object[]) => {
      sought.push(...files)
      return [`${bucket}2`]
    },
  }
  const images = [old, other].map(result => ({ result }))
  const present = after.map(result => ({ result }))
  const prepared = await prepareReview({ name: 'visual', images }, present, options, never)
  expect(sought).toEqual([{ name: 'a.png', sha256: '1', size: 7 }])
  expect(fetched).toEqual(expect.arrayContaining([`${bucket}2`, other.url]))
  const [first] = prepared.conclude(after, []).rows
  expect(first?.before?.url).toBe(`${bucket}2`)
})
