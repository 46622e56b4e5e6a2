import { isAt } from '../../http/addresses.ts'
import type { Context } from '../context.ts'
import { findEntries } from '../entries.ts'
import { INTERRUPTION } from '../result.ts'
import { type Sender, type Sent, sendAll } from '../sending/sender.ts'
import type { ImageSource, StoredImage } from './upload-images.ts'

/** Uploads the images of notes through a sender. */
export interface ImageUploads {
  /** Returns one outcome for each image, in order. */
  store(images: readonly ImageSource[]): Promise<readonly StoredImage[]>
  /** Uploads whose post-upload steps failed. */
  readonly unfinished: Sent['unfinished']
}

/** @param from hosts whose images are moved */
export function createImageUploads(
  sender: Sender,
  from: readonly string[],
  context: Pick<Context, 'cwd' | 'platform'>,
  signal: AbortSignal,
): ImageUploads {
  const unfinished: Sent['unfinished'][number][] = []
  return {
    unfinished,
    async store(images) {
      const entries = await findEntries(images.map(String), { isLiteral: true, isTrusted: true }, context)
      const sent = await sendAll(sender, entries, signal)
      unfinished.push(...sent.unfinished)
      const stored = sent.results.map(({ url, error = INTERRUPTION }) =>
        url === undefined ? { error } : { url },
      )
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
