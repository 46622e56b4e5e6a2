import {
  isBox,
  isBzip2,
  isFont,
  isPortableExecutable,
  isProgramStream,
  isTar,
  readBrand,
  readCafeBabe,
  readMatroska,
  readOgg,
  readRiff,
  readZip,
} from './formats/containers.ts'
import { type FileType, text, type } from './formats/file-type.ts'
import { isBmp, isGif, isIcon, readPng, readTiff } from './formats/images.ts'
import { isId3, readFrames } from './formats/sound.ts'

/** Returns the type of bytes that begin with the signature, or undefined if what follows does not fit. */
type Look = (bytes: Buffer) => FileType | undefined
type Signature = readonly [start: string, found: FileType | Look, offset?: number]

/** The type if the bytes after the signature fit. Reading beyond the end counts as not fitting. */
const when =
  (found: FileType, fits: (bytes: Buffer) => boolean): Look =>
  bytes =>
    fits(bytes) ? found : undefined

/** Formats that a text editor can show. Every other one has bytes that no text has. */
const OF_TEXT: readonly Signature[] = [
  ['%PDF-', type('application/pdf', '.pdf')],
  [
    '%!PS',
    bytes =>
      text(bytes, 4, 20).includes(' EPSF-')
        ? type('application/eps', '.eps')
        : type('application/postscript', '.ps'),
  ],
  ['{\\rtf', type('application/rtf', '.rtf')],
  ['BEGIN:VCARD', type('text/vcard', '.vcf')],
  ['BEGIN:VCALENDAR', type('text/calendar', '.ics')],
  ['WEBVTT', when(type('text/vtt', '.vtt'), bytes => /^(?:[\s\0]|$)/.test(text(bytes, 6, 1)))],
  ['-----BEGIN PGP MESSAGE-----', type('application/pgp-encrypted', '.asc')],
]

