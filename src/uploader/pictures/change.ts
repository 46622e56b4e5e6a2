import { UploadError } from '../../errors.ts'
import { splitExtension } from '../file-name.ts'
import type { Payload, Payloads } from '../payload.ts'
import { createSlots } from '../slots.ts'
import type { Spool } from '../spool.ts'
import { withoutMetadata } from './apng.ts'
import { loadSharp, type SharpModule } from './load.ts'
import { look, mustChange, needsWork, targetOf } from './look.ts'
import type { Format, PictureOptions } from './options.ts'
import { render } from './render.ts'

/** Pictures that are worked on at the same time: each may take 8 bytes for every pixel. */
const AT_ONCE = 2

const TYPES = /^image\/(?:jpeg|png|webp|gif|tiff|avif|heic|heif|heic-sequence|heif-sequence|avis)$/

const EXTENSIONS: Record<Format, string> = { webp: '.webp', avif: '.avif', jpeg: '.jpg', png: '.png' }

const turns = createSlots(AT_ONCE, Number.POSITIVE_INFINITY)

export interface ChangeDeps {
  readonly payloads: Payloads
  readonly spool: Spool
  /** Largest file, bytes. */
  readonly fileSize: number
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
  if (payload.contentType === 'image/apng' && options.strip) return stripAnimatedPng(payload, options, deps)
  if (!TYPES.test(payload.contentType) || isIdle(options)) return payload
  const sharp = await loadSharp()
  return inTurn(payload, options, () => work(sharp, payload, options, deps), signal)
}

async function stripAnimatedPng(
  payload: Payload,
  options: PictureOptions,
  deps: ChangeDeps,
): Promise<Payload> {
  let bytes: Buffer | undefined
  try {
    bytes = withoutMetadata(await payload.bytes())
  } catch (error) {
    if (options.unreadable === 'keep') return payload
    throw unreadable(payload, error)
  }
  return bytes === undefined ? payload : replace(payload, bytes, undefined, deps)
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

function tooSlow({ name }: Payload, { timeoutMs }: PictureOptions): UploadError {
  const what = `"${name || 'The picture'}"`
  return new UploadError(
    'source_failed',
    `${what} could not be changed within ${timeoutMs / 1000} s (pictures.timeoutMs). Send a smaller one.`,
  )
}

function unreadable({ name }: Payload, error: unknown): UploadError {
  const reason = error instanceof Error ? error.message.split('\n')[0] : String(error)
  const what = `"${name || 'The picture'}"`
  return new UploadError(
    'source_failed',
    `${what} can't be read as a picture (${reason}). Send it whole, or have it stored as it is by "pictures.unreadable": "keep".`,
    { cause: error },
  )
}
