import { randomBytes } from 'node:crypto'
import { crc32, deflateSync } from 'node:zlib'

/** A PNG that decodes, different at every call: one pixel, and so many random bytes in a chunk decoders skip. */
export function makePicture(extraBytes = 1000, color = [255, 0, 0]): Buffer {
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    pngChunk('IHDR', Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0, 0, 0])),
    pngChunk('IDAT', deflateSync(Buffer.from([0, ...color]))),
    pngChunk('raNd', randomBytes(extraBytes)),
    pngChunk('IEND', Buffer.alloc(0)),
  ])
}

export function makePictures(count: number, extraBytes?: number): Buffer[] {
  return Array.from({ length: count }, () => makePicture(extraBytes))
}

/** A part of a PNG. */
export function pngChunk(type: string, data: Buffer): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(data.length)
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const checksum = Buffer.alloc(4)
  checksum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, checksum])
}
