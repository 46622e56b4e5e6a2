import { messageOf, UploadError } from '../../errors.ts'
import type { SourceFormat } from '../options.ts'
import { stripAvif } from './avif.ts'
import { stripGif } from './gif.ts'
import { stripJpeg } from './jpeg.ts'
import { stripPng } from './png.ts'
import { stripWebp } from './webp.ts'

/** HEIC is missing, because it is always converted. */
const STRIP: Partial<Record<SourceFormat, (file: Buffer) => Buffer>> = {
  jpeg: stripJpeg,
  png: stripPng,
  webp: stripWebp,
  gif: stripGif,
  avif: stripAvif,
  // It was encoded without metadata.
  tiff: file => file,
}

/**
 * Copies the parts of an image that are needed to show it, and checks the copy: it must not have another part. Pixels are
 * not encoded again. Each function throws a RangeError if the file is damaged, and an Error if it can't be stripped.
 *
 * @throws UploadError `source_failed` if something remains; RangeError if the file is damaged
 */
export function strip(file: Buffer, format: SourceFormat, name: string): Buffer {
  const copy = STRIP[format]
  if (!copy) throw notStripped(name, 'it is a HEIC')
  let stripped: Buffer
  try {
    stripped = copy(file)
    if (copy(stripped).equals(stripped)) return stripped
  } catch (error) {
    if (error instanceof RangeError) throw error
    throw notStripped(name, messageOf(error))
  }
  throw notStripped(name, 'some of it would remain')
}

/** @throws UploadError `source_failed` for a TIFF of several pages, of which only the first one would be encoded */
export function assertOnePage(tiff: Buffer, name: string): void {
  const isLittle = tiff.toString('latin1', 0, 2) === 'II'
  const short = (at: number) => (isLittle ? tiff.readUInt16LE(at) : tiff.readUInt16BE(at))
  const long = (at: number) => (isLittle ? tiff.readUInt32LE(at) : tiff.readUInt32BE(at))
  if (short(2) !== 42) throw notStripped(name, 'it is a BigTIFF')
  const page = long(4)
  if (long(page + 2 + short(page) * 12) !== 0) throw notStripped(name, 'it has several pages')
}

export function notStripped(name: string, reason: string): UploadError {
  return new UploadError(
    'source_failed',
    `The metadata of "${name || 'the image'}" could not be removed, because ${reason} (images.stripMetadata). Send it as a JPEG, PNG, WebP or GIF.`,
  )
}
