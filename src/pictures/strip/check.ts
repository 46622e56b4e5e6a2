import type { SourceFormat } from '../options.ts'
import { EXIF_PREFIX, exifOf } from './exif.ts'

// The second look at a stripped file. It shares no code with the first one, and accepts nothing that the first one does not
// write: no padding, no damage, no bytes after the end.

type Part = readonly [name: string, data?: Buffer]
type StrippedFormat = Exclude<SourceFormat, 'heic'>

const PARTS: Record<StrippedFormat, (file: Buffer) => Iterable<Part>> = {
  jpeg: partsOfJpeg,
  png: partsOfPng,
  webp: partsOfWebp,
  gif: partsOfGif,
  tiff: partsOfTiff,
  avif: partsOfAvif,
}

const ALLOWED: Record<StrippedFormat, string> = {
  jpeg: 'DQT DHT DRI DNL DAC SOF SOS EOI JFIF ICC_PROFILE Adobe',
  png: 'IHDR PLTE IDAT IEND tRNS acTL fcTL fdAT cHRM gAMA sRGB iCCP cICP mDCV cLLI sBIT bKGD pHYs',
  webp: 'VP8X VP8 VP8L ALPH ANIM ANMF ICCP',
  gif: 'image control loops trailer',
  tiff: `DQT DHT DRI SOF SOS JFIF Adobe 254 256 257 258 259 262 266 273 274 277 278 279 280 281 282 283 284 290 291 292 293 296 301 317 318 319 320 322 323
    324 325 332 334 336 338 339 340 341 347 529 530 531 532 34675`,
  avif: `ftyp mdat meta hdlr pitm iloc iinf infe iref dimg auxl prem iprp ipco ipma av01 grid iovl iden ispe pixi av1C colr irot
    imir clap pasp auxC clli mdcv cclv amve a1op a1lx lsel`,
}

/** Exif data with nothing but an orientation. */
const ORIENTATIONS = [2, 3, 4, 5, 6, 7, 8].map(exifOf)

/** Returns the name of the first part of a stripped file that must not be there. */
export function findRemains(file: Buffer, format: StrippedFormat): string | undefined {
  const allowed = new Set(ALLOWED[format].split(/\s+/))
  try {
    for (const [name, data] of PARTS[format](file)) {
      const isOrientation = name === 'Exif' && ORIENTATIONS.some(one => data?.equals(one))
      if (!allowed.has(name) && !isOrientation) return `"${name}"`
    }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return 'data besides the image'
  }
  return undefined
}

function assertAt(is: boolean): void {
  if (!is) throw new RangeError()
}

const SEGMENTS: Record<number, string> = {
  196: 'DHT',
  200: 'JPG',
  204: 'DAC',
  217: 'EOI',
  218: 'SOS',
  219: 'DQT',
}

function* partsOfJpeg(file: Buffer): Generator<Part> {
  assertAt(file.readUInt16BE(0) === 0xffd8)
  let at = 2
  for (;;) {
    const [first, marker] = [file.readUInt8(at), file.readUInt8(at + 1)]
    assertAt(first === 0xff)
    if (marker === 0xd9) break
    const end = at + 2 + file.readUInt16BE(at + 2)
    const data = file.subarray(at + 4, end)
    yield nameSegment(marker, data)
    at = end
    if (marker !== 0xda) continue
    while (file.readUInt8(at) !== 0xff || isInScan(file.readUInt8(at + 1))) at++
  }
  assertAt(at + 2 === file.length)
}

function isInScan(next: number): boolean {
  return next === 0 || next === 0xff || next === 1 || (next & 0xf8) === 0xd0
}

function nameSegment(marker: number, data: Buffer): Part {
  const is = (text: string, length = data.length) =>
    data.length === length && data.toString('latin1', 0, text.length) === text
  if (marker === 0xe0 && is('JFIF\0', 14) && data.readUInt16BE(12) === 0) return ['JFIF']
  if (marker === 0xe1 && is('Exif\0\0')) return ['Exif', data.subarray(EXIF_PREFIX.length)]
  if (marker === 0xe2 && is('ICC_PROFILE\0')) return ['ICC_PROFILE']
  if (marker === 0xee && is('Adobe', 12)) return ['Adobe']
  if (marker === 0xdc) return ['DNL']
  if (marker === 0xdd) return ['DRI']
  return [SEGMENTS[marker] ?? (marker >> 4 === 0xc ? 'SOF' : `segment ${marker.toString(16)}`)]
}

/** Maximum lengths of chunks. */
const PNG_LENGTHS: Record<string, number> = {
  ...{ IHDR: 13, PLTE: 768, IEND: 0, tRNS: 256, acTL: 8, fcTL: 26, cHRM: 32, gAMA: 4 },
  ...{ sRGB: 1, cICP: 4, mDCV: 24, cLLI: 8, sBIT: 4, bKGD: 6, pHYs: 9 },
}

