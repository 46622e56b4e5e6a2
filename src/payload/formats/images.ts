import { type FileType, text, type } from './file-type.ts'

/** A chunk before the image data makes it an animation (PNG, third edition, section 11.3.4.1). Apple's PNG begins with CgBI. */
export function readPng(bytes: Buffer): FileType | undefined {
  if (!/^(?:IHDR|CgBI)$/.test(text(bytes, 12, 4))) return undefined
  for (
    let at = 8, chunk = '';
    at + 8 <= bytes.length && chunk !== 'IDAT';
    at += bytes.readUInt32BE(at) + 12
  ) {
    chunk = text(bytes, at + 4, 4)
    if (chunk === 'acTL') return type('image/apng', '.apng')
  }
  return type('image/png', '.png')
}

/** A block must follow the screen descriptor and its colours (GIF89a, sections 18 to 27). */
export function isGif(bytes: Buffer): boolean {
  const packed = bytes.readUInt8(10)
  const block = 13 + (packed & 0x80 ? 3 << ((packed & 7) + 1) : 0)
  return [0x21, 0x2c, 0x3b].includes(bytes.readUInt8(block))
}

/** One of the known headers of an image with one plane. */
export function isBmp(bytes: Buffer): boolean {
  const header = bytes.readUInt32LE(14)
  const planes = header === 12 ? 22 : 26
  return (
    [12, 16, 40, 52, 56, 64, 108, 124].includes(header) &&
    bytes.readUInt16LE(planes) === 1 &&
    bytes.readUInt32LE(10) >= 14 + header
  )
}

const CAMERAS: readonly [maker: string, found: FileType][] = [
  ['NIKON', type('image/x-nikon-nef', '.nef')],
  ['SONY', type('image/x-sony-arw', '.arw')],
]

/** The first directory tells photos of cameras, whose first image is a thumbnail (tag SubIFDs), from other TIFF files. */
export function readTiff(bytes: Buffer, isLittle: boolean): FileType | undefined {
  const short = (at: number) => (isLittle ? bytes.readUInt16LE(at) : bytes.readUInt16BE(at))
  const long = (at: number) => (isLittle ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at))
  const directory = long(4)
  if (directory < 8) return undefined
  if (text(bytes, 8, 2) === 'CR') return type('image/x-canon-cr2', '.cr2')
  let maker = ''
  let hasMore = false
  for (
    let at = directory + 2;
    at + 12 <= bytes.length && at < directory + 2 + short(directory) * 12;
    at += 12
  ) {
    const tag = short(at)
    if (tag === 0xc612) return type('image/x-adobe-dng', '.dng')
    if (tag === 0x010f) maker = text(bytes, long(at + 8), 5)
    if (tag === 0x014a) hasMore = true
  }
  const camera = hasMore && CAMERAS.find(([name]) => maker.startsWith(name))
  return camera ? camera[1] : type('image/tiff', '.tif')
}

/** The first image must lie behind the directory. */
export function isIcon(bytes: Buffer): boolean {
  const count = bytes.readUInt16LE(4)
  return (
    count > 0 &&
    bytes.readUInt8(9) === 0 &&
    bytes.readUInt32LE(14) > 0 &&
    bytes.readUInt32LE(18) >= 6 + 16 * count
  )
}