const OF_BYTES: readonly Signature[] = [
  // Images
  ['\x89PNG\r\n\x1a\n', readPng],
  ['\xff\xd8\xff\xf7', type('image/jls', '.jls')],
  ['\xff\xd8\xff', type('image/jpeg', '.jpg')],
  ['GIF87a', when(type('image/gif', '.gif'), isGif)],
  ['GIF89a', when(type('image/gif', '.gif'), isGif)],
  ['RIFF', readRiff],
  ['ftyp', readBrand, 4],
  ['BM', when(type('image/bmp', '.bmp'), isBmp)],
  ['II*\0', bytes => readTiff(bytes, true)],
  ['MM\0*', bytes => readTiff(bytes, false)],
  ['II+\0\x08\0\0\0', type('image/tiff', '.tif')],
  ['MM\0+\0\x08\0\0', type('image/tiff', '.tif')],
  ['IIU\0', when(type('image/x-panasonic-rw2', '.rw2'), bytes => bytes.readUInt32LE(4) >= 8)],
  ['IIRO\x08\0\0\0', type('image/x-olympus-orf', '.orf')],
  ['IIRS\x08\0\0\0', type('image/x-olympus-orf', '.orf')],
  ['MMOR\0\0\0\x08', type('image/x-olympus-orf', '.orf')],
  ['FUJIFILMCCD-RAW ', type('image/x-fujifilm-raf', '.raf')],
  ['\0\0\x01\0', when(type('image/x-icon', '.ico'), isIcon)],
  ['\0\0\x02\0', when(type('image/x-icon', '.cur'), isIcon)],
  ['\0\0\0\x0cJXL \r\n\x87\n', type('image/jxl', '.jxl')],
  ['\xff\x0a', type('image/jxl', '.jxl')],
  ['\0\0\0\x0cjP  \r\n\x87\n', type('image/jp2', '.jp2')],
  ['\xff\x4f\xff\x51', type('image/j2c', '.j2c')],
  ['8BPS\0\x01\0\0\0\0\0\0', type('image/vnd.adobe.photoshop', '.psd')],
  ['8BPS\0\x02\0\0\0\0\0\0', type('image/vnd.adobe.photoshop', '.psb')],
  ['gimp xcf ', type('image/x-xcf', '.xcf')],
  ['icns', when(type('image/icns', '.icns'), bytes => bytes.readUInt32BE(4) > 16 && bytes[4] === 0)],

  // Video and audio
  ['\x1a\x45\xdf\xa3', readMatroska],
  ['moov', when(type('video/quicktime', '.mov'), isBox), 4],
  ['mdat', when(type('video/quicktime', '.mov'), isBox), 4],
  ['wide', when(type('video/quicktime', '.mov'), bytes => text(bytes, 12, 4) === 'mdat'), 4],
  ['FLV\x01', when(type('video/x-flv', '.flv'), bytes => bytes.readUInt32BE(5) === 9)],
  ['\0\0\x01\xba', when(type('video/mpeg', '.mpg'), isProgramStream)],
  ['\0\0\x01\xb3', when(type('video/mpeg', '.mpg'), bytes => bytes.readUIntBE(4, 3) > 0)],
  ['G', when(type('video/mp2t', '.mts'), bytes => bytes[188] === 0x47 && bytes[376] === 0x47)],
  ['G', when(type('video/mp2t', '.mts'), bytes => bytes[196] === 0x47 && bytes[388] === 0x47), 4],
  ['\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\0\xaa\0\x62\xce\x6c', type('video/x-ms-asf', '.asf')],
  ['OggS\0', readOgg],
  ['fLaC\0\0\0\x22', type('audio/flac', '.flac')],
  ['ID3', when(type('audio/mpeg', '.mp3'), isId3)],
  ['\xff', readFrames],
  ['FORM', when(type('audio/aiff', '.aif'), bytes => /^AIF[FC]$/.test(text(bytes, 8, 4)))],
  ['MThd\0\0\0\x06', type('audio/midi', '.mid')],
  ['#!AMR', type('audio/amr', '.amr')],
  ['caff\0\x01\0\0', type('audio/x-caf', '.caf')],

  // Documents
  ['%PDF-', type('application/pdf', '.pdf')],
  ['%!PS', type('application/postscript', '.ps')],
  ['\xc5\xd0\xd3\xc6', type('application/eps', '.eps')],
  ['{\\rtf', type('application/rtf', '.rtf')],
  ['\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1', type('application/x-cfb', '.cfb')],
  ['BOOKMOBI', type('application/x-mobipocket-ebook', '.mobi'), 60],

  // Archives
  ['PK\x03\x04', readZip],
  ['PK\x05\x06', type('application/zip', '.zip')],
  ['PK\x07\x08', type('application/zip', '.zip')],
  ['\x1f\x8b\x08', when(type('application/gzip', '.gz'), bytes => bytes.readUInt8(3) < 0x20)],
  ['BZh', when(type('application/x-bzip2', '.bz2'), isBzip2)],
  ['\xfd7zXZ\0', type('application/x-xz', '.xz')],
  ['\x28\xb5\x2f\xfd', type('application/zstd', '.zst')],
  ['\x04\x22\x4d\x18', type('application/x-lz4', '.lz4')],
  ['7z\xbc\xaf\x27\x1c', type('application/x-7z-compressed', '.7z')],
  ['Rar!\x1a\x07', type('application/x-rar-compressed', '.rar')],
  ['MSCF\0\0\0\0', type('application/vnd.ms-cab-compressed', '.cab')],
  ['!<arch>\ndebian-binary', type('application/x-deb', '.deb')],
  ['!<arch>\n', type('application/x-unix-archive', '.ar')],
  ['\xed\xab\xee\xdb', type('application/x-rpm', '.rpm')],
  ['', when(type('application/x-tar', '.tar'), isTar)],

  // Fonts, programs and data
  ['wOFF', when(type('font/woff', '.woff'), isFont)],
  ['wOF2', when(type('font/woff2', '.woff2'), isFont)],
  ['\0\x01\0\0\0', when(type('font/ttf', '.ttf'), bytes => /^[\w/ ]{4}$/.test(text(bytes, 12, 4)))],
  ['OTTO\0', type('font/otf', '.otf')],
  ['ttcf\0', type('font/collection', '.ttc')],
  ['\x7fELF', when(type('application/x-elf', '.elf'), bytes => [1, 2].includes(bytes.readUInt8(4)))],
  ['MZ', when(type('application/x-msdownload', '.exe'), isPortableExecutable)],
  ['\xca\xfe\xba\xbe', readCafeBabe],
  ['\xcf\xfa\xed\xfe', type('application/x-mach-binary', '.macho')],
  ['\xce\xfa\xed\xfe', type('application/x-mach-binary', '.macho')],
  ['\0asm\x01\0\0\0', type('application/wasm', '.wasm')],
  ['SQLite format 3\0', type('application/x-sqlite3', '.sqlite')],
  ['DICM', type('application/dicom', '.dcm'), 128],
  ['glTF\x02\0\0\0', type('model/gltf-binary', '.glb')],
]

/** Rows of a table with the signatures as bytes. */
const prepare = (rows: readonly Signature[]) =>
  rows.map(([start, found, offset = 0]) => ({ start: Buffer.from(start, 'latin1'), found, offset }))

const TABLES = { text: prepare(OF_TEXT), bytes: prepare(OF_BYTES) }

/**
 * Finds the type of a file by its signature. A short signature only counts with the fields that follow it.
 *
 * @param bytes the beginning of the file
 * @param kind whether the bytes are text
 */
export function findSignature(bytes: Buffer, kind: keyof typeof TABLES): FileType | undefined {
  for (const { start, found, offset } of TABLES[kind]) {
    if (!beginsWith(bytes, start, offset)) continue
    const known = typeof found === 'function' ? lookInside(found, bytes) : found
    if (known) return known
  }
  return undefined
}

function beginsWith(bytes: Buffer, start: Buffer, offset: number): boolean {
  for (let n = 0; n < start.length; n++) if (bytes[offset + n] !== start[n]) return false
  return true
}

function lookInside(look: Look, bytes: Buffer): FileType | undefined {
  try {
    return look(bytes)
  } catch (error) {
    if (error instanceof RangeError) return undefined // it ends too early
    throw error
  }
}
