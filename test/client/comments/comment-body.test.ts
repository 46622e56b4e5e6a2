import { expect, it } from 'vitest'
import { toBody } from '../../../src/client/comments/comment-body.ts'
import { type ReviewRow, sortRows } from '../../../src/client/reports/review.ts'

const image = (name: string, width = 1280) => ({
  name,
  url: `https://img.example.com/${encodeURIComponent(name)}`,
  width,
  height: 720,
})

const changed = (name: string, share?: number): ReviewRow => ({
  name,
  state: 'changed',
  before: image(`main/${name}`),
  after: image(`shots/${name}`),
  ...(share !== undefined && { share, difference: image(`difference/${name}`) }),
})

const same = Array.from({ length: 509 }, (_, index): ReviewRow => {
  const name = `same/${index}.png`
  return { name, state: 'same', after: image(name) }
})

const COMMIT = '0123456789012345678901234567890123456789'
const frame = { title: 'T', run: { commit: COMMIT, url: 'https://ci.example.com/runs/7' } }

const bodyOf = (rows: readonly ReviewRow[], more: object = {}) =>
  toBody({ ...frame, ...more }, { rows: sortRows(rows), baseline: { name: 'main', commit: COMMIT } })

it('begins with the totals, the commits and the run, then the most changed images, then those of other kinds', () => {
  const body = bodyOf([
    changed('a.png', 0.000_001),
    changed('b.png', 0.1234),
    { ...changed('c.bin'), after: image('c.bin', 1300) },
    { name: 'deep/new.png', state: 'new', after: image('deep/new.png', 100) },
    { name: 'gone.png', state: 'gone', before: image('gone.png') },
    { name: 'to.png', state: 'renamed', from: 'from.png', after: image('to.png') },
    { name: 'bad.png', state: 'failed', after: { name: 'bad.png', error: 'it is empty' } },
    ...same,
  ])
  expect(body.split('\n\n')).toEqual([
    '### T',
    '**3 changed · 1 new · 1 gone · 1 renamed · 1 failed · 509 the same**',
    `Commit ${COMMIT} · [run](https://ci.example.com/runs/7) · compared with ${COMMIT}`,
    '- ❌ <code>bad.png</code>: it is empty',
    '<code>c.bin</code>: 1280 × 720 → 1300 × 720',
    expect.stringMatching(/^<table>\n<tr><th width="50%">Before<\/th><th width="50%">After<\/th><\/tr>\n/),
    '<code>b.png</code>: 12.34 % of the pixels changed',
    expect.stringMatching(
      /^<table>\n.*<th width="33%">Difference<\/th><\/tr>\n<tr><td><a href="[^"]+main%2Fb.png"><img src="[^"]+main%2Fb.png" width="390" alt="b.png before"><\/a><\/td>/,
    ),
    '<code>a.png</code>: 0.01 % of the pixels changed',
    expect.stringMatching(/^<table>\n/),
    'New:',
    expect.stringMatching(
      /^<table>\n<tr><td><code>deep\/new.png<\/code> \(100 × 720\)<br><a .* width="56" alt="new.png"><\/a><\/td><\/tr>\n<\/table>/,
    ),
    expect.stringMatching(
      /^- gone: \[<code>gone.png.*\n- renamed: <code>from.png<\/code> to \[<code>to.png<\/code>\]\(/,
    ),
  ])
})

it.each([
  [0, '**T**: 509 the same'],
  [6, '**6 changed · 509 the same**'],
  [60, '<details><summary>54 more changed</summary>'],
  [512, 'more do not fit here.'],
])('of %i changed images shows six, and the others collapsed', (count, said) => {
  const body = bodyOf([
    ...Array.from({ length: count }, (_, index) => changed(`${index % 9}/${index}.png`, index / count)),
    ...same,
  ])
  expect(body).toContain(said)
  expect(body.match(/<details>/g)?.length).toBe(body.match(/<\/details>/g)?.length)
  expect(body.split('<details>')[0]?.match(/of the pixels/g)?.length ?? 0).toBe(Math.min(6, count))
  expect(body.includes('do not fit')).toBe(count > 60)
})

it.each<[string, { width?: number; height?: number }, number]>([
  ['wide', { width: 1280, height: 720 }, 390],
  ['small', { width: 30, height: 20 }, 30],
  ['long', { width: 1280, height: 12_800 }, 40],
  ['of unknown size', {}, 390],
])('an image that is %s', (_, size, width) => {
  const { width: _width, height: _height, ...rest } = image('a.png')
  const small = 'https://img.example.com/small.webp'
  const body = bodyOf([{ ...changed('a.png', 1), after: { ...rest, ...size, small } }])
  expect(body).toContain(`<a href="${rest.url}"><img src="${small}" width="${width}" alt="a.png after"></a>`)
})

it.each([
  [{ url: 'https://img.example.com/r.html' }, '[Report with all images](https://img.example.com/r.html)'],
  [
    {},
    'Report with all images: <code>r.html</code> in the artifacts of [the run](https://ci.example.com/runs/7).',
  ],
])('names the report', (report, said) => {
  expect(bodyOf([changed('a.png')], { report: { file: 'r.html', ...report } })).toContain(said)
})

it('attack: names in a comment break out of no cell, attribute, tag or heading, and take no room from others', () => {
  const evil = '</code></details>|"><img src=x onerror=1>\n\n# x](y) `@me` #1 <!-- --> www.a.b'
  const long = `${'&'.repeat(4000)}/`
  const rows = ['', ...Array.from({ length: 40 }, (_, index) => `${long}${index}`)].map((folder, index) =>
    changed(`${folder}/${evil}${index}.png`, 1 / (index + 1)),
  )
  for (const some of [rows.slice(0, 1), rows, rows.flatMap(row => [row, row])]) {
    const body = bodyOf([...some, { name: evil, state: 'gone', before: image('x') }, ...same], {
      title: evil,
    })
    expect(Buffer.byteLength(body)).toBeLessThan(65_000)
    expect(body).not.toMatch(/onerror=|@me|#1 |\bwww\.|# x/)
    for (const tag of ['code', 'details', 'table', 'tr', 'td', 'a'])
      expect(body.match(new RegExp(`<${tag}[ >]`, 'g'))?.length).toBe(
        body.match(new RegExp(`</${tag}>`, 'g'))?.length,
      )
  }
})
