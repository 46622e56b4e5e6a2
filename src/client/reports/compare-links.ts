import { messageOf, UploadError } from '../../errors.ts'
import { mapConcurrently } from '../../flow/map-concurrently.ts'
import { oneLine } from '../../safe-text.ts'
import type { Context } from '../context.ts'
import type { FetchLink } from '../fetch-link.ts'
import type { FindDifference } from './compare.ts'
import { type Review, type ReviewRow, sortRows } from './review.ts'

export interface LinkOptions {
  readonly findDifference: FindDifference
  readonly fetch: FetchLink
  /** Percentage of changed pixels up to which an image counts as the same. */
  readonly threshold: number
}

/** Pairs that are fetched at the same time. */
const AT_ONCE = 4
/** Larger files count as changed. Bytes. */
const MOST_BYTES = 64 * 1024 * 1024

/** After so many failures, no more images are fetched. */
const MOST_FAULTS = 10

/** Compares the pixels of uploaded images that have changed. Images that can't be fetched or decoded stay as they are. */
export async function comparePixels(
  review: Review,
  { findDifference, fetch, threshold }: LinkOptions,
  { note }: Pick<Context, 'note'>,
  signal: AbortSignal,
): Promise<Review> {
  const faults: string[] = []
  const rows = await mapConcurrently(review.rows, AT_ONCE, async (row): Promise<ReviewRow> => {
    const { state, before, after } = row
    if (state !== 'changed' || !before?.url || !after?.url) return row
    if (faults.length >= MOST_FAULTS || signal.aborted) return row
    try {
      const old = await fetch(before.url, MOST_BYTES, signal)
      const present = await fetch(after.url, MOST_BYTES, signal)
      // Nothing is drawn, because there is no destination to store it at.
      const found = old && present && (await findDifference(old, present, signal, { drawnFrom: Infinity }))
      if (!found) return row
      const { share } = found
      if (share * 100 <= threshold) return { name: row.name, state: 'same', after }
      return { ...row, share, before: { ...before, ...found.before }, after: { ...after, ...found.after } }
    } catch (error) {
      if (!(error instanceof UploadError) && !signal.aborted) throw error
      faults.push(messageOf(error))
      return row
    }
  })
  for (const fault of new Set(faults)) note(oneLine(`${fault} Images are compared by their hashes.`))
  return { ...review, rows: sortRows(rows) }
}
