import type { Metadata, Sharp, SharpOptions } from 'sharp'
import { UploadError } from '../../errors.ts'
import { splitExtension } from '../file-name.ts'
import { importOptional } from '../optional.ts'
import type { Payload, Payloads } from '../payload.ts'
import { createSlots } from '../slots.ts'
import type { Spool } from '../spool.ts'
import type { Format, PictureOptions, SourceFormat } from './options.ts'
import { layOver } from './watermark.ts'

export type SharpModule = typeof import('sharp').default

/** Pictures that are worked on at the same time: each may take 8 bytes for every pixel. */
const AT_ONCE = 2

/** Of pictures that are encoded again in their own format and should not look different. */
const SAME_QUALITY = 90

/** Of 0 to 9. More makes files little smaller and takes many times as long. */
const AVIF_EFFORT = 2

const TYPES = /^image\/(?:jpeg|png|apng|webp|gif|tiff|avif|heic|heif|heic-sequence|heif-sequence|avis)$/

const EXTENSIONS: Record<Format, string> = { webp: '.webp', avif: '.avif', jpeg: '.jpg', png: '.png' }

const turns = createSlots(AT_ONCE, Number.POSITIVE_INFINITY)

let loading: Promise<SharpModule> | undefined

function loadSharp(): Promise<SharpModule> {
  loading ??= importOptional('sharp', async () => (await import('sharp')).default).then(sharp => {
    sharp.cache(false)
    sharp.concurrency(1)
    return sharp
  })
  loading.catch(() => {
    loading = undefined
  })
  return loading
}

export interface ChangeDeps {
  readonly payloads: Payloads
  readonly spool: Spool
  /** Largest file, bytes. */
  readonly fileSize: number
}

/** A picture that was looked at. */
interface Looked {
  readonly open: () => Sharp
  readonly meta: Metadata
  readonly source: SourceFormat
  readonly isAnimated: boolean
  /** Upright, of one frame. */
  readonly width: number
  readonly height: number
}

/**
 * Does to a picture what the options say. Gives the payload back as it is when it is no picture, or when there is nothing
 * to do or to gain.
 *
 * @throws UploadError `source_failed` for a picture that can't be read, `too_large` for one with too many pixels,
 *   `delivery_failed` when sharp is not installed
 */
export async function changePicture(
  payload: Payload,
  options: PictureOptions,
  deps: ChangeDeps,
  signal: AbortSignal,
): Promise<Payload> {
  if (!TYPES.test(payload.contentType) || isIdle(options)) return payload
  const sharp = await loadSharp().catch(error => {
    throw error instanceof UploadError
      ? new UploadError('delivery_failed', `Pictures can't be changed here: ${error.message}.`, {
          cause: error,
        })
      : error
  })
  return inTurn(payload, options, () => work(sharp, payload, options, deps), signal)
}

async function work(
  sharp: SharpModule,
  payload: Payload,
  options: PictureOptions,
  deps: ChangeDeps,
): Promise<Payload> {
  try {
    const picture = await look(sharp, payload, options)
    const target = targetOf(picture, options)
    if (!needsWork(picture, target, options)) return payload
    const bytes = await render(sharp, picture, target, options)
    if (!mustChange(picture, options) && !options.larger && bytes.length >= payload.size) return payload
    const extension = target === picture.source ? undefined : EXTENSIONS[target as Format]
    return await replace(payload, bytes, extension, deps)
  } catch (error) {
    if (error instanceof UploadError) throw error
    if (options.unreadable === 'keep') return payload
    throw unreadable(payload, error)
  }
}

/**
 * Waits for a turn and then for the result, but only as long as the time limit says. Encoders can't be stopped: what is
 * late keeps its turn until it ends, so that the number of those that run stays bounded.
 */
function inTurn(
  payload: Payload,
  options: PictureOptions,
  change: () => Promise<Payload>,
  signal: AbortSignal,
): Promise<Payload> {
  return new Promise((resolve, reject) => {
    const begin = async () => {
      let isLate = false
      const timer = setTimeout(() => {
        isLate = true
        reject(tooSlow(payload, options))
      }, options.timeoutMs)
      try {
        const changed = await change()
        if (!isLate) resolve(changed)
        else if (changed !== payload) await changed.dispose()
      } finally {
        clearTimeout(timer)
      }
    }
    turns.run(begin, signal).catch(reject)
  })
}

function isIdle({ format, quality, resize, rotate, flip, flop, orient, strip, watermark }: PictureOptions) {
  return !(format || quality || resize || rotate || flip || flop || orient || strip || watermark)
}

async function look(sharp: SharpModule, payload: Payload, options: PictureOptions): Promise<Looked> {
  const input = payload.path ?? (await payload.bytes())
  const settings: SharpOptions = { animated: true, limitInputPixels: false, failOn: 'error' }
  // Reads the header only.
  const meta = await sharp(input, settings).metadata()
  const pages = meta.pages ?? 1
  const pixels = meta.width * meta.height
  if (pixels > options.maxPixels) throw tooManyPixels(payload, pixels, options.maxPixels)
  const source = meta.format === 'heif' ? (meta.compression === 'av1' ? 'avif' : 'heic') : meta.format
  const frameHeight = meta.pageHeight ?? meta.height
  const isTurned = (meta.orientation ?? 1) > 4
  return {
    open: () =>
      sharp(input, { ...settings, limitInputPixels: options.maxPixels }).timeout({
        seconds: Math.ceil(options.timeoutMs / 1000),
      }),
    meta,
    source: source as SourceFormat,
    isAnimated: pages > 1,
    width: isTurned ? frameHeight : meta.width,
    height: isTurned ? meta.width : frameHeight,
  }
}

