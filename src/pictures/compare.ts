import { UploadError } from '../errors.ts'
import { createSlots } from '../flow/slots.ts'
import { beginTimeLimit } from '../flow/time-limit.ts'
import { sniffType } from '../payload/sniff.ts'
import { LOADERS, type PictureJob, type PixelDifference } from './job.ts'
import { type PictureOptions, pictureSchema } from './options.ts'
import { runInProcess } from './processes.ts'

/** Comparisons take less memory one after the other: 512 pairs of screenshots take 20 s so. */
const oneByOne = createSlots(1, Number.POSITIVE_INFINITY)

export interface Difference extends PixelDifference {
  /** A PNG that shows the changed pixels. Undefined if no pixel has changed, or fewer than `drawnFrom`. */
  readonly image?: Uint8Array
}

export interface DifferenceOptions {
  /** Share of changed pixels from which on the difference is drawn, 0 to 1. Default: 0. */
  readonly drawnFrom?: number
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
  { drawnFrom = 0 }: DifferenceOptions = {},
): Promise<Difference | undefined> {
  const options = pictureSchema.parse({})
  const job = { before: toJob(before, options), after: toJob(after, options), drawnFrom }
  if (![job.before, job.after].every(({ contentType }) => contentType in LOADERS)) return undefined
  return oneByOne.run(async () => {
    const limit = beginTimeLimit(options.timeout, signal, () => new Error('the time for it is over'))
    try {
      return await runInProcess(
        job,
        async (answer, bytes) => {
          if (answer.is !== 'compared') return undefined
          const chunks: Uint8Array[] = []
          for await (const chunk of bytes) chunks.push(chunk)
          return { ...answer.difference, ...(chunks.length > 0 && { image: Buffer.concat(chunks) }) }
        },
        limit.signal,
      )
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof UploadError && error.code === 'destination_failed') throw error
      return undefined
    } finally {
      limit.end()
    }
  }, signal)
}

function toJob(input: Uint8Array, options: PictureOptions): PictureJob {
  return { name: '', contentType: sniffType(input).contentType, size: input.length, input, options }
}
