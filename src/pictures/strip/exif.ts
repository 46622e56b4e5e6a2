import { readOrientation } from '../../payload/dimensions.ts'

/** Prefix of Exif data in a JPEG. Some programs write it in other formats, too. */
export const EXIF_PREFIX = Buffer.from('Exif\0\0', 'latin1')

/**
 * Returns Exif data that contains only the orientation. Undefined if the image is upright.
 *
 * @see CIPA DC-008, section 4.6.4
 */
export function onlyOrientation(exif: Buffer): Buffer | undefined {
  const orientation = readOrientation(exif)
  return orientation === 1 ? undefined : exifOf(orientation)
}

/** A TIFF header, and a directory with one entry: Orientation, one SHORT. */
export function exifOf(orientation: number): Buffer {
  const exif = Buffer.from('4d4d002a0000000800010112000300000001000000000000', 'hex')
  exif.writeUInt16BE(orientation, 18)
  return Buffer.concat([exif, Buffer.alloc(2)])
}
