import { UploadError } from '../errors.ts'
import { beginTimeLimit } from '../flow/time-limit.ts'
import { readDimensions } from '../payload/dimensions.ts'
import { sniffType } from '../payload/sniff.ts'
import { LOADERS, type PictureAnswer } from './job.ts'
import { pictureSchema } from './options.ts'
import { runInProcess, turns } from './processes.ts'

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
  const options = pictureSchema.parse({
    resize: { width: most, height: most },
    format: 'webp',
    quality: 85,
    stripMetadata: true,
  })
  const { contentType } = sniffType(input)
  const size = readDimensions(Buffer.from(input.buffer, input.byteOffset, input.length))
  const isSmall = Math.max(size?.width ?? Infinity, size?.height ?? Infinity) <= most
  if (isSmall || !(contentType in LOADERS)) return undefined
  const job = { name: '', contentType, size: input.length, input, options }
  return turns.run(async () => {
    const limit = beginTimeLimit(options.timeout, signal, () => new Error('the time for it is over'))
    try {
      return await runInProcess(job, receive, limit.signal)
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof UploadError && error.code === 'destination_failed') throw error
      return undefined
    } finally {
      limit.end()
    }
  }, signal)
}

async function receive({ is }: Pick<PictureAnswer, 'is'>, bytes: AsyncIterable<Uint8Array>) {
  if (is !== 'changed') return undefined
  const chunks: Uint8Array[] = []
  for await (const chunk of bytes) chunks.push(chunk)
  return Buffer.concat(chunks)
}
