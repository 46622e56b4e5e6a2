import { AROUND_CHUNK_BYTES, chunk, SIGNATURE_BYTES } from '../png.ts'
import { onlyOrientation } from './exif.ts'
import { Output } from './output.ts'

/** Chunks that are needed to show an image, and their maximum length. */
const NEEDED = new Map(
  Object.entries({
    ...{ IHDR: 13, PLTE: 768, IDAT: Infinity, tRNS: 256, acTL: 8, fcTL: 26, fdAT: Infinity },
    ...{ cHRM: 32, gAMA: 4, sRGB: 1, iCCP: Infinity, cICP: 4, mDCV: 24, cLLI: 8, sBIT: 4, bKGD: 6, pHYs: 9 },
  }).map(([type, most]) => [toNumber(type), most]),
)
const [END, EXIF] = [toNumber('IEND'), toNumber('eXIf')]
/** The bit of a type that is set in chunks without which a file can be decoded. */
const ANCILLARY = 0x20000000

/**
 * Removes everything from a PNG, also an animated one, that is not needed to show it. Kept are pixels, frames, colors, pixel
 * density and the orientation.
 *
 * @throws Error if it is damaged
 * @see https://www.w3.org/TR/png-3/#5Chunk-layout
 */
export function stripPng(file: Buffer): Buffer {
  const out = new Output(file.length)
  out.copy(file, 0, SIGNATURE_BYTES)
  let hasExif = false
  for (let at = SIGNATURE_BYTES; ; ) {
    const length = file.readUInt32BE(at)
    const type = file.readUInt32BE(at + 4)
    const end = at + AROUND_CHUNK_BYTES + length
    if (end > file.length) throw new RangeError()
    if (type === END) {
      out.add(chunk('IEND', Buffer.alloc(0)))
      return out.finish()
    }
    if (length <= (NEEDED.get(type) ?? -1)) out.copy(file, at, end)
    else if (type === EXIF && !hasExif) {
      hasExif = true
      const exif = onlyOrientation(file.subarray(at + 8, end - 4))
      if (exif) out.add(chunk('eXIf', exif))
    } else if ((type & ANCILLARY) === 0)
      throw new Error(`its chunk "${file.toString('latin1', at + 4, at + 8)}" is unknown or too long`)
    at = end
  }
}

function toNumber(type: string): number {
  return Buffer.from(type, 'latin1').readUInt32BE()
}
