/** A box of an AVIF or HEIC file. `start` and `end` are those of its data. */
export interface Box {
  readonly type: string
  readonly start: number
  readonly end: number
}

/** The properties of the images in a file. */
export interface Items {
  /** ID of the image that is shown. */
  readonly primary: number
  /** All properties. An association names one by its position, from 1 on. */
  readonly properties: readonly Box[]
  /** Per item, the properties that it has. */
  readonly associations: ReadonlyMap<number, readonly Association[]>
}

export interface Association {
  readonly index: number
  readonly isEssential: boolean
}

/** No file has more boxes in one place. */
const MOST_BOXES = 65_536

/**
 * Reads boxes that follow each other. The last one can end after `end` if only the beginning of a file is there.
 *
 * @throws RangeError if a box is damaged
 * @see ISO/IEC 14496-12, section 4.2
 */
export function readBoxes(file: Buffer, from: number, end: number): Box[] {
  const boxes: Box[] = []
  for (let at = from; at + 8 <= end; ) {
    let size = file.readUInt32BE(at)
    let head = 8
    if (size === 1) {
      size = Number(file.readBigUInt64BE(at + 8))
      head = 16
    } else if (size === 0) size = end - at
    if (size < head || boxes.length === MOST_BOXES) throw new RangeError()
    boxes.push({ type: file.toString('latin1', at + 4, at + 8), start: at + head, end: at + size })
    at += size
  }
  return boxes
}

/**
 * Reads which properties the images of a file have.
 *
 * @param meta the box `meta`
 * @throws RangeError if the file ends before its properties
 * @see ISO/IEC 14496-12, section 8.11
 */
export function readItems(file: Buffer, meta: Box): Items {
  const inMeta = readBoxes(file, meta.start + 4, meta.end)
  const inProperties = boxesOf(file, find(inMeta, 'iprp'))
  return {
    primary: readPrimary(file, find(inMeta, 'pitm')),
    properties: boxesOf(file, find(inProperties, 'ipco')),
    associations: readAssociations(file, find(inProperties, 'ipma')),
  }
}

/** @throws RangeError if there is no box of the type */
export function find(boxes: readonly Box[], type: string): Box {
  const found = boxes.find(box => box.type === type)
  if (!found) throw new RangeError()
  return found
}

function boxesOf(file: Buffer, { start, end }: Box): Box[] {
  return readBoxes(file, start, end)
}

function readPrimary(file: Buffer, { start }: Box): number {
  return file.readUInt8(start) === 0 ? file.readUInt16BE(start + 4) : file.readUInt32BE(start + 4)
}

/** A full box begins with its version and 24 bits of flags. */
function readAssociations(file: Buffer, { start, end }: Box): Map<number, Association[]> {
  const idBytes = file.readUInt8(start) === 0 ? 2 : 4
  const indexBytes = file.readUInt8(start + 3) & 1 ? 2 : 1
  const associations = new Map<number, Association[]>()
  const count = file.readUInt32BE(start + 4)
  let at = start + 8
  for (let n = 0; n < count; n++) {
    const id = file.readUIntBE(at, idBytes)
    const length = file.readUInt8(at + idBytes)
    at += idBytes + 1
    const end_ = at + length * indexBytes
    if (end_ > end) throw new RangeError()
    const found: Association[] = []
    for (; at < end_; at += indexBytes) {
      const value = file.readUIntBE(at, indexBytes)
      const essential = indexBytes === 2 ? 0x8000 : 0x80
      found.push({ index: value & (essential - 1), isEssential: (value & essential) !== 0 })
    }
    associations.set(id, found)
  }
  return associations
}
