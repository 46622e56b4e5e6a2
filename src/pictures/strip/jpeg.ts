import { EXIF_PREFIX, onlyOrientation } from './exif.ts'
import { Output } from './output.ts'

const [SOI, EOI, SOS, DRI, TEM] = [0xd8, 0xd9, 0xda, 0xdd, 0x01]
const [APP0, APP1, APP2, APP14] = [0xe0, 0xe1, 0xe2, 0xee]
/** Length of JFIF data without a thumbnail, and of Adobe data. */
const [JFIF_BYTES, ADOBE_BYTES] = [14, 12]

/**
 * Removes everything from a JPEG that is not needed to show it. Kept are tables, frame and scans, the JFIF header without its
 * thumbnail, the color transform (Adobe), the color profile, and the orientation.
 *
 * @throws Error if it is damaged
 * @see ITU T.81, annex B
 */
export function stripJpeg(file: Buffer): Buffer {
  const out = new Output(file.length)
  out.copy(file, 0, 2)
  const seen = new Set<number>()
  for (let at = 2; ; ) {
    const marker = file.readUInt8(at + 1)
    if (file[at] !== 0xff || marker === 0xff || marker === 0) {
      at++ // fill bytes, or bytes that decoders skip
    } else if (isAlone(marker)) {
      at += 2
    } else if (marker === EOI && seen.has(SOS)) {
      out.copy(file, at, at + 2)
      return out.finish()
    } else {
      if (marker === SOI || marker === EOI) throw new RangeError()
      const end = at + 2 + file.readUInt16BE(at + 2)
      const data = file.subarray(at + 4, end)
      if (end > file.length || end < at + 4) throw new RangeError()
      if (isNeeded(marker)) out.copy(file, at, end)
      else keepPart(marker, data, seen, out)
      at = end
      if (marker !== SOS) continue
      seen.add(marker)
      at = endOfScan(file, end)
      out.copy(file, end, at)
    }
  }
}

/** Whether a marker has no data: the restart markers. */
function isAlone(marker: number): boolean {
  return marker === TEM || (marker >= 0xd0 && marker <= 0xd7)
}

/** Frames, tables for the decoder, scans, number of lines, and restart interval. */
function isNeeded(marker: number): boolean {
  return (marker >= 0xc0 && marker <= 0xcf && marker !== 0xc8) || (marker >= SOS && marker <= DRI)
}

/** Keeps what is needed of application data. */
function keepPart(marker: number, data: Buffer, seen: Set<number>, out: Output): void {
  const starts = (text: string) => data.toString('latin1', 0, text.length) === text
  const once = () => !seen.has(marker) && seen.add(marker)
  if (marker === APP0 && starts('JFIF\0') && data.length >= JFIF_BYTES && once())
    add(marker, Buffer.concat([data.subarray(0, JFIF_BYTES - 2), Buffer.alloc(2)]), out)
  else if (marker === APP1 && starts('Exif\0') && once()) {
    const exif = onlyOrientation(data)
    if (exif) add(marker, Buffer.concat([EXIF_PREFIX, exif]), out)
  } else if (marker === APP2 && starts('ICC_PROFILE\0')) add(marker, data, out)
  else if (marker === APP14 && starts('Adobe') && data.length >= ADOBE_BYTES && once())
    add(marker, data.subarray(0, ADOBE_BYTES), out)
}

function add(marker: number, data: Buffer, out: Output): void {
  const length = data.length + 2
  out.add(Buffer.from([0xff, marker, length >> 8, length & 0xff]))
  out.add(data)
}

/** Finds the next marker that is not part of the image data. */
function endOfScan(file: Buffer, from: number): number {
  for (let at = file.indexOf(0xff, from); at !== -1; at = file.indexOf(0xff, at + 1)) {
    const next = file.readUInt8(at + 1)
    if (next !== 0 && next !== 0xff && !isAlone(next)) return at
  }
  throw new RangeError()
}
