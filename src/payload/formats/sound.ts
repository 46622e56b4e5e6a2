import { type FileType, type } from './file-type.ts'

/** The version, the flags, and a size of four digits of seven bits (ID3v2, section 3.1). */
export function isId3(bytes: Buffer): boolean {
  const [major = 0, minor = 0, flags = 0, ...size] = bytes.subarray(3, 10)
  return major >= 2 && major <= 4 && minor < 0xff && (flags & 15) === 0 && size.every(digit => digit < 0x80)
}

/** Kilobits per second (ISO/IEC 11172-3, section 2.4.2.3), for MPEG 1 by layer, and for MPEG 2 by layer 1 or another one. */
const RATES = {
  first: [
    [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
    [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
    [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  ],
  second: [
    [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
    [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
    [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
  ],
} as const

/** Two frames of sound, of which the second begins where the first one ends. Eleven bits alone are in many files. */
export function readFrames(bytes: Buffer): FileType | undefined {
  const isMpeg = (bytes.readUInt8(1) & 6) !== 0
  const length = isMpeg ? mpegFrame(bytes) : adtsFrame(bytes)
  if (length === undefined) return undefined
  // The bits of version, layer and sampling rate are those of the first frame.
  const isNext = ((bytes.readUInt32BE() ^ bytes.readUInt32BE(length)) & 0xfffe0c00) === 0
  if (!isNext) return undefined
  return isMpeg ? type('audio/mpeg', '.mp3') : type('audio/aac', '.aac')
}

/** Length in bytes. */
function mpegFrame(bytes: Buffer): number | undefined {
  const header = bytes.readUInt32BE()
  const [version, layer] = [(header >>> 19) & 3, 4 - ((header >>> 17) & 3)]
  const sampling = [44100, 48000, 32000][(header >>> 10) & 3]
  const rate = RATES[version === 3 ? 'first' : 'second'][layer - 1]?.[((header >>> 12) & 15) - 1]
  if (header >>> 21 !== 0x7ff || version === 1 || !sampling || !rate) return undefined
  const samples = layer === 1 ? 384 : layer === 3 && version !== 3 ? 576 : 1152
  const slot = layer === 1 ? 4 : 1
  const slower = { 3: 1, 2: 2, 0: 4 }[version] ?? 1
  const slots = Math.floor((samples / 8 / slot) * ((rate * 1000 * slower) / sampling))
  return (slots + ((header >>> 9) & 1)) * slot
}

/** Length in bytes. */
function adtsFrame(bytes: Buffer): number | undefined {
  if ((bytes.readUInt8(1) & 0xf6) !== 0xf0 || ((bytes.readUInt8(2) >> 2) & 15) > 12) return undefined
  const length = (bytes.readUIntBE(3, 3) >>> 5) & 0x1fff
  return length >= 7 ? length : undefined
}
