import { isAt } from '../../http/addresses.ts'
import type { Entry } from '../entries.ts'
import { INTERRUPTION, type Result } from '../result.ts'
import { type Uploads, uploadAll } from '../uploads.ts'
import type { StoredImage } from './upload-images.ts'

/** Uploads the images of notes. */
export interface ImageUploads {
  /** Returns one outcome for each image, in order. */
  store(images: readonly Entry[]): Promise<readonly StoredImage[]>
  /** The results of all images. */
  readonly results: readonly Result[]
}

/** @param from hosts whose images are moved */
export function createImageUploads(
  uploads: Uploads,
  from: readonly string[],
  signal: AbortSignal,
): ImageUploads {
  const results: Result[] = []
  return {
    results,
    async store(images) {
      const found = await uploadAll(uploads, images, signal)
      results.push(...found)
      const stored = found.map(({ url, error = INTERRUPTION }) => (url === undefined ? { error } : { url }))
      checkIsElsewhere(stored, from)
      return stored
    },
  }
}

/** Links to the host that the images were taken from would be moved again by each run. */
function checkIsElsewhere(stored: readonly StoredImage[], from: readonly string[]): void {
  for (const one of stored) {
    const url = 'url' in one ? new URL(one.url) : undefined
    if (url && isAt(from, url))
      throw new Error(
        `The destination stores its files on ${url.host}, too. Choose another destination with --destination.`,
      )
  }
}
