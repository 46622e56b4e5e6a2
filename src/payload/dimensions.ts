/** Width and height of an image as it is displayed, pixels. */
export interface Dimensions {
  readonly width: number
  readonly height: number
}

/** Reads the size of a PNG, JPEG, GIF, WebP, BMP or AVIF from its beginning. Undefined for anything else, and if the beginning is too short. */
export function readDimensions(head: Buffer): Dimensions | undefined {
  try {
    const found =
      readPng(head) ?? readJpeg(head) ?? readGif(head) ?? readWebp(head) ?? readBmp(head) ?? readAvif(head)
    return found && found.width > 0 && found.height > 0 ? found : undefined
  } catch (error) {
    if (error instanceof RangeError) return undefined // it ends too early
    throw error
  }
}

const text = (head: Buffer, from: number, to: number) => head.toString('latin1', from, to)

function readPng(head: Buffer): Dimensions | undefined {
  if (text(head, 1, 4) !== 'PNG' || text(head, 12, 16) !== 'IHDR') return undefined
  return { width: head.readUInt32BE(16), height: head.readUInt32BE(20) }
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
  if (kind === 'VP8X') return { width: head.readUIntLE(24, 3) + 1, height: head.readUIntLE(27, 3) + 1 }
  if (kind === 'VP8 ')
    return { width: head.readUInt16LE(26) & 0x3fff, height: head.readUInt16LE(28) & 0x3fff }
  if (kind !== 'VP8L') return undefined
  const bits = head.readUInt32LE(21)
  return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 }
}

/** Reads segment after segment up to the frame (ITU T.81, annex B). Exif data before it can rotate the image. */
function readJpeg(head: Buffer): Dimensions | undefined {
  if (head.readUInt16BE(0) !== 0xffd8) return undefined
  let isTurned = false
  for (let at = 2; ; at += 2 + head.readUInt16BE(at + 2)) {
    while (head.readUInt16BE(at) === 0xffff) at++
    const marker = head.readUInt16BE(at)
    if (marker === 0xffe1 && text(head, at + 4, at + 8) === 'Exif')
      isTurned = readOrientation(head, at + 10) > 4
    if (marker < 0xffc0 || marker === 0xffda) return undefined
    if (marker > 0xffcf || [0xffc4, 0xffc8, 0xffcc].includes(marker)) continue
    const [height, width] = [head.readUInt16BE(at + 5), head.readUInt16BE(at + 7)]
    return isTurned ? { width: height, height: width } : { width, height }
  }
}

/** The tag Orientation in the first Exif directory. 1 if it is missing. */
function readOrientation(head: Buffer, start: number): number {
  const isLittle = text(head, start, start + 2) === 'II'
  const short = (at: number) => (isLittle ? head.readUInt16LE(at) : head.readUInt16BE(at))
  const directory = start + (isLittle ? head.readUInt32LE(start + 4) : head.readUInt32BE(start + 4))
  const count = short(directory)
  for (let n = 0; n < count; n++) {
    const entry = directory + 2 + n * 12
    if (short(entry) === 0x0112) return short(entry + 8)
  }
  return 1
}

/** The property `ispe` of the largest item. Smaller items are thumbnails (ISO/IEC 23008-12, section 6.5.3). */
function readAvif(head: Buffer): Dimensions | undefined {
  if (text(head, 4, 8) !== 'ftyp' || !/avi[fs]|hei[cx]|mif1/.test(text(head, 8, 12))) return undefined
  let largest: Dimensions | undefined
  for (
    let at = head.indexOf('ispe');
    at !== -1 && at + 16 <= head.length;
    at = head.indexOf('ispe', at + 4)
  ) {
    const found = { width: head.readUInt32BE(at + 8), height: head.readUInt32BE(at + 12) }
    if (!largest || found.width * found.height > largest.width * largest.height) largest = found
  }
  return largest
}
