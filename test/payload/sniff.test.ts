import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { hold } from '../../src/files/held.ts'
import { SNIFF_BYTES, sniffFile, sniffLength, sniffType } from '../../src/payload/sniff.ts'
import { makeDirectory } from '../helpers/directory.ts'

/** What the bytes are, or the name that was sent with a text; the bytes as Latin-1, where a number is so many zeros; type, extension. */
type Row = readonly [
  what: string,
  bytes: string | readonly (string | number)[],
  contentType: string,
  extension: string,
]

const ROWS: Readonly<Record<string, readonly Row[]>> = JSON.parse(
  readFileSync(new URL('../fixtures/types.json', import.meta.url), 'utf8'),
)
const toBytes = (bytes: Row[1]): Buffer =>
  Buffer.concat(
    [bytes].flat().map(one => (typeof one === 'number' ? Buffer.alloc(one) : Buffer.from(one, 'latin1'))),
  )

describe.each(Object.entries(ROWS))('%s:', (title, rows) => {
  it.each(rows)('%s %j', (what, bytes, contentType, extension) => {
    const expected = { contentType, extension }
    if (title.startsWith('UTF-16')) {
      const little = Buffer.from(`\ufeff${bytes}`, 'utf16le')
      for (const head of [little, Buffer.from(little).swap16()])
        expect(sniffType(head, what)).toEqual(expected)
    } else {
      const name = title.startsWith('text is') ? what : ''
      expect(sniffType(toBytes(bytes).subarray(0, SNIFF_BYTES), name)).toEqual(expected)
    }
  })
})

it('a drawing behind a long comment was text/html, and one behind a long DTD application/xml', async () => {
  const path = join(await makeDirectory(), 'a')
  for (const start of [
    `<!-- ${'x'.repeat(20_000)} -->\n`,
    `<?xml version="1.0"?>\n<!-- ${'x'.repeat(9000)} --><!DOCTYPE svg [\n<!ENTITY a "]>">`,
  ]) {
    const drawing = Buffer.from(`${start}<svg xmlns="http://www.w3.org/2000/svg"/>`)
    expect(sniffType(drawing.subarray(0, sniffLength(drawing)))).toMatchObject({ extension: '.svg' })
    await writeFile(path, drawing)
    const file = await hold(path)
    expect(await sniffFile(file.handle)).toMatchObject({ contentType: 'image/svg+xml' })
    await file.close()
  }
})

it('is not fooled by a character that is cut in two at the end of the head', () => {
  const text = Buffer.from('é'.repeat(SNIFF_BYTES))
  expect(sniffType(text.subarray(0, SNIFF_BYTES - 1))).toMatchObject({ contentType: 'text/plain' })
})

it('is done quickly with markup that was made to be slow', () => {
  const slow = [
    ...['<!doctype svg [', '<!--', '<?', '<!doctype svg ['.repeat(200)],
    ...['<!---->'.repeat(500), '<?xml '.repeat(600)],
  ]
  for (const start of slow)
    sniffType(Buffer.from((start + ' <'.repeat(SNIFF_BYTES)).slice(0, SNIFF_BYTES), 'latin1'))
})
