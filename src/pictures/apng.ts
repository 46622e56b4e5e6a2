import { AROUND_CHUNK_BYTES, SIGNATURE_BYTES } from './png.ts'

/** Chunks with metadata that does not change how the image looks. The color profile (iCCP) is not one of them. */
const METADATA = new Set(['eXIf', 'tEXt', 'zTXt', 'iTXt', 'tIME'].map(toNumber))
const END = toNumber('IEND')

/**
 * Removes the metadata of a PNG and keeps its pixels and frames, because sharp reads only the first frame of an animated PNG. A
 * file can consist of tiny chunks, 80 000 in each megabyte, so nothing is allocated per chunk.
 *
 * @param png is changed: the remaining chunks move to its front
 * @returns undefined if there is no metadata
 * @throws Error if the file is truncated
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
