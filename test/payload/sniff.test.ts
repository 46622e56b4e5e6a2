import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileTypeFromBuffer } from 'file-type'
import { describe, expect, it } from 'vitest'
import * as packaged from '../../src/packages/file-type.ts'
import { SNIFF_BYTES, sniffType } from '../../src/payload/sniff.ts'

const bytes = (text: string) => Buffer.from(text, 'latin1')
const tail = '\0'.repeat(64)

const SVG = ['image/svg+xml', '.svg'] as const
const HTML = ['text/html', '.html'] as const
const XML = ['application/xml', '.xml'] as const
const TEXT = ['text/plain', '.txt'] as const
const UNKNOWN = ['application/octet-stream', ''] as const

describe('the packaged file-type', () => {
  const folder = dirname(createRequire(import.meta.url).resolve('file-type'))
  const source = readFileSync(join(folder, 'core.js'), 'utf8')
  const texts = [...source.matchAll(/\.checkString\('([^']+)'(?:, \{offset: (\d+))?/g)].map(
    ([, text = '', offset = '0']) => [bytes(text), Number(offset)] as const,
  )
  const numbers = [...source.matchAll(/\.check\(\[((?:0x[\dA-F]+(?:, )?)+)\](?:, \{offset: (\d+))?/gi)].map(
    ([, list = '', offset = '0']) => [Buffer.from(list.split(', ').map(Number)), Number(offset)] as const,
  )

  it('says the same of every beginning that file-type compares with', async () => {
    expect(texts.length).toBeGreaterThan(70)
    expect(numbers.length).toBeGreaterThan(40)
    const types = new Set()
    for (const [start, offset] of [...texts, ...numbers]) {
      for (const fill of [0, 0x20, 0xff]) {
        const head = Buffer.alloc(SNIFF_BYTES, fill)
        start.copy(head, offset)
        const expected = await fileTypeFromBuffer(head)
        expect(await packaged.fileTypeFromBuffer(head), `${start} at ${offset}`).toEqual(expected)
        types.add(expected?.ext)
      }
    }
    expect(types.size).toBeGreaterThan(70)
  })

  it.each([0, 1, 2, 3, 31])('says the same of %i bytes', async length => {
    for (const [start] of [...texts, ...numbers]) {
      const head = Buffer.concat([start, Buffer.alloc(32)]).subarray(0, length)
      expect(await packaged.fileTypeFromBuffer(head)).toEqual(await fileTypeFromBuffer(head))
    }
  })
})

describe('sniffType', () => {
  it.each<[string, Buffer, readonly [string, string]]>([
    [
      'PNG',
      bytes(`\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\0\0\0\0\0\0\0\0IDAT${tail}`),
      ['image/png', '.png'],
    ],
    ['JPEG', bytes(`\xff\xd8\xff\xe0\0\x10JFIF${tail}`), ['image/jpeg', '.jpg']],
    ['GIF', bytes(`GIF89a${tail}`), ['image/gif', '.gif']],
    ['WebP', bytes(`RIFF\x24\0\0\0WEBPVP8 ${tail}`), ['image/webp', '.webp']],
    ['AVIF', bytes(`\0\0\0\x20ftypavif\0\0\0\0avifmif1miafMA1B${tail}`), ['image/avif', '.avif']],
    ['PDF', bytes('%PDF-1.7\n'), ['application/pdf', '.pdf']],
    ['ZIP', bytes('PK\x05\x06' + '\0'.repeat(18)), ['application/zip', '.zip']],
    ['MP4', bytes(`\0\0\0\x18ftypisom\0\0\0\0isomiso2${tail}`), ['video/mp4', '.mp4']],
    ['text', bytes('hello\nworld\t!'), TEXT],
    ['UTF-8 text', Buffer.from('héllo 日本 😀'), TEXT],
    ['text with a byte order mark', Buffer.from('\ufeffhello'), TEXT],
    ['JSON', bytes('{"a":1}'), TEXT],
    ['nothing', bytes(''), UNKNOWN],
    ['one zero', bytes('\0'), UNKNOWN],
    ['text with a zero', bytes('abc\0def'), UNKNOWN],
    ['no UTF-8', bytes('abc\xff\xfe\xfddef'), UNKNOWN],
    ['control characters', bytes('abc\x01\x02'), UNKNOWN],
  ])('knows %s', async (_, head, [contentType, extension]) => {
    expect(await sniffType(head)).toEqual({ contentType, extension })
  })

  it.each<[string, Buffer, readonly [string, string]]>([
    ['a drawing in a comment', bytes('<!--ftypavif    --><!DOCTYPE x [<!ENTITY a "b">]><svg/>'), TEXT],
    ['HTML in a comment', bytes('<!--ftypheic    --><!DOCTYPE html><p>'), HTML],
    ['that, not in UTF-8', bytes('<!--ftypavif \xe9  --><!DOCTYPE x><svg/>'), UNKNOWN],
    ['a box "ftyp" up to the end', bytes(`\0\0\0\0ftypavif${tail}`), UNKNOWN],
    ['a box "ftyp" of gigabytes', bytes(`\xff\0\0\0ftypavif${tail}`), UNKNOWN],
    ['a sentence with "free"', bytes('The free world.'), TEXT],
    ['a word of two letters', bytes('BMW and others'), TEXT],
    ['a font to begin with', bytes('OTTO\n is a name.'), TEXT],
    ['a wave', bytes('RIFF is written WAVE, RIFFabcdWAVEfmt'), TEXT],
    ['a sound', bytes('ID3 is a tag.'), TEXT],
    ['a film', bytes('FLV is a format.'), TEXT],
    ['PostScript, which is text', bytes('%!PS-Adobe-3.0\n'), ['application/postscript', '.ps']],
    ['RTF, which is text', bytes('{\\rtf1 x}'), ['application/rtf', '.rtf']],
  ])('takes no text for a picture, sound, film or font: %s', async (_, head, [contentType, extension]) => {
    expect(await sniffType(head)).toEqual({ contentType, extension })
  })

  const png = (...chunks: string[]) =>
    bytes(`\x89PNG\r\n\x1a\n\0\0\0\rIHDR${'\0'.repeat(17)}${chunks.join('')}`)
  const chunk = (type: string, length: number) =>
    `\0\0${String.fromCharCode(length >> 8, length & 255)}${type}${'\0'.repeat(length + 4)}`
  it.each<[string, Buffer]>([
    ['a PNG with chunks before the picture', png(chunk('gAMA', 4), chunk('iCCP', 300), chunk('IDAT', 9))],
    ['an animated PNG', png(chunk('acTL', 8), chunk('IDAT', 9))],
    ['a PNG whose picture begins further behind', png(chunk('iCCP', 5000), chunk('IDAT', 9))],
    ['a PNG that is cut off', png(chunk('gAMA', 4))],
    ['a PNG that begins with another chunk', bytes(`\x89PNG\r\n\x1a\n${chunk('tEXt', 9)}${tail}`)],
    ['the first bytes of a PNG', bytes('\x89PNG\r\n')],
    ['a JPEG', bytes(`\xff\xd8\xff\xe1${tail}`)],
    ['a JPEG-LS', bytes(`\xff\xd8\xff\xf7${tail}`)],
    ['the first bytes of a JPEG', bytes('\xff\xd8\xff')],
    ['an MPEG file', bytes(`\xff\xfb\x90\x64${tail}`)],
    ['a GIF', bytes(`GIF87a${tail}`)],
    ['a WebP', bytes(`RIFF\0\x01\0\0WEBPVP8L${tail}`)],
    ['an AVI', bytes(`RIFF\0\x01\0\0AVI LIST${tail}`)],
    ['a wave file', bytes(`RIFF\0\x01\0\0WAVEfmt ${tail}`)],
  ])('says of %s what file-type says', async (_, whole) => {
    const head = whole.subarray(0, SNIFF_BYTES)
    const found = await fileTypeFromBuffer(head)
    const expected = found && { contentType: found.mime, extension: `.${found.ext}` }
    const unknown = { contentType: 'application/octet-stream', extension: '' }
    expect(await sniffType(head)).toEqual(expected ?? unknown)
  })

  it.each<[string, readonly [string, string]]>([
    ['<svg xmlns="http://www.w3.org/2000/svg"/>', SVG],
    ['<svg>', SVG],
    ['  \n<SVG >', SVG],
    ['\u00ef\u00bb\u00bf<svg>', SVG],
    ['<?xml version="1.0"?>\n<svg>', SVG],
    ['<?xml version="1.0"?><!-- made by --><!-- hand --><svg>', SVG],
    ['<!-- a --><?xml-stylesheet href="x"?><svg>', SVG],
    ['<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "x"><svg>', SVG],
    ['<?xml version="1.0"?><!DOCTYPE svg [ <!ENTITY a "b"> ]>\n<svg>', SVG],
    ['<svg:svg xmlns:svg="x">', SVG],
    ['<!doctype html><svg>', HTML],
    ['<html>', HTML],
    ['<HTML lang="en">', HTML],
    ['<script>alert(1)</script>', HTML],
    ['\t\r\n <body onload=x>', HTML],
    ['<!-- comment --><script>', HTML],
    ['<!-- never closed', HTML],
    ['<iframe src=x>', HTML],
    ['<p>text', HTML],
    ['<?xml version="1.0"?><rss/>', XML],
    ['<?xml version="1.0"?>', XML],
    ['<svgx>', TEXT],
    ['<note>', TEXT],
    ['< html>', TEXT],
    ['a <html>', TEXT],
  ])('tells what a browser would run from what it would not: %j', async (text, [contentType, extension]) => {
    expect(await sniffType(bytes(text))).toEqual({ contentType, extension })
  })

  it('is not fooled by a character that is cut in two at the end of the head', async () => {
    const text = Buffer.from('é'.repeat(SNIFF_BYTES))
    expect(await sniffType(text.subarray(0, SNIFF_BYTES - 1))).toMatchObject({ contentType: 'text/plain' })
  })

  it('is done quickly with markup that was made to be slow', async () => {
    const slow = [
      '<!doctype svg [',
      '<!--',
      '<?',
      '<!doctype svg ['.repeat(200),
      '<!---->'.repeat(500),
      '<?xml '.repeat(600),
    ]
    const begun = performance.now()
    for (const start of slow) await sniffType(bytes((start + ' <'.repeat(SNIFF_BYTES)).slice(0, SNIFF_BYTES)))
    expect(performance.now() - begun).toBeLessThan(1000)
  })
})
