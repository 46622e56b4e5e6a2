import { UploadError } from '../../errors.ts'
import type { SourceFormat } from '../options.ts'
import { stripAvif } from './avif.ts'
import { findRemains } from './check.ts'
import { stripGif } from './gif.ts'
import { stripJpeg } from './jpeg.ts'
import { stripPng } from './png.ts'
import { stripTiff } from './tiff.ts'
import { stripWebp } from './webp.ts'

/** HEIC is missing, because it is always converted. */
const STRIP: Record<Exclude<SourceFormat, 'heic'>, (file: Buffer) => Buffer> = {
  jpeg: stripJpeg,
  png: stripPng,
  webp: stripWebp,
  gif: stripGif,
  tiff: stripTiff,
  avif: stripAvif,
}

/**
 * Copies an image without its metadata, and checks the copy. Pixels are not encoded again. Each function throws a RangeError if
 * the file is damaged, and an Error if it can't be stripped.
 *
 * @throws UploadError `source_failed` if something remains; RangeError if the file is damaged
 */
export function strip(file: Buffer, format: SourceFormat, name: string): Buffer {
  if (format === 'heic') throw notStripped(name, 'it is a HEIC')
  let stripped: Buffer
  try {
    stripped = STRIP[format](file)
  } catch (error) {
    if (error instanceof RangeError) throw error
    throw notStripped(name, error instanceof Error ? error.message : String(error))
  }
  const remains = findRemains(stripped, format)
  if (remains) throw notStripped(name, `${remains} would remain`)
  return stripped
}

export function notStripped(name: string, reason: string): UploadError {
  return new UploadError(
    'source_failed',
    `The metadata of "${name || 'the image'}" could not be removed, because ${reason} (images.stripMetadata). Send it as a JPEG, PNG, WebP or GIF.`,
  )
}
