import { type Box, find, readBoxes, readItems } from '../../payload/heif.ts'

/** Items that are images, and those that are computed from other images. */
const IMAGE_ITEMS = new Set(['av01', 'grid', 'iovl', 'iden'])
/** Properties that are needed to show an image. */
const NEEDED = new Set(
  'ispe pixi av1C colr irot imir clap pasp auxC clli mdcv cclv amve a1op a1lx lsel'.split(' '),
)
const ALPHA = /^urn:mpeg:(?:mpegB:cicp:systems:auxiliary:alpha|hevc:2015:auxid:1)\0/

/** Item `from` is made of the items `to` (`dimg`), or belongs to them (`auxl`, `prem`). */
interface Reference {
  readonly type: string
  readonly from: number
  readonly to: readonly number[]
}

/**
 * Writes the primary image of an AVIF into a file of its own, with its transparency and the properties that are needed to show
 * it. The image data is unchanged.
 *
 * @throws Error if it is damaged, or of a kind that can't be stripped
 * @see ISO/IEC 23008-12, and 14496-12, section 8.11
 */
export function stripAvif(file: Buffer): Buffer {
  const meta = find(readBoxes(file, 0, file.length), 'meta')
  if (meta.end > file.length) throw new RangeError()
  const { primary, properties, associations } = readItems(file, meta)
  const boxes = readBoxes(file, meta.start + 4, meta.end)
  const types = readTypes(file, find(boxes, 'iinf'))
  const extents = readExtents(file, boxes)
  const references = readReferences(file, boxes)

  const propertiesOf = (id: number) =>
    (associations.get(id) ?? []).flatMap(({ index, isEssential }) => {
      const property = properties[index - 1]
      return property && NEEDED.has(property.type) ? [{ index, isEssential, ...property }] : []
    })
  const isAlpha = (id: number) =>
    propertiesOf(id).some(
      ({ type, start, end }) => type === 'auxC' && ALPHA.test(file.toString('latin1', start + 4, end)),
    )
  const ids = neededItems(primary, references, isAlpha)
  const strange = ids.find(id => !IMAGE_ITEMS.has(types.get(id) ?? ''))
  if (strange !== undefined)
    throw new Error(`it contains an image of the unknown type "${types.get(strange)}"`)
  const parts = ids.map(id => extents.get(id) ?? [])
  if (parts.flat().reduce((sum, part) => sum + part.length, 0) > file.length) throw new RangeError() // they overlap
  const data = parts.map(part => Buffer.concat(part))

  /** Old and new position of each property that is used. */
  const positions = new Map<number, number>()
  const links = ids.map(id => {
    const used = propertiesOf(id).map(({ index, isEssential }) => {
      const position = positions.get(index) ?? positions.size + 1
      positions.set(index, position)
      return u16(position | (isEssential ? 0x8000 : 0))
    })
    return Buffer.concat([u16(id), Buffer.from([used.length]), ...used])
  })
  const copies = [...positions.keys()].map(index => {
    const { type, start, end } = properties[index - 1] as Box
    return box(type, file.subarray(start, end))
  })
  const infos = ids.map(id => {
    const flags = id === primary ? 0x2000000 : 0x2000001 // version 2; the others are hidden
    return box('infe', u32(flags), u16(id), u16(0), Buffer.from(`${types.get(id)}\0`, 'latin1'))
  })
  const isKept = new Set(ids)
  const kept = references.flatMap(({ type, from, to }) => {
    const targets = to.filter(id => isKept.has(id))
    if (!['dimg', 'auxl', 'prem'].includes(type) || !isKept.has(from) || targets.length === 0) return []
    return [box(type, u16(from), u16(targets.length), ...targets.map(u16))]
  })
  /** @param start where the data of the first item is */
  const metaWith = (start: number) => {
    let at = start
    const places = ids.map((id, n) => {
      const length = data[n]?.length ?? 0
      at += length
      return Buffer.concat([u16(id), u16(0), u16(1), u32(at - length), u32(length)])
    })
    return box(
      'meta',
      u32(0),
      box('hdlr', u32(0), u32(0), Buffer.from('pict', 'latin1'), Buffer.alloc(13)),
      box('pitm', u32(0), u16(primary)),
      box('iloc', u32(0), u16(0x4400), u16(ids.length), ...places),
      box('iinf', u32(0), u16(ids.length), ...infos),
      ...(kept.length > 0 ? [box('iref', u32(0), ...kept)] : []),
      box('iprp', box('ipco', ...copies), box('ipma', u32(1), u32(ids.length), ...links)),
    )
  }
  const ftyp = box('ftyp', Buffer.from('avif\0\0\0\0avifmif1miaf', 'latin1'))
  return Buffer.concat([ftyp, metaWith(ftyp.length + metaWith(0).length + 8), box('mdat', ...data)])
}

