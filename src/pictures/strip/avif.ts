import { type Box, find, type Items, readBoxes, readItems } from '../../payload/heif.ts'

/** Items that are images, and those that are computed from other images. */
const IMAGE_ITEMS = new Set(['av01', 'grid', 'iovl', 'iden'])
/** Properties that are needed to show an image. */
const NEEDED = new Set(
  'ispe pixi av1C colr irot imir clap pasp auxC clli mdcv cclv amve a1op a1lx lsel'.split(' '),
)
const ALPHA = ['urn:mpeg:mpegB:cicp:systems:auxiliary:alpha', 'urn:mpeg:hevc:2015:auxid:1']
/** IDs of items are written in two bytes. */
const MOST_ITEMS = 65_535

interface Reference {
  readonly type: string
  readonly from: number
  readonly to: readonly number[]
}

interface Source extends Items {
  readonly file: Buffer
  /** Type of each item. */
  readonly types: ReadonlyMap<number, string>
  /** Where the data of each item is. */
  readonly extents: ReadonlyMap<number, readonly { readonly from: number; readonly to: number }[]>
  readonly references: readonly Reference[]
}

/**
 * Writes the primary image of an AVIF into a file of its own, with its transparency and the properties that are needed to show
 * it. The image data is unchanged.
 *
 * @throws Error if it is damaged, or of a kind that can't be stripped
 * @see ISO/IEC 23008-12, and 14496-12, section 8.11
 */
export function stripAvif(file: Buffer): Buffer {
  const source = readSource(file)
  const ids = neededItems(source)
  for (const id of ids) {
    const type = source.types.get(id) ?? ''
    if (!IMAGE_ITEMS.has(type)) throw new Error(`it contains an image of the unknown type "${type}"`)
  }
  const parts = ids.map(id => source.extents.get(id) ?? [])
  const size = parts.flat().reduce((sum, { from, to }) => sum + to - from, 0)
  if (size > file.length) throw new RangeError() // some of them overlap
  const data = parts.map(some => Buffer.concat(some.map(({ from, to }) => file.subarray(from, to))))
  const ftyp = box('ftyp', Buffer.from('avif\0\0\0\0avifmif1miaf', 'latin1'))
  const metaWith = (start: number) => box('meta', u32(0), ...metaBoxes(source, ids, data, start))
  const start = ftyp.length + metaWith(0).length + 8
  return Buffer.concat([ftyp, metaWith(start), box('mdat', ...data)])
}

/** Whether it is an animation. */
export function isSequence(file: Buffer): boolean {
  const size = Math.min(file.length, file.readUInt32BE(0))
  for (let at = 8; at + 4 <= size; at += 4) if (file.toString('latin1', at, at + 4) === 'avis') return true
  return false
}

function readSource(file: Buffer): Source {
  const meta = find(readBoxes(file, 0, file.length), 'meta')
  if (meta.end > file.length) throw new RangeError()
  const boxes = readBoxes(file, meta.start + 4, meta.end)
  const idat = boxes.find(({ type }) => type === 'idat')
  const iref = boxes.find(({ type }) => type === 'iref')
  return {
    ...readItems(file, meta),
    file,
    types: readTypes(file, find(boxes, 'iinf')),
    extents: readExtents(file, find(boxes, 'iloc'), idat?.start ?? 0),
    references: iref ? readReferences(file, iref) : [],
  }
}

/** The primary item, the items of which it is composed, and their transparency, by ascending ID. */
function neededItems({ primary, references, file, properties, associations }: Source): number[] {
  const isAlpha = (id: number) =>
    associations.get(id)?.some(({ index }) => {
      const property = properties[index - 1]
      if (property?.type !== 'auxC') return false
      const name = file.toString('latin1', property.start + 4, property.end)
      return ALPHA.some(alpha => name.startsWith(`${alpha}\0`))
    })
  const partsOf = new Map<number, number[]>()
  const link = (id: number, part: number) => {
    const parts = partsOf.get(id)
    if (parts) parts.push(part)
    else partsOf.set(id, [part])
  }
  for (const { type, from, to } of references) {
    if (type === 'dimg') for (const id of to) link(from, id)
    if (type === 'auxl' && isAlpha(from)) for (const id of to) link(id, from)
  }
  const needed = new Set([primary])
  for (const id of needed) for (const part of partsOf.get(id) ?? []) needed.add(part) // grows while it is read
  return [...needed].sort((a, b) => a - b)
}

function readTypes(file: Buffer, { start, end }: Box): Map<number, string> {
  const from = start + (file.readUInt8(start) === 0 ? 6 : 8)
  const types = new Map<number, string>()
  for (const entry of readBoxes(file, from, end)) {
    const version = file.readUInt8(entry.start)
    if (version < 2) continue
    const idBytes = version === 2 ? 2 : 4
    const at = entry.start + 4 + idBytes + 2
    types.set(file.readUIntBE(entry.start + 4, idBytes), file.toString('latin1', at, at + 4))
  }
  return types
}

