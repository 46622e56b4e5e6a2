import { expect, it } from 'vitest'
import { toBody } from '../../../src/client/comments/comment-body.ts'
import { type ReviewRow, sortRows } from '../../../src/client/reports/review.ts'

const image = (name: string) => ({ name, url: `https://img.example.com/${name}`, width: 40, height: 30 })

const changed = (name: string, share?: number): ReviewRow => ({
  ...{ name, state: 'changed' },
  before: image(`before-${name}`),
  after: image(name),
  ...(share !== undefined && { share, difference: image(`difference/${name}`) }),
})

const same = Array.from({ length: 509 }, (_, index): ReviewRow => ({ name: `${index}.png`, state: 'same' }))

const bodyOf = (rows: ReviewRow[]) => toBody('T', [], { rows: sortRows([...rows, ...same]) })

it('shows changed images, the most changed first, those that are not decodable before them', () => {
  const body = bodyOf([changed('a.png', 0.000_001), changed('b.png', 0.1234), changed('c.bin')])
  expect(body).toContain('### T\n\n**3 changed · 509 the same**\n\n<code>c.bin</code>\n')
  const shares = body.match(/<\/code>: [\d.]+ % of the pixels changed/g)
  expect(shares).toEqual(['12.34', '0.01'].map(share => `</code>: ${share} % of the pixels changed`))
  expect(body.match(/<img /g)).toHaveLength(8)
  expect(body).not.toContain('<details>')
})

it('shows six of many changed images, and the others by folder', () => {
  const body = bodyOf(
    Array.from({ length: 30 }, (_, index) =>
      changed(`${index % 2 ? 'Card' : 'Menu'}/${index}.png`, index / 100),
    ),
  )
  const [shown = '', ...folders] = body.split('<details>')
  expect(shown.match(/<code>/g)).toHaveLength(6)
  expect(
    folders.map(text => [
      /^<summary>.*<\/summary>/.exec(text)?.[0],
      text.match(/<table>|<code>\w+\/\d/g)?.length,
    ]),
  ).toEqual([
    ['<summary><code>Card</code>: 12 changed</summary>', 12],
    ['<summary><code>Menu</code>: 12 changed</summary>', 12],
  ])
})

it('counts the changed images that do not fit', () => {
  const rows = Array.from({ length: 512 }, (_, index) => changed(`${index % 9}/${index}.png`, index / 512))
  const body = bodyOf(rows)
  expect(Buffer.byteLength(body)).toBeLessThan(60_000)
  const shown = body.match(/of the pixels changed/g)?.length ?? 0
  expect(body).toContain(`${512 - shown} more changed. They do not fit into this comment.`)
  expect(body.match(/<details>/g)).toHaveLength(body.match(/<\/details>/g)?.length ?? 0)
})
