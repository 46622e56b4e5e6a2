import { type FileType, text, type } from './file-type.ts'

export function readRiff(bytes: Buffer): FileType | undefined {
  switch (text(bytes, 8, 4)) {
    case 'WEBP':
      return /^VP8[ LX]$/.test(text(bytes, 12, 4)) ? type('image/webp', '.webp') : undefined
    case 'WAVE':
      return type('audio/wav', '.wav')
    case 'AVI ':
      return type('video/vnd.avi', '.avi')
    default:
      return undefined
  }
}

const BRANDS: Readonly<Record<string, FileType>> = {
  avif: type('image/avif', '.avif'),
  avis: type('image/avif', '.avif'),
  mif1: type('image/heif', '.heic'),
  msf1: type('image/heif-sequence', '.heic'),
  heic: type('image/heic', '.heic'),
  heix: type('image/heic', '.heic'),
  hevc: type('image/heic-sequence', '.heic'),
  hevx: type('image/heic-sequence', '.heic'),
  'crx ': type('image/x-canon-cr3', '.cr3'),
  'qt  ': type('video/quicktime', '.mov'),
  'M4V ': type('video/x-m4v', '.m4v'),
  'M4A ': type('audio/x-m4a', '.m4a'),
  'M4B ': type('audio/mp4', '.m4b'),
}

/** The box "ftyp" is a list of a few brands, not longer than the beginning of a file (ISO/IEC 14496-12, section 4.3). */
export function readBrand(bytes: Buffer): FileType | undefined {
  const length = bytes.readUInt32BE()
  const brand = text(bytes, 8, 4)
  if (length < 16 || length > 4096 || length % 4 !== 0 || !/^[\w ]{4}$/.test(brand)) return undefined
  if (brand.startsWith('3g2')) return type('video/3gpp2', '.3g2')
  if (brand.startsWith('3g')) return type('video/3gpp', '.3gp')
  return BRANDS[brand] ?? type('video/mp4', '.mp4')
}

export function isBox(bytes: Buffer): boolean {
  const length = bytes.readUInt32BE()
  return length <= 1 || length >= 8
}

/** The document type is in the header, which is short. */
export function readMatroska(bytes: Buffer): FileType | undefined {
  const header = text(bytes, 4, 80)
  if (header.includes('webm')) return type('video/webm', '.webm')
  return header.includes('matroska') ? type('video/matroska', '.mkv') : undefined
}

/** The marker bits after the start code, of MPEG 2 or MPEG 1 (ISO/IEC 13818-1 and 11172-1). */
export function isProgramStream(bytes: Buffer): boolean {
  const next = bytes.readUInt8(4)
  return (next & 0xc4) === 0x44 || (next & 0xf1) === 0x21
}

const CODECS: readonly [start: string, found: FileType][] = [
  ['OpusHead', type('audio/ogg', '.opus')],
  ['\x80theora', type('video/ogg', '.ogv')],
  ['\x01video\0', type('video/ogg', '.ogm')],
  ['\x7fFLAC', type('audio/ogg', '.oga')],
  ['Speex  ', type('audio/ogg', '.spx')],
  ['\x01vorbis', type('audio/ogg', '.ogg')],
]

export function readOgg(bytes: Buffer): FileType {
  const codec = text(bytes, 28, 8)
  return CODECS.find(([start]) => codec.startsWith(start))?.[1] ?? type('application/ogg', '.ogx')
}

const OFFICE: readonly [folder: RegExp, found: FileType][] = [
  [/^word\//, type('application/vnd.openxmlformats-officedocument.wordprocessingml.document', '.docx')],
  [/^xl\//, type('application/vnd.openxmlformats-officedocument.spreadsheetml.sheet', '.xlsx')],
  [/^ppt\//, type('application/vnd.openxmlformats-officedocument.presentationml.presentation', '.pptx')],
  [/^AndroidManifest\.xml$/, type('application/vnd.android.package-archive', '.apk')],
  [/^META-INF\/MANIFEST\.MF$/, type('application/java-archive', '.jar')],
]

/** Formats whose first entry says what they are (Open Document, EPUB). */
const DECLARED: Readonly<Record<string, string>> = {
  'application/epub+zip': '.epub',
  'application/vnd.oasis.opendocument.text': '.odt',
  'application/vnd.oasis.opendocument.spreadsheet': '.ods',
  'application/vnd.oasis.opendocument.presentation': '.odp',
  'application/vnd.oasis.opendocument.graphics': '.odg',
}

/** The names of the first entries tell documents and programs from other archives. */
export function readZip(bytes: Buffer): FileType {
  for (let at = 0; at !== -1 && at + 30 <= bytes.length; at = bytes.indexOf('PK\x03\x04', at + 4, 'latin1')) {
    const nameEnd = at + 30 + bytes.readUInt16LE(at + 26)
    const name = bytes.toString('latin1', at + 30, nameEnd)
    if (at === 0 && name === 'mimetype') {
      const declared = text(bytes, nameEnd + bytes.readUInt16LE(at + 28), bytes.readUInt32LE(at + 18))
      const extension = Object.hasOwn(DECLARED, declared) ? DECLARED[declared] : undefined
      if (extension !== undefined) return type(declared, extension)
    }
    const office = OFFICE.find(([folder]) => folder.test(name))
    if (office) return office[1]
  }
  return type('application/zip', '.zip')
}

/** The level, then the start of a block or the end of an empty stream. */
export function isBzip2(bytes: Buffer): boolean {
  return /^[1-9](?:1AY&SY|\x17rE8P\x90)/.test(text(bytes, 3, 7))
}

/** The header contains the sum of its bytes, for which the sum itself counts as spaces. */
export function isTar(bytes: Buffer): boolean {
  if (bytes.length < 512) return false
  const sum = /^ *([0-7]{1,7})[\0 ]/.exec(text(bytes, 148, 8))?.[1]
  let actual = 8 * 0x20
  for (let n = 0; n < 512; n++) if (n < 148 || n >= 156) actual += bytes[n] ?? 0
  return sum !== undefined && Number.parseInt(sum, 8) === actual
}

/** The format of the font inside. */
export function isFont(bytes: Buffer): boolean {
  return ['\0\x01\0\0', 'OTTO', 'true'].includes(text(bytes, 4, 4))
}

export function isPortableExecutable(bytes: Buffer): boolean {
  return text(bytes, bytes.readUInt32LE(60), 4) === 'PE\0\0'
}

/** Java classes have a version at the place where a fat Mach-O counts its few parts. */
export function readCafeBabe(bytes: Buffer): FileType {
  return bytes.readUInt32BE(4) < 40
    ? type('application/x-mach-binary', '.macho')
    : type('application/java-vm', '.class')
}
