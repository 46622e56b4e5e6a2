interface Page {
  readonly tags: Record<number, number>
  readonly data: Buffer
}

/** A TIFF of pages with one strip each. Every tag is one LONG. */
export function tiffOf(...pages: Page[]): Buffer {
  let file: Buffer = Buffer.from('MM\0*')
  let at = 8
  for (const { tags, data } of pages) {
    const all = Object.entries({ 273: at, 279: data.length, ...tags }).sort(([a], [b]) => +a - +b)
    const entries = all.map(([tag, value]) => Buffer.concat([u16(+tag), u16(4), u32(1), u32(value)]))
    const padded = Buffer.concat([data, Buffer.alloc(data.length % 2)])
    // The offset of this directory, the data, the directory up to the offset of the next one.
    file = Buffer.concat([file, u32(at + padded.length), padded, u16(entries.length), ...entries])
    at = file.length + 4
  }
  return Buffer.concat([file, u32(0)])
}

/** A grey page. */
export function greyPage(width: number, height: number, tags: Record<number, number> = {}): Page {
  const shape = { 256: width, 257: height, 258: 8, 259: 1, 262: 1, 277: 1, 278: height }
  return { tags: { ...shape, ...tags }, data: Buffer.alloc(width * height, width) }
}

function u16(value: number): Buffer {
  return Buffer.from([value >> 8, value & 255])
}

function u32(value: number): Buffer {
  return Buffer.concat([u16(value >>> 16), u16(value & 65_535)])
}
