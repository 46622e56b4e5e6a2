import { readBoxes, readItems } from './heif.ts'

/** Width and height of an image as it is displayed, pixels. */
export interface Dimensions {
  readonly width: number
  readonly height: number
}

/** A part of an image, pixels. It may be larger than the image. */
export interface Area extends Dimensions {
  readonly x: number
  readonly y: number
}

/** Reads the size of a PNG, JPEG, GIF, WebP, BMP, AVIF or HEIC from its beginning. Undefined for anything else, and if the beginning is too short. */
export function readDimensions(head: Buffer): Dimensions | undefined {
  try {
    const found =
      readPng(head) ?? readJpeg(head) ?? readGif(head) ?? readWebp(head) ?? readBmp(head) ?? readHeif(head)
    return found && found.width > 0 && found.height > 0 ? found : undefined
  } catch (error) {
    if (error instanceof RangeError) return undefined // it ends too early
    throw error
  }
}

const text = (head: Buffer, from: number, to: number) => head.toString('latin1', from, to)

function readPng(head: Buffer): Dimensions | undefined {
  if (text(head, 1, 4) !== 'PNG' || text(head, 12, 16) !== 'IHDR') return undefined
  const size = { width: head.readUInt32BE(16), height: head.readUInt32BE(20) }
  for (let at = 8; at + 8 <= head.length; at += 12 + head.readUInt32BE(at))
    if (text(head, at + 4, at + 8) === 'eXIf')
      return turn(size, readOrientation(head.subarray(at + 8, at + 8 + head.readUInt32BE(at))))
  return size
}

function readGif(head: Buffer): Dimensions | undefined {
  if (!/^GIF8[79]a$/.test(text(head, 0, 6))) return undefined
  return { width: head.readUInt16LE(6), height: head.readUInt16LE(8) }
}

function readBmp(head: Buffer): Dimensions | undefined {
  if (text(head, 0, 2) !== 'BM' || head.readUInt32LE(14) < 40) return undefined
  return { width: head.readInt32LE(18), height: Math.abs(head.readInt32LE(22)) }
}

/** The three possible types of the first chunk (RFC 9649, section 2). */
function readWebp(head: Buffer): Dimensions | undefined {
  if (text(head, 0, 4) !== 'RIFF' || text(head, 8, 12) !== 'WEBP') return undefined
  const kind = text(head, 12, 16)
  if (kind === 'VP8X') {
    const size = { width: head.readUIntLE(24, 3) + 1, height: head.readUIntLE(27, 3) + 1 }
    return head.readUInt8(20) & WEBP_HAS_EXIF ? turn(size, readWebpOrientation(head)) : size
  }
  if (kind === 'VP8 ')
    return { width: head.readUInt16LE(26) & 0x3fff, height: head.readUInt16LE(28) & 0x3fff }
  if (kind !== 'VP8L') return undefined
  const bits = head.readUInt32LE(21)
  return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 }
}

/** The bit of VP8X that tells that there is Exif data. It is behind the image. */
const WEBP_HAS_EXIF = 0x08

/** @throws RangeError if the beginning ends before the Exif data */
function readWebpOrientation(head: Buffer): number {
  for (let at = 12; ; ) {
    const size = head.readUInt32LE(at + 4)
    if (text(head, at, at + 4) === 'EXIF') return readOrientation(head.subarray(at + 8, at + 8 + size))
    at += 8 + size + (size % 2)
  }
}

/** Reads segment after segment up to the frame (ITU T.81, annex B). Exif data before it can rotate the image. */
function readJpeg(head: Buffer): Dimensions | undefined {
  if (head.readUInt16BE(0) !== 0xffd8) return undefined
  let orientation = 1
  for (let at = 2; ; at += 2 + head.readUInt16BE(at + 2)) {
    while (head.readUInt16BE(at) === 0xffff) at++
    const marker = head.readUInt16BE(at)
    if (marker === 0xffe1 && text(head, at + 4, at + 8) === 'Exif')
      orientation = readOrientation(head.subarray(at + 4, at + 2 + head.readUInt16BE(at + 2)))
    if (marker < 0xffc0 || marker === 0xffda) return undefined
    if (marker > 0xffcf || [0xffc4, 0xffc8, 0xffcc].includes(marker)) continue
    const [height, width] = [head.readUInt16BE(at + 5), head.readUInt16BE(at + 7)]
    return turn({ width, height }, orientation)
  }
}

/** The tag Orientation in the first directory of Exif data, 1 to 8. 1 if it is missing. */
export function readOrientation(data: Buffer): number {
  const exif = text(data, 0, 4) === 'Exif' ? data.subarray(6) : data
  const isLittle = text(exif, 0, 2) === 'II'
  const short = (at: number) => (isLittle ? exif.readUInt16LE(at) : exif.readUInt16BE(at))
  try {
    const directory = isLittle ? exif.readUInt32LE(4) : exif.readUInt32BE(4)
    const count = short(directory)
    for (let n = 0; n < count; n++) {
      const entry = directory + 2 + n * 12
      if (short(entry) !== 0x0112) continue
      const orientation = short(entry + 8)
      return orientation >= 1 && orientation <= 8 ? orientation : 1
    }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
  }
  return 1
}

function turn({ width, height }: Dimensions, orientation: number): Dimensions {
  return orientation > 4 ? { width: height, height: width } : { width, height }
}

/**
 * The size of the primary item, turned by its property `irot`. Other items are tiles, thumbnails, and further images (ISO/IEC
 * 23008-12, sections 6.5.3 and 6.5.10).
 */
function readHeif(head: Buffer): Dimensions | undefined {
  if (text(head, 4, 8) !== 'ftyp') return undefined
  const meta = readBoxes(head, 0, head.length).find(({ type }) => type === 'meta')
  if (!meta) return undefined
  const { primary, properties, associations } = readItems(head, meta)
  const own = associations.get(primary)?.map(({ index }) => properties[index - 1])
  const size = own?.find(box => box?.type === 'ispe')
  const rotation = own?.find(box => box?.type === 'irot')
  if (!size) return undefined
  const isTurned = rotation && head.readUInt8(rotation.start) & 1
  const [width, height] = [head.readUInt32BE(size.start + 4), head.readUInt32BE(size.start + 8)]
  return isTurned ? { width: height, height: width } : { width, height }
}
