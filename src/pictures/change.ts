import { Readable } from 'node:stream'
import { readAll } from '../body.ts'
import { UploadError } from '../errors.ts'
import { splitExtension } from '../payload/file-name.ts'
import type { Payload, Payloads } from '../payload/index.ts'
import type { Spool } from '../payload/spool.ts'
import { LOADERS } from './job.ts'
import type { PictureOptions } from './options.ts'
import { runJob, TooLate } from './processes.ts'

export interface ChangeDeps {
  readonly payloads: Payloads
  readonly spool: Spool
  /** Maximum file size, bytes. */
  readonly fileSize: number
}

/**
 * Changes an image as the options say. Returns the payload unchanged if it is not an image, or if there is nothing to do
 * or to gain.
 *
 * @throws UploadError `source_failed` for an image that can't be read or takes too long, `overloaded` for one that was
 *   queued for too long, `too_large` for one with too many pixels, `destination_failed` if sharp is not installed
 */
export async function changePicture(
  payload: Payload,
  options: PictureOptions,
  { payloads, spool, fileSize }: ChangeDeps,
  signal: AbortSignal,
): Promise<Payload> {
  if (!isWanted(payload, options)) return payload
  const { name, folders, contentType, size, path } = payload
  const makeJob = async () => {
    const input = path ?? (await readAll(payload, signal))
    return { name, contentType, size, input, options }
  }
  try {
    const result = await runJob(makeJob, options.timeout, signal)
    if (result.is !== 'changed') return payload
    const { bytes, extension } = result
    const [base, old] = splitExtension(name)
    const newName = extension && old ? base + extension : name
    return await payloads.read(Readable.from([bytes]), { name: newName, folders, spool, limit: fileSize })
  } catch (error) {
    if (error instanceof UploadError || signal.aborted) throw error
    if (error instanceof TooLate) throw error.wasQueued ? tooLate(payload) : tooSlow(payload, options)
    if (options.unreadable === 'keep') return payload
    throw unreadable(payload, error)
  }
}

/** For an animated PNG, only the metadata can be removed. */
function isWanted({ contentType }: Payload, options: PictureOptions): boolean {
  const { format, quality, resize, orient, stripMetadata, watermark } = options
  if (contentType === 'image/apng') return stripMetadata
  const isIdle = !(format || quality || resize || orient || stripMetadata || watermark)
  return contentType in LOADERS && !isIdle
}

function tooSlow({ name }: Payload, { timeout }: PictureOptions): UploadError {
  const what = `"${name || 'The image'}"`
  return new UploadError(
    'source_failed',
    `${what} could not be processed within ${timeout / 1000} s (images.timeout). Send a smaller image.`,
  )
}

function tooLate({ name }: Payload): UploadError {
  const what = `"${name || 'The image'}"`
  const message = `${what} was queued for too long, because the server is processing too many images (images.timeout). Try again in a moment.`
  return new UploadError('overloaded', message, { retryAfterS: 5 })
}

function unreadable({ name }: Payload, error: unknown): UploadError {
  const reason = error instanceof Error ? error.message.split('\n')[0] : String(error)
  const what = `"${name || 'The image'}"`
  return new UploadError(
    'source_failed',
    `${what} could not be decoded as an image (${reason}). Send an intact file, or set "images.unreadable" to "keep" to store such files unchanged.`,
    { cause: error },
  )
}