/** Whether it is an animation. */
export function isSequence(file: Buffer): boolean {
  const size = Math.min(file.length, file.readUInt32BE(0))
  for (let at = 8; at + 4 <= size; at += 4) if (file.toString('latin1', at, at + 4) === 'avis') return true
  return false
}

/** The primary item, the items of which it is composed, and their transparency, by ascending ID. */
function neededItems(
  primary: number,
  references: readonly Reference[],
  isAlpha: (id: number) => boolean,
): number[] {
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
  const entries = readBoxes(file, start + (file.readUInt8(start) === 0 ? 6 : 8), end)
  return new Map(
    entries.map(entry => {
      const idBytes = file.readUInt8(entry.start) < 3 ? 2 : 4
      const at = entry.start + 4 + idBytes + 2
      return [file.readUIntBE(entry.start + 4, idBytes), file.toString('latin1', at, at + 4)]
    }),
  )
}

function readReferences(file: Buffer, boxes: readonly Box[]): Reference[] {
  const iref = boxes.find(({ type }) => type === 'iref')
  if (!iref) return []
  const bytes = file.readUInt8(iref.start) === 0 ? 2 : 4
  return readBoxes(file, iref.start + 4, iref.end).map(({ type, start }) => {
    const count = file.readUInt16BE(start + bytes)
    const at = start + bytes + 2
    const to = Array.from({ length: count }, (_, n) => file.readUIntBE(at + n * bytes, bytes))
    return { type, from: file.readUIntBE(start, bytes), to }
  })
}

/** The parts of the data of each item. */
function readExtents(file: Buffer, boxes: readonly Box[]): Map<number, Buffer[]> {
  const { start, end } = find(boxes, 'iloc')
  const idat = boxes.find(({ type }) => type === 'idat')?.start ?? 0
  let at = start + 4
  const read = (bytes: number): number => {
    at += bytes
    if (at > end) throw new RangeError()
    if (bytes === 8) return Number(file.readBigUInt64BE(at - bytes))
    return bytes === 0 ? 0 : file.readUIntBE(at - bytes, bytes)
  }
  const version = file.readUInt8(start)
  const sizes = read(2)
  const [offsetBytes, lengthBytes, baseBytes, indexBytes] = [12, 8, 4, 0].map(
    shift => (sizes >> shift) & 15,
  ) as [number, number, number, number]
  const idBytes = version < 2 ? 2 : 4
  const extents = new Map<number, Buffer[]>()
  for (let left = read(idBytes); left > 0; left--) {
    const id = read(idBytes)
    const method = version === 0 ? 0 : read(2) & 15
    if (method > 1 || read(2) !== 0) throw new Error('its data is not in the file')
    const base = read(baseBytes) + (method === 1 ? idat : 0)
    const parts: Buffer[] = []
    for (let more = read(2); more > 0; more--) {
      if (version > 0) read(indexBytes)
      const from = base + read(offsetBytes)
      const to = lengthBytes === 0 ? file.length : from + read(lengthBytes)
      if (to > file.length) throw new RangeError()
      parts.push(file.subarray(from, to))
    }
    extents.set(id, parts)
  }
  return extents
}

function box(type: string, ...parts: readonly Buffer[]): Buffer {
  const data = Buffer.concat(parts)
  return Buffer.concat([u32(data.length + 8), Buffer.from(type, 'latin1'), data])
}

/** @throws RangeError for IDs of more than two bytes */
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
