import { openComment } from '../../client/comments/comment.ts'
import { findJob } from '../../client/comments/pull-request.ts'
import type { Entry } from '../../client/entries.ts'
import {
  type EarlierImages,
  type FindDifference,
  type Prepared,
  prepareReview,
} from '../../client/reports/compare.ts'
import { findBaseline, findEarlier, toBaseline } from '../../client/reports/earlier.ts'
import { hasTriples } from '../../client/reports/pairs.ts'
import { toRun } from '../../client/reports/read-results.ts'
import { countsOf, type Review, totalsOf } from '../../client/reports/review.ts'
import type { Result } from '../../client/result.ts'
import { type Uploads, uploadAll } from '../../client/uploads.ts'
import { messageOf } from '../../errors.ts'
import { comparePictures } from '../../pictures/compare.ts'
import type { OptionsOf } from '../define.ts'
import { oneLine, type Terminal } from '../terminal.ts'
import type { flags } from './index.ts'

/** The comparison of an upload with earlier images, and its comment, in the order of the calls. */
export interface Reviewing {
  /** Finds the baseline, and compares the files. */
  compare(entries: readonly Entry[], uploads: Uploads, note: Terminal['note']): Promise<void>
  /** Uploads what shows the differences, and the new baseline. */
  uploadMore(results: readonly Result[], uploads: Uploads): Promise<void>
  /** Writes the comment. @returns false if something could not be written; the error has been noted */
  conclude(results: readonly Result[]): Promise<boolean>
  /** Whether there are differences that `--fail-on` names. */
  isRejected(): boolean
}

/** Checks the options, and finds the earlier images that need no server. @throws Error */
export async function openReviewing(
  options: OptionsOf<typeof flags>,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<Reviewing> {
  const { compare, baseline, comment, threshold = 0, failOn = [], updateBaseline = 'auto' } = options
  const job = await findJob(terminal.env)
  const write = comment ? await openComment(options, job, terminal) : undefined
  const hosts = options.server === undefined ? [] : [new URL(options.server).host]
  const named = compare === undefined ? undefined : await findEarlier(compare, hosts, terminal, signal)
  const run = toRun({ commit: job?.commit, url: job?.page, id: job?.id })
  const isStored = updateBaseline === 'always' || (updateBaseline === 'auto' && job?.isMain === true)
  let prepared: Prepared | undefined
  let more: readonly Result[] = []
  let review: Review | undefined
  let hasFailed = false

  async function storeBaseline(name: string, results: readonly Result[], uploads: Uploads): Promise<void> {
    const now = prepared?.conclude(results, more)
    const list = now && toBaseline(name, now, results, updateBaseline === 'always', terminal)
    const [stored] = list ? await uploadAll(uploads, [list], signal) : []
    if (stored?.error === undefined) return
    hasFailed = true
    terminal.note(oneLine(terminal.mask(`The baseline "${name}" was not stored: ${stored.error}`)))
  }

  return {
    async compare(entries, uploads, note) {
      const context = { env: terminal.env, note }
      try {
        const stored = baseline && (await findBaseline(baseline, uploads, hosts, context, signal))
        const earlier = stored || named || (hasTriples(entries) ? NO_IMAGES : undefined)
        const how = { findDifference, threshold, run }
        prepared = earlier && (await prepareReview(earlier, entries, how, context, signal))
      } catch (error) {
        // The upload tells which exit code it is.
        hasFailed = true
        note(oneLine(terminal.mask(messageOf(error))))
      }
    },
    async uploadMore(results, uploads) {
      more = await uploadAll(uploads, prepared?.entries ?? [], signal)
      if (baseline !== undefined && isStored && !signal.aborted)
        await storeBaseline(baseline, results, uploads)
    },
    async conclude(results) {
      review = prepared?.conclude(results, more)
      if (review?.baseline && !signal.aborted)
        terminal.note(oneLine(`Compared with ${review.baseline.name}: ${totalsOf(review)}.`))
      try {
        await write?.(results, review, signal)
      } catch (error) {
        hasFailed = true
        terminal.note(oneLine(terminal.mask(`Could not write the comment: ${messageOf(error)}`)))
      }
      return !hasFailed
    },
    isRejected() {
      const words = failOn.flat()
      const counts = Object.entries(review ? countsOf(review) : {}).filter(([word]) => words.includes(word))
      const found = counts.flatMap(([word, count]) => (count > 0 ? [`${count} ${word}`] : []))
      if (found.length > 0) terminal.note(`--fail-on: ${found.join(' · ')}.`)
      return found.length > 0
    },
  }
}

const NO_IMAGES: EarlierImages = { images: [] }

const findDifference: FindDifference = comparePictures