/** Animated pictures stay animated: only WebP takes what GIF holds. */
function targetOf({ source, isAnimated }: Looked, { format }: PictureOptions): SourceFormat {
  const wanted = typeof format === 'object' ? format[source] : format
  if (isAnimated) return wanted === 'webp' && source === 'gif' ? 'webp' : source
  return wanted ?? (source === 'heic' ? 'jpeg' : source)
}

function needsWork(picture: Looked, target: SourceFormat, options: PictureOptions): boolean {
  const resized = newSize(picture, options)
  return (
    target !== picture.source ||
    mustChange(picture, options) ||
    (options.quality !== undefined && target !== 'gif') ||
    resized !== undefined
  )
}

/** Whether the original would be wrong, however few bytes it has. */
function mustChange(picture: Looked, options: PictureOptions): boolean {
  const { meta, isAnimated } = picture
  const { exif, xmp, iptc, comments, orientation = 1 } = meta
  const turns = !isAnimated && (options.rotate ?? 0) % 360 !== 0
  return (
    turns ||
    (!isAnimated && (options.flip || options.flop)) ||
    options.watermark !== undefined ||
    newSize(picture, options) !== undefined ||
    (options.orient && orientation > 1) ||
    (options.strip && Boolean(exif ?? xmp ?? iptc ?? comments?.length)) ||
    picture.source === 'heic'
  )
}

/** undefined: the picture has its size already. */
function newSize(
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

async function render(
  sharp: SharpModule,
  picture: Looked,
  target: SourceFormat,
  options: PictureOptions,
): Promise<Buffer> {
  const { isAnimated } = picture
  const size = newSize(picture, options)
  if (size && size.width * size.height * (picture.meta.pages ?? 1) > options.maxPixels)
    throw new UploadError(
      'too_large',
      `A picture of ${size.width} x ${size.height} pixels would be too large (pictures.maxPixels).`,
    )
  let pipeline = picture.open().autoOrient()
  if (size) pipeline = pipeline.resize({ ...size, fit: 'fill' })
  if (!isAnimated) {
    if (options.rotate) pipeline = pipeline.rotate(options.rotate, { background: backgroundOf(target) })
    pipeline = pipeline.flip(options.flip).flop(options.flop)
  }
  if (options.watermark) {
    const { width, height } = size ?? picture
    const isTurned = !isAnimated && Math.abs((options.rotate ?? 0) % 180) === 90
    const frame = isTurned ? { width: height, height: width } : { width, height }
    const frames = isAnimated ? (picture.meta.pages ?? 1) : 1
    pipeline = pipeline.composite(await layOver(sharp, options.watermark, frame, frames))
  }
  pipeline = options.strip ? pipeline.keepIccProfile() : pipeline.keepMetadata()
  return encode(pipeline, target, target === picture.source, options.quality).toBuffer()
}

/** What shows in the corners of a picture that was turned. */
function backgroundOf(target: SourceFormat): string {
  return target === 'jpeg' ? '#ffffff' : '#ffffff00'
}

function encode(pipeline: Sharp, target: SourceFormat, isSame: boolean, quality: number | undefined): Sharp {
  const lossy = quality ?? (isSame ? SAME_QUALITY : undefined)
  const set = lossy === undefined ? {} : { quality: lossy }
  switch (target) {
    case 'jpeg':
      return pipeline.flatten({ background: '#ffffff' }).jpeg(set)
    case 'png':
      return pipeline.png(quality === undefined || quality === 100 ? {} : { quality, palette: true })
    case 'webp':
      return pipeline.webp(set)
    case 'avif':
      return pipeline.avif({ effort: AVIF_EFFORT, ...(quality !== undefined && { quality }) })
    case 'gif':
      return pipeline.gif()
    default:
      return pipeline.tiff(set)
  }
}

async function replace(
  { name, folders }: Payload,
  bytes: Buffer,
  extension: string | undefined,
  { payloads, spool, fileSize }: ChangeDeps,
): Promise<Payload> {
  const [base, old] = splitExtension(name)
  const writer = payloads.open({
    name: extension && old ? base + extension : name,
    folders,
    spool,
    limit: fileSize,
  })
  try {
    await writer.write(bytes)
    return await writer.finish()
  } catch (error) {
    await writer.abort()
    throw error
  }
}

function tooManyPixels({ name }: Payload, pixels: number, most: number): UploadError {
  const millions = (count: number) => `${+(count / 1e6).toFixed(1)} million`
  return new UploadError(
    'too_large',
    `"${name || 'The picture'}" has ${millions(pixels)} pixels, more than the ${millions(most)} that are worked on here (pictures.maxPixels).`,
  )
}

function tooSlow({ name }: Payload, { timeoutMs }: PictureOptions): UploadError {
  const what = `"${name || 'The picture'}"`
  return new UploadError(
    'source_failed',
    `${what} could not be changed within ${timeoutMs / 1000} s (pictures.timeoutMs). Send a smaller one.`,
  )
}

function unreadable({ name, contentType }: Payload, error: unknown): UploadError {
  const reason = error instanceof Error ? error.message.split('\n')[0] : String(error)
  const what = `"${name || 'The picture'}"`
  const hint = /hei[cf]/.test(contentType)
    ? 'HEIC as phones take it can only be read by a sharp that was built with its decoder. Send JPEG'
    : 'Send it whole'
  return new UploadError(
    'source_failed',
    `${what} can't be read as a picture (${reason}). ${hint}, or have it stored as it is by "pictures.unreadable": "keep".`,
    { cause: error },
  )
}
