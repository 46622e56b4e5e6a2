import { onlyOrientation } from './exif.ts'
import { Output } from './output.ts'

/** Lengths of the data of VP8X and ANIM, and of that of ANMF before its chunks. */
const [VP8X_BYTES, ANIM_BYTES, ANMF_BYTES] = [10, 6, 16]
/** Bits of VP8X that tell which chunks there are. */
const [HAS_PROFILE, HAS_ALPHA, HAS_EXIF, IS_ANIMATED] = [0x20, 0x10, 0x08, 0x02]

const PICTURE = new Set(['ALPH', 'VP8 ', 'VP8L'])

/**
 * Removes everything from a WebP that is not needed to show it. Kept are the image or the frames, the color profile and the
 * orientation.
 *
 * @throws Error if it is damaged
 * @see RFC 9649, section 2
 */
export function stripWebp(file: Buffer): Buffer {
  const out = new Output(file.length)
  const end = 8 + file.readUInt32LE(4)
  if (end > file.length) throw new RangeError()
  out.copy(file, 0, 12)
  if (tagAt(file, 12) === 'VP8X') copyExtended(file, end, out)
  else copyPicture(file, 12, end, out)
  out.bytes.writeUInt32LE(out.length - 8, 4)
  return out.finish()
}

/** Whether its image, or its first frame, is stored without loss. */
export function isLosslessWebp(file: Buffer): boolean {
  for (const [tag, from, to] of chunks(file, 12, file.length)) {
    if (tag === 'ANMF') return [...chunks(file, from + ANMF_BYTES, to)].some(([inner]) => inner === 'VP8L')
    if (tag === 'VP8L' || tag === 'VP8 ') return tag === 'VP8L'
  }
  return false
}

/** Copies a file with a header that tells which chunks follow. Chunks that it does not name are not shown. */
function copyExtended(file: Buffer, end: number, out: Output): void {
  const told = file.readUInt8(20)
  let flags = told & (HAS_ALPHA | IS_ANIMATED)
  const header = out.length + 8
  add('VP8X', Buffer.concat([Buffer.alloc(4), file.subarray(24, 20 + VP8X_BYTES)]), out)
  const seen = new Set<string>()
  for (const [tag, from, to] of chunks(file, 12, end)) {
    const kind = tag === 'VP8L' ? 'VP8 ' : tag
    const isFirst = !seen.has(kind)
    seen.add(kind)
    if (tag === 'ANMF' && told & IS_ANIMATED) {
      const length = out.length + 4
      add('ANMF', file.subarray(from, from + ANMF_BYTES), out)
      copyPicture(file, from + ANMF_BYTES, to, out)
      out.bytes.writeUInt32LE(out.length - length - 4, length)
    } else if (!isFirst) {
      // A second one is ignored.
    } else if (tag === 'ICCP' && told & HAS_PROFILE) {
      flags |= HAS_PROFILE
      add(tag, file.subarray(from, to), out)
    } else if (tag === 'EXIF' && told & HAS_EXIF) {
      const exif = onlyOrientation(file.subarray(from, to))
      if (!exif) continue
      flags |= HAS_EXIF
      add(tag, exif, out)
    } else if (tag === 'ANIM' && told & IS_ANIMATED) {
      add(tag, file.subarray(from, from + ANIM_BYTES), out)
    } else if (PICTURE.has(tag) && !(told & IS_ANIMATED)) {
      add(tag, file.subarray(from, to), out)
    }
  }
  out.bytes.writeUInt8(flags, header)
}

/** Copies the one image of a file or of a frame, and its transparency. */
function copyPicture(file: Buffer, start: number, end: number, out: Output): void {
  for (const [tag, from, to] of chunks(file, start, end)) {
    if (!PICTURE.has(tag)) continue
    add(tag, file.subarray(from, to), out)
    if (tag !== 'ALPH') return
  }
  throw new RangeError()
}

/** Type of each chunk, and where its data begins and ends. */
function* chunks(file: Buffer, start: number, end: number): Generator<[string, number, number]> {
  for (let at = start; at + 8 <= end; ) {
    const from = at + 8
    const to = from + file.readUInt32LE(at + 4)
    if (to > end) throw new RangeError()
    yield [tagAt(file, at), from, to]
    at = to + (to % 2)
  }
}

function add(tag: string, data: Buffer, out: Output): void {
  const head = Buffer.from(`${tag}\0\0\0\0`, 'latin1')
  head.writeUInt32LE(data.length, 4)
  out.add(head)
  out.add(data)
  if (data.length % 2) out.add(Buffer.alloc(1))
}

function tagAt(file: Buffer, at: number): string {
  return file.toString('latin1', at, at + 4)
}
