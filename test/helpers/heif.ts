import { find, readBoxes, readItems } from '../../src/payload/heif.ts'

/** One image of an AVIF or HEIC file. */
export interface HeifImage {
  /** Type of its item. */
  readonly type: string
  readonly data: Buffer
  /** Boxes. */
  readonly properties: readonly Buffer[]
}

interface HeifOptions {
  /** Which image is shown, from 1 on. */
  readonly primary?: number
  readonly brands?: readonly string[]
  /** Properties that each image gets. */
  readonly more?: readonly Buffer[]
  /** The images of which the primary one is composed. */
  readonly tiles?: readonly number[]
}

/** The first image of a file. In an HEIC, one NAL unit is all of its data. */
export function imageOf(file: Buffer): HeifImage {
  const boxes = readBoxes(file, 0, file.length)
  const { properties, associations } = readItems(file, find(boxes, 'meta'))
  const { start, end } = find(boxes, 'mdat')
  const own = associations.get(1)?.map(({ index }) => properties[index - 1]!) ?? []
  const isAvif = file.includes('av01')
  return {
    type: isAvif ? 'av01' : 'hvc1',
    data: file.subarray(start, isAvif ? end : start + 4 + file.readUInt32BE(start)),
    properties: own.map(box => file.subarray(box.start - 8, box.end)),
  }
}

/** A file of several images. */
export function heifOf(images: readonly HeifImage[], options: HeifOptions = {}): Buffer {
  const { primary = 1, brands = ['avif', 'mif1', 'miaf'], more = [], tiles } = options
  const ftyp = box('ftyp', brands[0]!, u32(0), ...brands)
  const properties: Buffer[] = []
  const links = images.map((image, n) => {
    const own = [...image.properties, ...more]
    const indices = own.map(property => properties.push(property))
    return Buffer.concat([u16(n + 1), Buffer.from([own.length, ...indices])])
  })
  const infos = images.map(({ type }, n) =>
    box('infe', u32(tiles?.includes(n + 1) ? 0x2000001 : 0x2000000), u16(n + 1), u16(0), `${type}\0`),
  )
  const meta = (start: number) => {
    let at = start
    const places = images.map(({ data }, n) => {
      const place = Buffer.concat([u16(n + 1), u16(0), u16(1), u32(at), u32(data.length)])
      at += data.length
      return place
    })
    return box(
      'meta',
      u32(0),
      box('hdlr', u32(0), u32(0), 'pict', Buffer.alloc(13)),
      box('pitm', u32(0), u16(primary)),
      box('iloc', u32(0), u16(0x4400), u16(images.length), ...places),
      box('iinf', u32(0), u16(images.length), ...infos),
      ...(tiles
        ? [box('iref', u32(0), box('dimg', u16(primary), u16(tiles.length), ...tiles.map(u16)))]
        : []),
      box('iprp', box('ipco', ...properties), box('ipma', u32(0), u32(images.length), ...links)),
    )
  }
  const start = ftyp.length + meta(0).length + 8
  return Buffer.concat([ftyp, meta(start), box('mdat', ...images.map(({ data }) => data))])
}

/** An image that is composed of images of the same size, beside each other. */
export function gridOf(columns: number, width: number, height: number): HeifImage {
  const data = Buffer.concat([Buffer.from([0, 0, 0, columns - 1]), u16(width), u16(height)])
  return { type: 'grid', data, properties: [box('ispe', u32(0), u32(width), u32(height))] }
}

/** The property by which an image is turned counter-clockwise, in quarters. */
export const irot = (quarters: number) => box('irot', Buffer.from([quarters]))

function box(type: string, ...parts: readonly (Buffer | string)[]): Buffer {
  const data = Buffer.concat(parts.map(part => Buffer.from(part as string, 'latin1')))
  return Buffer.concat([u32(data.length + 8), Buffer.from(type, 'latin1'), data])
}

function u16(value: number): Buffer {
  return Buffer.from([value >> 8, value & 255])
}

function u32(value: number): Buffer {
  return Buffer.concat([u16(value >>> 16), u16(value & 65_535)])
}
