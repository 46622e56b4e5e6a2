import { AROUND_CHUNK_BYTES, SIGNATURE_BYTES } from './png.ts'

/** Chunks that say something of the picture and change nothing of how it looks; the colour profile (iCCP) is none. */
const METADATA = new Set(['eXIf', 'tEXt', 'zTXt', 'iTXt', 'tIME'])

/**
 * A PNG without its metadata, pixels and frames untouched: sharp reads the first frame of an animated one only.
 *
 * @returns undefined when there is none
 * @throws Error for a file that is cut short
 * @see https://www.w3.org/TR/png-3/#5Chunk-layout
 */
export function withoutMetadata(png: Buffer): Buffer | undefined {
  const kept = [png.subarray(0, SIGNATURE_BYTES)]
  let isChanged = false
  for (let at = SIGNATURE_BYTES; at < png.length; ) {
    if (at + AROUND_CHUNK_BYTES > png.length) throw new Error('it ends within a chunk')
    const end = at + AROUND_CHUNK_BYTES + png.readUInt32BE(at)
    if (end > png.length) throw new Error('it ends within a chunk')
    const type = png.toString('latin1', at + 4, at + 8)
    if (METADATA.has(type)) isChanged = true
    else kept.push(png.subarray(at, end))
    at = end
    if (type !== 'IEND' || at === png.length) continue
    isChanged = true // what follows the end may be anything
    break
  }
  return isChanged ? Buffer.concat(kept) : undefined
}