function readReferences(file: Buffer, { start, end }: Box): Reference[] {
  const bytes = file.readUInt8(start) === 0 ? 2 : 4
  return readBoxes(file, start + 4, end).map(entry => {
    const count = file.readUInt16BE(entry.start + bytes)
    const at = entry.start + bytes + 2
    const to = Array.from({ length: count }, (_, n) => file.readUIntBE(at + n * bytes, bytes))
    return { type: entry.type, from: file.readUIntBE(entry.start, bytes), to }
  })
}

function readExtents(file: Buffer, { start, end }: Box, idat: number): Source['extents'] {
  let at = start + 4
  const read = (bytes: number): number => {
    if (at + bytes > end) throw new RangeError()
    const value =
      bytes === 0 ? 0 : bytes === 8 ? Number(file.readBigUInt64BE(at)) : file.readUIntBE(at, bytes)
    at += bytes
    return value
  }
  const version = file.readUInt8(start)
  const sizes = read(2)
  const [offsetBytes, lengthBytes, baseBytes, indexBytes] = [12, 8, 4, 0].map(
    shift => (sizes >> shift) & 15,
  ) as [number, number, number, number]
  const idBytes = version < 2 ? 2 : 4
  const extents = new Map<number, { from: number; to: number }[]>()
  for (let left = read(idBytes); left > 0; left--) {
    const id = read(idBytes)
    const method = version === 0 ? 0 : read(2) & 15
    const where = read(2)
    if (method > 1 || where !== 0) throw new Error('its data is not in the file')
    const base = read(baseBytes) + (method === 1 ? idat : 0)
    const found: { from: number; to: number }[] = []
    for (let parts = read(2); parts > 0; parts--) {
      if (version > 0) read(indexBytes)
      const from = base + read(offsetBytes)
      const to = from + read(lengthBytes)
      if (to > file.length) throw new RangeError()
      found.push({ from, to: lengthBytes === 0 ? file.length : to })
    }
    extents.set(id, found)
  }
  return extents
}

/** @param start where the data of the first item is */
function metaBoxes(source: Source, ids: readonly number[], data: readonly Buffer[], start: number): Buffer[] {
  const { file, primary, types, references, properties, associations } = source
  if ((ids.at(-1) ?? 0) > MOST_ITEMS) throw new Error('it has too many images')
  const isKept = new Set(ids)
  const handler = box('hdlr', u32(0), u32(0), Buffer.from('pict', 'latin1'), Buffer.alloc(13))
  const infos = ids.map(id =>
    box(
      'infe',
      u32(id === primary ? 0x2000000 : 0x2000001),
      u16(id),
      u16(0),
      Buffer.from(`${types.get(id)}\0`, 'latin1'),
    ),
  )
  let at = start
  const places = ids.map((id, n) => {
    const length = data[n]?.length ?? 0
    const place = Buffer.concat([u16(id), u16(0), u16(1), u32(at), u32(length)])
    at += length
    return place
  })
  /** Old and new position of each property that is used. */
  const used = new Map<number, number>()
  const links = ids.map(id => {
    const found = (associations.get(id) ?? []).filter(({ index }) =>
      NEEDED.has(properties[index - 1]?.type ?? ''),
    )
    const values = found.map(({ index, isEssential }) => {
      const position = used.get(index) ?? used.size + 1
      used.set(index, position)
      return u16(position | (isEssential ? 0x8000 : 0))
    })
    return Buffer.concat([u16(id), Buffer.from([values.length]), ...values])
  })
  const boxes = [...used.keys()].map(index => {
    const { type, start: from, end } = properties[index - 1] as Box
    return box(type, file.subarray(from, end))
  })
  const kept = references
    .filter(({ type, from }) => (type === 'dimg' || type === 'auxl' || type === 'prem') && isKept.has(from))
    .map(({ type, from, to }) => ({ type, from, to: to.filter(id => isKept.has(id)) }))
    .filter(({ to }) => to.length > 0)
    .map(({ type, from, to }) => box(type, u16(from), u16(to.length), ...to.map(u16)))
  return [
    handler,
    box('pitm', u32(0), u16(primary)),
    box('iloc', u32(0), u16(0x4400), u16(ids.length), ...places),
    box('iinf', u32(0), u16(ids.length), ...infos),
    ...(kept.length > 0 ? [box('iref', u32(0), ...kept)] : []),
    box('iprp', box('ipco', ...boxes), box('ipma', u32(1), u32(ids.length), ...links)),
  ]
}

function box(type: string, ...parts: readonly Buffer[]): Buffer {
  const data = Buffer.concat(parts)
  return Buffer.concat([u32(data.length + 8), Buffer.from(type, 'latin1'), data])
}

function u16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16BE(value)
  return bytes
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
