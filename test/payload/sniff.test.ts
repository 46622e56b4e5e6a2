import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { hold } from '../../src/files/held.ts'
import { SNIFF_BYTES, sniffFile, sniffLength, sniffType } from '../../src/payload/sniff.ts'
import { makeDirectory } from '../helpers/directory.ts'

const bytes = (text: string) => Buffer.from(text, 'latin1')
const tail = '\0'.repeat(64)

/** One pixel, without colours of its own. */
const GIF = bytes(`GIF89a\x01\0\x01\0\0\0\0!\xf9\x04${tail}`)

const SVG = ['image/svg+xml', '.svg'] as const
const DOCX = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'
const HTML = ['text/html', '.html'] as const
const XML = ['application/xml', '.xml'] as const
const TEXT = ['text/plain', '.txt'] as const
const UNKNOWN = ['application/octet-stream', ''] as const

describe('sniffType', () => {
  it.each<[string, Buffer, readonly [string, string]]>([
    [
      'PNG',
      bytes(`\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\0\0\0\0\0\0\0\0IDAT${tail}`),
      ['image/png', '.png'],
    ],
    ['JPEG', bytes(`\xff\xd8\xff\xe0\0\x10JFIF${tail}`), ['image/jpeg', '.jpg']],
    ['GIF', GIF, ['image/gif', '.gif']],
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
  ])('knows %s', (_, head, [contentType, extension]) => {
    expect(sniffType(head)).toEqual({ contentType, extension })
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
  ])('takes no text for a picture, sound, film or font: %s', (_, head, [contentType, extension]) => {
    expect(sniffType(head)).toEqual({ contentType, extension })
  })

  const png = (...chunks: string[]) =>
    bytes(`\x89PNG\r\n\x1a\n\0\0\0\rIHDR${'\0'.repeat(17)}${chunks.join('')}`)
  const chunk = (type: string, length: number) =>
    `\0\0${String.fromCharCode(length >> 8, length & 255)}${type}${'\0'.repeat(length + 4)}`
  const twice = (frame: string, length: number) =>
    bytes((frame + '\0'.repeat(length)).slice(0, length).repeat(2))
  const entry = (name: string, content = '') =>
    `PK\x03\x04${'\0'.repeat(14)}${String.fromCharCode(content.length)}\0\0\0${'\0'.repeat(4)}${String.fromCharCode(name.length)}\0\0\0${name}${content}`
  const tar = Buffer.alloc(512)
  tar.write('a.txt')
  tar.write(
    `${(8 * 0x20 + [...'a.txt'].reduce((sum, one) => sum + one.charCodeAt(0), 0)).toString(8)}\0 `,
    148,
  )
  const tiff = (...tags: number[]) =>
    Buffer.concat([
      bytes('II*\0\x08\0\0\0'),
      Buffer.of(tags.length, 0),
      ...tags.map(tag => Buffer.of(tag & 255, tag >> 8, 4, 0, 1, 0, 0, 0, 0x40, 0, 0, 0)),
      Buffer.alloc(64, 'NIKON'),
    ])

  it.each<[string, Buffer, contentType: string, extension: string]>([
    ['a PNG with chunks before the picture', png(chunk('iCCP', 300), chunk('IDAT', 9)), 'image/png', '.png'],
    ['an animated PNG', png(chunk('acTL', 8), chunk('IDAT', 9)), 'image/apng', '.apng'],
    ['a PNG whose picture begins further behind', png(chunk('iCCP', 5000)), 'image/png', '.png'],
    ['a PNG that is cut off', png(chunk('gAMA', 4)), 'image/png', '.png'],
    ['a JPEG', bytes(`\xff\xd8\xff\xe1${tail}`), 'image/jpeg', '.jpg'],
    ['the first bytes of a JPEG', bytes('\xff\xd8\xff'), 'image/jpeg', '.jpg'],
    ['a JPEG-LS', bytes(`\xff\xd8\xff\xf7${tail}`), 'image/jls', '.jls'],
    ['a GIF with colours', bytes(`GIF87a\x01\0\x01\0\x80\0\0${'\0'.repeat(6)},${tail}`), 'image/gif', '.gif'],
    ['a WebP', bytes(`RIFF\0\x01\0\0WEBPVP8L${tail}`), 'image/webp', '.webp'],
    [
      'a BMP',
      bytes(`BM${'\0'.repeat(8)}\x36\0\0\0\x28\0\0\0${'\0'.repeat(8)}\x01\0\x18\0`),
      'image/bmp',
      '.bmp',
    ],
    ['a TIFF', tiff(0x0100), 'image/tiff', '.tif'],
    ['a photo of a camera', tiff(0x010f, 0x014a), 'image/x-nikon-nef', '.nef'],
    ['a negative', tiff(0x010f, 0x014a, 0xc612), 'image/x-adobe-dng', '.dng'],
    [
      'an icon',
      bytes(`\0\0\x01\0\x01\0\x10\x10\0\0\x01\0\x20\0\x40\0\0\0\x16\0\0\0${tail}`),
      'image/x-icon',
      '.ico',
    ],
    ['an AVI', bytes(`RIFF\0\x01\0\0AVI LIST${tail}`), 'video/vnd.avi', '.avi'],
    [
      'a film for browsers',
      bytes(`\x1aE\xdf\xa3\x9fB\x86\x81\x01B\x82\x84webm${tail}`),
      'video/webm',
      '.webm',
    ],
    ['a wave file', bytes(`RIFF\0\x01\0\0WAVEfmt ${tail}`), 'audio/wav', '.wav'],
    ['MP3 frames', twice('\xff\xfb\x90\x64', 417), 'audio/mpeg', '.mp3'],
    ['frames of MPEG 2, layer 3', twice('\xff\xf3\x80\xc4', 208), 'audio/mpeg', '.mp3'],
    ['an MP3 with a tag', bytes(`ID3\x04\0\0\0\0\x02\x01${tail}`), 'audio/mpeg', '.mp3'],
    ['AAC frames', twice('\xff\xf1\x50\x80\x02\x1f\xfc', 16), 'audio/aac', '.aac'],
    ['Opus', bytes(`OggS\0\x02${'\0'.repeat(22)}OpusHead${tail}`), 'audio/ogg', '.opus'],
    ['a tar file', tar, 'application/x-tar', '.tar'],
    ['a document', bytes(entry('[Content_Types].xml') + entry('word/document.xml')), DOCX, '.docx'],
    ['a book', bytes(entry('mimetype', 'application/epub+zip')), 'application/epub+zip', '.epub'],
    ['another ZIP', bytes(entry('a.txt', 'hello')), 'application/zip', '.zip'],
  ])('knows %s', (_, whole, contentType, extension) => {
    expect(sniffType(whole.subarray(0, SNIFF_BYTES))).toEqual({ contentType, extension })
  })

  it.each<[string, Buffer]>([
    ['GIF', bytes(`GIF89a${tail}`)],
    ['GIFT', bytes(`GIFT_API_KEY=\0${tail}`)],
    ['BM', bytes(`BM${tail}`)],
    ['II*', bytes(`II*\0${tail}`)],
    ['ID3', bytes(`ID3\xff${tail}`)],
    ['RIFF and WEBP', bytes(`RIFF\0\0\0\0WEBP${tail}`)],
    ['the eleven bits of a sound', bytes(`\xff\xfb\x90\x64${tail}`)],
    [
      'frames of different sounds',
      Buffer.concat([twice('\xff\xfb\x90\x64', 417).subarray(0, 417), bytes('\xff\xf3\x80\xc4')]),
    ],
    ['MZ', bytes(`MZ${tail}`)],
    ['an icon without pictures', bytes(`\0\0\x01\0${tail}`)],
    ['a font without tables', bytes(`\0\x01\0\0\0${tail}`)],
    ['the first bytes of a PNG', bytes('\x89PNG\r\n')],
    ['a PNG that begins with another chunk', bytes(`\x89PNG\r\n\x1a\n${chunk('tEXt', 9)}${tail}`)],
    ['BZh', bytes(`BZh9\0${tail}`)],
    ['UTF-16 with control characters', bytes('\xff\xfea\0\x01\0')],
  ])('other bytes passed for a picture, a sound or a program by a few letters: %s', (_, head) => {
    expect(sniffType(head)).toEqual({ contentType: 'application/octet-stream', extension: '' })
  })

  it.each<[string, string, readonly [string, string]]>([
    ['GIFT_API_KEY=abc', 'a.gif', TEXT],
    ['GIF89a<?php system($_GET[0]);', 'shell.php', TEXT],
    ['body { color: red }', 'style.CSS', ['text/css', '.css']],
    ['export {}', 'https://a/b/module.mjs', ['text/javascript', '.mjs']],
    ['{"a":1}', 'a.json', ['application/json', '.json']],
    ['<p align="center">Title</p>', 'README.md', ['text/markdown', '.md']],
    ['<!-- lint -->\n# Title', 'README.md', ['text/markdown', '.md']],
    ['<!-- never closed', 'README.md', ['text/markdown', '.md']],
    ['<p>text', 'page.html', HTML],
    ['<p>text', 'page', HTML],
    ['<script>alert(1)</script>', 'README.md', HTML],
    ['<!doctype html><p>', 'a.css', HTML],
    ['<?xml version="1.0"?><p>', 'a.md', HTML],
    ['<?xml version="1.0"?><a/>', 'a.json', XML],
    ['<svg onload="alert(1)"/>', 'a.txt', SVG],
    ['%PDF-1.7\n', 'a.txt', ['application/pdf', '.pdf']],
    ['hello', 'a.constructor', TEXT],
  ])('%j in %s', (text, name, [contentType, extension]) => {
    expect(sniffType(bytes(text), name)).toEqual({ contentType, extension })
  })

  it.each<[string, string, readonly [string, string]]>([
    ['hello\r\n', '', TEXT],
    ['a,b\n1,2\n', 'a.csv', ['text/csv', '.csv']],
    ['<svg xmlns="http://www.w3.org/2000/svg"/>', 'a.svg', SVG],
    ['<?xml version="1.0" encoding="UTF-16"?><svg/>', '', SVG],
    ['<script>alert(1)</script>', 'a.txt', HTML],
  ])('UTF-16 text was audio/mpeg: %j', (text, name, [contentType, extension]) => {
    const little = Buffer.from(`\ufeff${text}`, 'utf16le')
    for (const head of [little, Buffer.from(little).swap16()])
      expect(sniffType(head, name)).toEqual({ contentType, extension })
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
  ])('tells what a browser would run from what it would not: %j', (text, [contentType, extension]) => {
    expect(sniffType(bytes(text))).toEqual({ contentType, extension })
  })

  it('is not fooled by a character that is cut in two at the end of the head', () => {
    const text = Buffer.from('é'.repeat(SNIFF_BYTES))
    expect(sniffType(text.subarray(0, SNIFF_BYTES - 1))).toMatchObject({ contentType: 'text/plain' })
  })

  it('is done quickly with markup that was made to be slow', () => {
    const slow = [
      '<!doctype svg [',
      '<!--',
      '<?',
      '<!doctype svg ['.repeat(200),
      '<!---->'.repeat(500),
      '<?xml '.repeat(600),
    ]
    for (const start of slow) sniffType(bytes((start + ' <'.repeat(SNIFF_BYTES)).slice(0, SNIFF_BYTES)))
  })
})
