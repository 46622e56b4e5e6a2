import { AROUND_CHUNK_BYTES, SIGNATURE_BYTES } from './png.ts'

/** Chunks that say something of the picture and change nothing of how it looks; the colour profile (iCCP) is none. */
const METADATA = new Set(['eXIf', 'tEXt', 'zTXt', 'iTXt', 'tIME'].map(toNumber))
const END = toNumber('IEND')

/**
 * A PNG without its metadata, pixels and frames untouched: sharp reads the first frame of an animated one only. A file may
 * be nothing but chunks, 80 000 in each megabyte: nothing is made for each of them.
 *
 * @param png changed: what is kept moves to its front
 * @returns undefined when there is none
 * @throws Error for a file that is cut short
 * @see https://www.w3.org/TR/png-3/#5Chunk-layout
 */
export function withoutMetadata(png: Buffer): Buffer | undefined {
  let kept = SIGNATURE_BYTES
  for (let at = SIGNATURE_BYTES; at < png.length; ) {
    if (at + AROUND_CHUNK_BYTES > png.length) throw new Error('it ends within a chunk')
    const end = at + AROUND_CHUNK_BYTES + png.readUInt32BE(at)
    if (end > png.length) throw new Error('it ends within a chunk')
    const type = png.readUInt32BE(at + 4)
    if (!METADATA.has(type)) {
      if (kept !== at) png.copyWithin(kept, at, end)
      kept += end - at
    }
    if (type === END) break // what follows the end may be anything
    at = end
  }
  return kept === png.length ? undefined : png.subarray(0, kept)
}

function toNumber(type: string): number {
  return Buffer.from(type, 'latin1').readUInt32BE()
}
