import type { Context } from '../context.ts'
import { findEntries } from '../entries.ts'
import { INTERRUPTION } from '../result.ts'
import { type Sender, type Sent, sendAll } from '../sending/sender.ts'
import type { Picture, StoredPicture } from './move-pictures.ts'

/** Where the images of notes are handed in. */
export interface Desk {
  /** One answer for each, in order. */
  store(pictures: readonly Picture[]): Promise<readonly StoredPicture[]>
  /** Steps after the uploads that have failed. */
  readonly unfinished: Sent['unfinished']
}

/** @param from hosts whose images are moved */
export function createDesk(
  sender: Sender,
  from: readonly string[],
  context: Pick<Context, 'cwd' | 'platform'>,
  signal: AbortSignal,
): Desk {
  const unfinished: Sent['unfinished'][number][] = []
  return {
    unfinished,
    async store(pictures) {
      const entries = await findEntries(pictures.map(String), { isLiteral: true, isTrusted: true }, context)
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
function checkIsElsewhere(stored: readonly StoredPicture[], from: readonly string[]): void {
  for (const one of stored) {
    const { host = '', hostname = '' } = 'url' in one ? new URL(one.url) : {}
    if (from.includes(host) || from.includes(hostname))
      throw new Error(
        `The destination stores its files on ${host}, too. Choose another destination with --destination.`,
      )
  }
}
