import { crc32, deflateSync } from 'node:zlib'

/** Bytes before the first chunk. */
export const SIGNATURE_BYTES = 8
/** Length, type and checksum around the data of a chunk. */
export const AROUND_CHUNK_BYTES = 12
/** Length of the signature and of IHDR, which is always the first chunk. */
const HEADER_BYTES = SIGNATURE_BYTES + AROUND_CHUNK_BYTES + 13

/**
 * Adds a color profile to a PNG.
 *
 * @see https://www.w3.org/TR/png-3/#11iCCP
 */
export function withProfile(png: Buffer, icc: Buffer): Buffer {
  const name = Buffer.from('icc\0\0', 'latin1') // the name, and the compression method
  const profile = chunk('iCCP', Buffer.concat([name, deflateSync(icc)]))
  return Buffer.concat([png.subarray(0, HEADER_BYTES), profile, png.subarray(HEADER_BYTES)])
}

export function chunk(type: string, data: Buffer): Buffer {
  const typed = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const around = Buffer.alloc(8)
  around.writeUInt32BE(data.length, 0)
  around.writeUInt32BE(crc32(typed), 4)
  return Buffer.concat([around.subarray(0, 4), typed, around.subarray(4)])
}
