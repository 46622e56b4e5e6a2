import type { Metadata, Sharp, SharpOptions } from 'sharp'
import { UploadError } from '../errors.ts'
import { heicToPng, needsDecoder } from './heic.ts'
import { bytesOf, LOADERS, type PictureJob } from './job.ts'
import { allowLoaders, type SharpModule } from './load.ts'
import { allowPixels } from './memory.ts'
import type { PictureOptions, SourceFormat } from './options.ts'
import { isLosslessWebp } from './strip/webp.ts'

/** Loaders whose pages are the frames of an animation. Those of others are different images, of which the first or the primary is used. */
const ANIMATED = new Set(['VipsForeignLoadWebp', 'VipsForeignLoadNsgif'])

/** The properties of an image. */
export interface Looked {
  /** Its loader. */
  readonly loader: string
  readonly open: () => Sharp
  readonly meta: Metadata
  readonly source: SourceFormat
  readonly isAnimated: boolean
  /** Whether it is a WebP whose pixels are stored exactly. */
  readonly isLossless: boolean
  /** Size of one frame, upright. */
  readonly width: number
  readonly height: number
}

/** Reads the header of an image. @throws UploadError `too_large` if it has too many pixels */
export async function look(sharp: SharpModule, job: PictureJob): Promise<Looked> {
  const { options } = job
  let { input } = job
  const loader = LOADERS[job.contentType] ?? ''
  allowLoaders(sharp, [loader])
  const settings: SharpOptions = { animated: ANIMATED.has(loader), limitInputPixels: false, failOn: 'error' }
  // Reads the header only.
  let meta = await sharp(input, settings).metadata()
  if (meta.pagePrimary) {
    settings.page = meta.pagePrimary
    meta = await sharp(input, settings).metadata()
  }
  const pixels = meta.width * meta.height
  if (pixels > options.maxPixels) throw tooManyPixels(job, pixels, options.maxPixels)
  allowPixels(pixels)
  const source = meta.format === 'heif' ? (meta.compression === 'av1' ? 'avif' : 'heic') : meta.format
  if (source === 'heic' && needsDecoder(sharp))
    input = await heicToPng(sharp, await bytesOf(job), meta.icc, options.maxPixels)
  const frameHeight = meta.pageHeight ?? meta.height
  const isTurned = (meta.orientation ?? 1) > 4
  return {
    loader,
    open: () => sharp(input, { ...settings, limitInputPixels: options.maxPixels }),
    meta,
    source: source as SourceFormat, // Only the loaders in `LOADERS` can read a file here, so it is one of these.
    isLossless: source === 'webp' && isLosslessWebp(await bytesOf(job)),
    isAnimated: settings.animated === true && (meta.pages ?? 1) > 1,
    width: isTurned ? frameHeight : meta.width,
    height: isTurned ? meta.width : frameHeight,
  }
}

/** Returns the new format. Animated images stay animated: only WebP can hold what GIF can. */
export function outputFormatOf({ source, isAnimated }: Looked, { format }: PictureOptions): SourceFormat {
  const wanted = typeof format === 'object' ? format[source] : format
  if (isAnimated) return wanted === 'webp' && source === 'gif' ? 'webp' : source
  return wanted ?? (source === 'heic' ? 'jpeg' : source)
}

export function needsWork(picture: Looked, target: SourceFormat, options: PictureOptions): boolean {
  const resized = newSize(picture, options)
  return (
    target !== picture.source ||
    mustChange(picture, options) ||
    (options.quality !== undefined && target !== 'gif') ||
    resized !== undefined
  )
}

/** Whether the original must not be stored, even if it is smaller. */
export function mustChange(picture: Looked, options: PictureOptions): boolean {
  const { orientation = 1 } = picture.meta
  return (
    options.watermark !== undefined ||
    newSize(picture, options) !== undefined ||
    (options.orient && orientation > 1) ||
    // Its metadata can be anywhere. It is encoded again without loss.
    (options.stripMetadata && picture.source === 'tiff') ||
    picture.source === 'heic'
  )
}

/** Undefined if the image already has that size. */
export function newSize(
  { width, height }: Looked,
  { resize }: PictureOptions,
): { width: number; height: number } | undefined {
  if (!resize) return undefined
  const scale =
    resize.percent === undefined
      ? Math.min((resize.width ?? Infinity) / width, (resize.height ?? Infinity) / height)
      : resize.percent / 100
  if (scale === 1 || (scale > 1 && !resize.enlarge)) return undefined
  return { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) }
}

function tooManyPixels({ name }: PictureJob, pixels: number, most: number): UploadError {
  const millions = (count: number) => `${+(count / 1e6).toFixed(1)} million`
  return new UploadError(
    'too_large',
    `"${name || 'The image'}" has ${millions(pixels)} pixels, more than the maximum of ${millions(most)} (images.maxPixels).`,
  )
}
