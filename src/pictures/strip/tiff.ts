import { stripJpeg } from './jpeg.ts'
import { Output } from './output.ts'

/** Tags that are needed to show a page, besides the offsets and lengths of its data. */
const NEEDED = new Set([
  ...[
    254, 256, 257, 258, 259, 262, 266, 274, 277, 278, 280, 281, 282, 283, 284, 290, 291, 292, 293, 296, 301,
  ],
  ...[317, 318, 319, 320, 322, 323, 332, 334, 336, 338, 339, 340, 341, 347, 529, 530, 531, 532, 34675],
])
const [SUBFILE, COMPRESSION] = [254, 259]
/** Offsets and lengths of the data, in strips or in tiles. */
const DATA_TAGS = [
  [273, 279],
  [324, 325],
] as const
const READ = new Set([...NEEDED, ...DATA_TAGS.flat()])
/** Bytes of a value of each type. */
const TYPE_BYTES = [0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8]
const LONG = 4
/** Compressions whose data has no room for metadata, and JPEG. */
const COMPRESSIONS = new Set([1, 2, 3, 4, 5, 7, 8, 32773, 32946, 34925, 50000])
const JPEG = 7

interface Entry {
  readonly type: number
  readonly count: number
  readonly value: Buffer
}

/**
 * Removes everything from a TIFF that is not needed to show it. Kept are all pages except previews, their data unchanged.
 *
 * @throws Error if it is damaged, or of a kind that can't be stripped
 * @see TIFF, Revision 6.0, section 2
 */
export function stripTiff(file: Buffer): Buffer {
  const isLittle = file.toString('latin1', 0, 2) === 'II'
  const short = (at: number) => (isLittle ? file.readUInt16LE(at) : file.readUInt16BE(at))
  const long = (at: number) => (isLittle ? file.readUInt32LE(at) : file.readUInt32BE(at))
  if (short(2) !== 42) throw new Error('it is a BigTIFF')
  const out = new Output(file.length * 2)
  out.copy(file, 0, 8)
  /** Where the offset of the next page is to be written. */
  let link = 4
  const seen = new Set<number>()
  for (let at = long(4); at !== 0; at = long(at + 2 + short(at) * 12)) {
    if (seen.has(at)) throw new Error('its pages form a circle')
    seen.add(at)
    const entries = readEntries(at)
    const isPreview = seen.size > 1 && ((numbers(entries.get(SUBFILE))[0] ?? 0) & 1) === 1
    if (isPreview) continue
    writeNumber(out.bytes, copyPage(entries), link)
    link = out.length - 4
  }
  if (link === 4) throw new RangeError()
  return out.finish()

  function readEntries(directory: number): Map<number, Entry> {
    const entries = new Map<number, Entry>()
    for (let n = 0; n < short(directory); n++) {
      const at = directory + 2 + n * 12
      const [tag, type, count] = [short(at), short(at + 2), long(at + 4)]
      if (!READ.has(tag) || entries.has(tag)) continue
      const bytes = (TYPE_BYTES[type] ?? 0) * count
      const start = bytes <= 4 ? at + 8 : long(at + 8)
      if (start + bytes > file.length) throw new RangeError()
      entries.set(tag, { type, count, value: file.subarray(start, start + bytes) })
    }
    return entries
  }

  function numbers(entry: Entry | undefined): number[] {
    if (!entry) return []
    const bytes = entry.type === LONG ? 4 : 2
    const view = entry.value
    return Array.from({ length: entry.count }, (_, n) =>
      isLittle ? view.readUIntLE(n * bytes, bytes) : view.readUIntBE(n * bytes, bytes),
    )
  }

  function writeNumber(target: Buffer, value: number, at: number, bytes = 4): void {
    if (isLittle) target.writeUIntLE(value, at, bytes)
    else target.writeUIntBE(value, at, bytes)
  }

  /** Copies data, long values, and the directory, whose offset it returns. */
  function copyPage(entries: Map<number, Entry>): number {
    const compression = numbers(entries.get(COMPRESSION))[0] ?? 1
    if (!COMPRESSIONS.has(compression)) throw new Error(`it is compressed in an unknown way (${compression})`)
    const kept = new Map([...entries].filter(([tag]) => NEEDED.has(tag)))
    for (const [offsetTag, lengthTag] of DATA_TAGS) {
      const lengths = numbers(entries.get(lengthTag))
      const places: number[] = []
      const newLengths: number[] = []
      for (const [n, from] of numbers(entries.get(offsetTag)).entries()) {
        const to = from + (lengths[n] ?? 0)
        if (to > file.length) throw new RangeError()
        const data = file.subarray(from, to)
        places.push(align())
        const clean = compression === JPEG ? stripJpeg(data) : data
        out.add(clean)
        newLengths.push(clean.length)
      }
      if (places.length === 0) continue
      kept.set(offsetTag, longs(places))
      kept.set(lengthTag, longs(newLengths))
    }
    return writeDirectory([...kept].sort(([a], [b]) => a - b))
  }

  function writeDirectory(entries: readonly (readonly [number, Entry])[]): number {
    const directory = Buffer.alloc(2 + entries.length * 12 + 4)
    writeNumber(directory, entries.length, 0, 2)
    for (const [n, [tag, { type, count, value }]] of entries.entries()) {
      const at = 2 + n * 12
      writeNumber(directory, tag, at, 2)
      writeNumber(directory, type, at + 2, 2)
      writeNumber(directory, count, at + 4)
      if (value.length <= 4) value.copy(directory, at + 8)
      else {
        writeNumber(directory, align(), at + 8)
        out.add(value)
      }
    }
    const start = align()
    out.add(directory)
    return start
  }

  function longs(values: readonly number[]): Entry {
    const value = Buffer.alloc(values.length * 4)
    for (const [n, number] of values.entries()) writeNumber(value, number, n * 4)
    return { type: LONG, count: values.length, value }
  }

  /** Offsets are even. */
  function align(): number {
    if (out.length % 2) out.add(Buffer.alloc(1))
    return out.length
  }
}
