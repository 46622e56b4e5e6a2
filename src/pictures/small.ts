import { buffer } from 'node:stream/consumers'
import { readDimensions } from '../payload/dimensions.ts'
import { runForClient, toJob } from './compare.ts'
import { LOADERS } from './job.ts'
import { pictureSchema } from './options.ts'

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
  return runForClient(
    job,
    options,
    async ({ is }, bytes) => (is === 'changed' ? buffer(bytes) : undefined),
    signal,
  )
}
