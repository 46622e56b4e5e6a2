import type { Sharp } from 'sharp'
import { UploadError } from '../errors.ts'
import { allowLoaders, type SharpModule } from './load.ts'
import { type Looked, newSize } from './look.ts'
import { allowPixels } from './memory.ts'
import type { PictureOptions, SourceFormat } from './options.ts'
import { layOver } from './watermark.ts'

/** Quality of images that are encoded again in their own format and should look the same. */
const SAME_QUALITY = 90

/** Effort of the AVIF encoder, 0 to 9. A higher value makes files only slightly smaller and takes many times as long. */
const AVIF_EFFORT = 2

const GREY: ReadonlySet<string> = new Set(['b-w', 'grey16'])
/** Formats that have images without colors. */
const HAS_GREY: ReadonlySet<SourceFormat> = new Set(['jpeg', 'png', 'tiff'])

/** Renders the changed image. @throws UploadError `too_large` if it would have too many pixels */
export async function render(
  sharp: SharpModule,
  picture: Looked,
  target: SourceFormat,
  options: PictureOptions,
): Promise<Buffer> {
  const { isAnimated } = picture
  const size = newSize(picture, options)
  const frames = isAnimated ? (picture.meta.pages ?? 1) : 1
  const pixels = size ? size.width * size.height * frames : 0
  if (size && pixels > options.maxPixels)
    throw new UploadError(
      'too_large',
      `An image of ${size.width} x ${size.height} pixels would be too large (images.maxPixels).`,
    )
  allowPixels(pixels)
  let pipeline = picture.open().autoOrient()
  if (size) pipeline = pipeline.resize({ ...size, fit: 'fill' })
  if (options.watermark) {
    const { width, height } = size ?? picture
    const frame = { width, height }
    pipeline = pipeline.composite(await layOver(sharp, options.watermark, frame, frames))
    allowLoaders(sharp, [picture.loader])
  }
  pipeline = options.stripMetadata ? pipeline.keepIccProfile() : pipeline.keepMetadata()
  const space = colourspaceOf(picture, target, options)
  if (space) pipeline = pipeline.toColourspace(space)
  // A profile for grey does not fit to colors.
  else if (picture.meta.icc && GREY.has(picture.meta.space)) pipeline = pipeline.withIccProfile('srgb')
  return encode(pipeline, target, picture, options.quality).toBuffer()
}

/** Returns the color space with the depth and the greyness of the original, if the format has it. Undefined is sRGB in 8 bits. */
function colourspaceOf(
  { source, meta: { space } }: Looked,
  target: SourceFormat,
  { watermark }: PictureOptions,
): string | undefined {
  if (source === 'heic') return undefined // its decoder returns 8 bits
  if (GREY.has(space)) return watermark || !HAS_GREY.has(target) ? undefined : space
  return space === 'rgb16' ? space : undefined
}

function encode(
  pipeline: Sharp,
  target: SourceFormat,
  { source, meta, isLossless }: Looked,
  quality: number | undefined,
): Sharp {
  const isSame = target === source
  const lossy = quality ?? (isSame ? SAME_QUALITY : undefined)
  const set = lossy === undefined ? {} : { quality: lossy }
  switch (target) {
    case 'jpeg':
      return pipeline.flatten({ background: '#ffffff' }).jpeg(set)
    case 'png':
      if (quality !== undefined && quality < 100) return pipeline.png({ quality, palette: true })
      return pipeline.png({ palette: isSame && meta.isPalette })
    case 'webp':
      return pipeline.webp(isSame && isLossless && quality === undefined ? { lossless: true } : set)
    case 'avif':
      return pipeline.avif({
        effort: AVIF_EFFORT,
        ...(isSame && { bitdepth: meta.bitsPerSample as 8 | 10 | 12 }),
        ...(quality !== undefined && { quality }),
      })
    case 'gif':
      return pipeline.gif()
    default:
      return pipeline.tiff(
        quality === undefined ? { compression: 'deflate', predictor: 'horizontal' } : { quality },
      )
  }
}