function* partsOfPng(file: Buffer): Generator<Part> {
  let at = 8
  let name = ''
  while (name !== 'IEND') {
    const length = file.readUInt32BE(at)
    name = file.toString('latin1', at + 4, at + 8)
    yield [name === 'eXIf' ? 'Exif' : name, file.subarray(at + 8, at + 8 + length)]
    assertAt(length <= (PNG_LENGTHS[name] ?? length))
    at += length + 12
  }
  assertAt(at === file.length)
}

function* partsOfWebp(file: Buffer): Generator<Part> {
  assertAt(file.readUInt32LE(4) + 8 === file.length)
  let at = 12
  while (at < file.length) {
    const name = file.toString('latin1', at, at + 4).trim()
    const size = file.readUInt32LE(at + 4)
    const data = file.subarray(at + 8, at + 8 + size)
    yield [name === 'EXIF' ? 'Exif' : name, data]
    if (name === 'VP8X') assertAt(size === 10 && (data.readUInt8(0) & 0x04) === 0)
    if (name === 'ANIM') assertAt(size === 6)
    // The chunks of a frame come next. Its data begins with 16 bytes of its own.
    at += name === 'ANMF' ? 24 : 8 + size + (size & 1)
  }
  assertAt(at === file.length)
}

function* partsOfGif(file: Buffer): Generator<Part> {
  const colours = (flags: number) => (flags > 0x7f ? 3 << ((flags & 7) + 1) : 0)
  let at = 13 + colours(file.readUInt8(10))
  while (file.readUInt8(at) !== 0x3b) {
    const head = file.toString('latin1', at, at + 19)
    if (head.startsWith('!\xf9\x04') && head[7] === '\0') {
      yield ['control']
      at += 8
    } else if (/^!\xff\x0b(?:NETSCAPE2\.0|ANIMEXTS1\.0)\x03\x01..\0$/s.test(head)) {
      yield ['loops']
      at += 19
    } else {
      yield [head.startsWith(',') ? 'image' : 'extension']
      at += 11 + colours(file.readUInt8(at + 9))
      while (file.readUInt8(at) !== 0) at += file.readUInt8(at) + 1
      at++
    }
  }
  assertAt(at + 1 === file.length)
}

function* partsOfTiff(file: Buffer): Generator<Part> {
  const isBig = file.toString('latin1', 0, 2) === 'MM'
  const number = (at: number, bytes: number) =>
    isBig ? file.readUIntBE(at, bytes) : file.readUIntLE(at, bytes)
  /** The first value of an entry, a SHORT or a LONG. */
  const first = (entry: number) => number(entry + 8, number(entry + 2, 2) === 4 ? 4 : 2)
  function* jpegsIn(places: number | undefined, sizes: number | undefined): Generator<Part> {
    if (!places || !sizes) return
    const count = number(places + 4, 4)
    // One LONG is in its entry, several are elsewhere.
    const valueAt = (entry: number, n: number) =>
      number(count === 1 ? entry + 8 : number(entry + 8, 4) + n * 4, 4)
    for (let n = 0; n < count; n++) {
      const start = valueAt(places, n)
      yield* partsOfJpeg(file.subarray(start, start + valueAt(sizes, n)))
    }
  }
  let at = number(4, 4)
  let end = 8
  while (at !== 0) {
    const count = number(at, 2)
    const entries = new Map<number, number>()
    for (let n = 0; n < count; n++) {
      const entry = at + 2 + n * 12
      const tag = number(entry, 2)
      entries.set(tag, entry)
      yield [`${tag}`]
    }
    const compression = entries.get(259)
    if (compression && first(compression) === 7) {
      yield* jpegsIn(entries.get(273), entries.get(279))
      yield* jpegsIn(entries.get(324), entries.get(325))
    }
    end = at + 2 + count * 12 + 4
    const next = number(end - 4, 4)
    assertAt(next === 0 || next > at)
    at = next
  }
  // The last directory is the end of the file.
  assertAt(end === file.length)
}

function* partsOfAvif(file: Buffer): Generator<Part> {
  /** Where the boxes inside of a box begin. */
  const inside: Record<string, number> = { meta: 12, iprp: 8, ipco: 8, iinf: 14, iref: 12 }
  let at = 0
  while (at < file.length) {
    const size = file.readUInt32BE(at)
    const name = file.toString('latin1', at + 4, at + 8)
    assertAt(size >= 8)
    yield [name]
    // The type of an item is all that it has, except the end of its empty name.
    if (name === 'infe') {
      assertAt(size === 21)
      yield [file.toString('latin1', at + 16, at + 20)]
    }
    at += inside[name] ?? size
  }
  assertAt(at === file.length)
}
