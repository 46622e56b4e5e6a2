import { UploadError } from '../errors.ts'
import { type Area, readDimensions } from '../payload/dimensions.ts'
import { sniffType } from '../payload/sniff.ts'
import { type CompareJob, type Difference, LOADERS, type PictureJob, type PictureResult } from './job.ts'
import { type PictureOptions, pictureSchema } from './options.ts'
import { runJob } from './processes.ts'

export interface DifferenceOptions {
  /** Share of changed pixels from which on the difference is drawn, 0 to 1. Default: 0. */
  readonly drawnFrom?: number
  /** Parts that are not compared, in both images. */
  readonly masks?: readonly Area[]
}

/**
 * Compares two images by their decoded pixels. Differences by anti-aliasing alone don't count.
 *
 * @returns undefined if they can't be decoded, have too many pixels, or take too long
 * @throws UploadError `destination_failed` if sharp is not installed; the reason of the signal
 */
export async function comparePictures(
  before: Uint8Array,
  after: Uint8Array,
  signal: AbortSignal,
  { drawnFrom = 0, masks = [] }: DifferenceOptions = {},
): Promise<Difference | undefined> {
  const options = pictureSchema.parse({})
  const job = { before: toJob(before, options), after: toJob(after, options), drawnFrom, masks }
  if (![job.before, job.after].every(({ contentType }) => contentType in LOADERS)) return undefined
  const result = await runForClient(job, options, signal)
  return result?.is === 'compared' ? result.difference : undefined
}

/**
 * Makes a smaller copy of an image, as WebP.
 *
 * @param most width and height, pixels
 * @returns undefined if the image is small enough, or can't be decoded
 * @throws UploadError `destination_failed` if sharp is not installed; the reason of the signal
 */
export async function makeSmall(
  input: Uint8Array,
  most: number,
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  const resize = { width: most, height: most }
  const options = pictureSchema.parse({ resize, format: 'webp', quality: 85, stripMetadata: true })
  const job = toJob(input, options)
  const size = readDimensions(Buffer.from(input.buffer, input.byteOffset, input.length))
  const isSmall = Math.max(size?.width ?? Infinity, size?.height ?? Infinity) <= most
  if (isSmall || !(job.contentType in LOADERS)) return undefined
  const result = await runForClient(job, options, signal)
  return result?.is === 'changed' ? result.bytes : undefined
}

/** @returns undefined if the images can't be decoded, have too many pixels, or take too long */
async function runForClient(
  job: PictureJob | CompareJob,
  { timeout }: PictureOptions,
  signal: AbortSignal,
): Promise<PictureResult | undefined> {
  try {
    return await runJob(() => job, timeout, signal)
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof UploadError && error.code === 'destination_failed') throw error
    return undefined
  }
}

function toJob(input: Uint8Array, options: PictureOptions): PictureJob {
  return { name: '', contentType: sniffType(input).contentType, size: input.length, input, options }
}
