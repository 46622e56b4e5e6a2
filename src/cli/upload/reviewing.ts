import { resolve } from 'node:path'
import { openComment, type ShownBy, TITLE } from '../../client/comments/comment.ts'
import { type ReportLink, toBody } from '../../client/comments/comment-body.ts'
import { findJob, runOf } from '../../client/comments/pull-request.ts'
import { type Entry, entryOfBytes } from '../../client/entries.ts'
import { showsPage } from '../../client/fetch-link.ts'
import { type EarlierImages, type Prepared, prepareReview } from '../../client/reports/compare.ts'
import { findBaseline, findEarlier, toBaseline } from '../../client/reports/earlier.ts'
import { readMasks } from '../../client/reports/masks.ts'
import { hasTriples } from '../../client/reports/pairs.ts'
import { renderReport } from '../../client/reports/report-page.ts'
import { cantWrite } from '../../client/reports/reports.ts'
import { countsOf, type Review, toReview, totalsOf } from '../../client/reports/review.ts'
import { SUMMARY_BYTES } from '../../client/reports/summary.ts'
import type { Result } from '../../client/result.ts'
import { type Uploads, uploadAll } from '../../client/uploads.ts'
import { messageOf } from '../../errors.ts'
import { replaceFile } from '../../files/replace-file.ts'
import { comparePictures } from '../../pictures/compare.ts'
import { makeSmall } from '../../pictures/small.ts'
import type { commentFlags } from '../comment/index.ts'
import type { compareFlags } from '../compare-flags.ts'
import type { OptionsOf } from '../define.ts'
import { oneLine, type Terminal } from '../terminal.ts'
import type { flags } from './index.ts'

/** The comparison of an upload with earlier images, its report and its comment, in the order of the calls. */
export interface Reviewing {
  /** Finds the baseline, and compares the files. */
  compare(entries: readonly Entry[], uploads: Uploads, note: Terminal['note']): Promise<void>
  /** Uploads what shows the differences, the new baseline, and the report. */
  uploadMore(results: readonly Result[], uploads: Uploads): Promise<void>
  /** Markdown with the comparison, for the summary of the job. Undefined if nothing was compared. */
  summarize(results: readonly Result[]): string | undefined
  /** Writes the comment. @returns false if something could not be written; the error has been noted */
  conclude(results: readonly Result[]): Promise<boolean>
  /** Whether there are differences that `--fail-on` names. */
  isRejected(): boolean
}

export type ReviewOptions = Partial<
  Pick<OptionsOf<typeof flags>, keyof typeof compareFlags | keyof typeof commentFlags | 'comment' | 'server'>
>

/** Checks the options, and finds the earlier images that need no server. @throws Error */
export async function openReviewing(
  options: ReviewOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<Reviewing> {
  const { compare, baseline, comment, threshold = 0, failOn = [], updateBaseline = 'auto' } = options
  const job = await findJob(terminal.env)
  const write = comment ? await openComment(options, job, terminal) : undefined
  const hosts = options.server === undefined ? [] : [new URL(options.server).host]
  const named = compare === undefined ? undefined : await findEarlier(compare, hosts, terminal, signal)
  const masks = options.masks === undefined ? undefined : await readMasks(options.masks, terminal)
  const run = runOf(job)
  const title = options.commentTitle ?? TITLE
  const isStored = updateBaseline === 'always' || (updateBaseline === 'auto' && job?.isMain === true)
  let prepared: Prepared | undefined
  let review: Review | undefined
  let report: ReportLink | undefined
  let rejection: string | undefined
  let shownBy: ShownBy
  let hasFailed = false

  async function storeBaseline(name: string, results: readonly Result[], uploads: Uploads): Promise<void> {
    const list = review && toBaseline(name, review, results, updateBaseline === 'always', terminal)
    const [stored] = list ? await uploadAll(uploads, [list], signal) : []
    if (stored?.error === undefined) return
    hasFailed = true
    terminal.note(oneLine(terminal.mask(`The baseline "${name}" was not stored: ${stored.error}`)))
  }

  async function storeReport(file: string, results: readonly Result[], uploads: Uploads): Promise<void> {
    const page = await renderReport(title, review ?? toReview(results, run))
    try {
      const path = resolve(terminal.cwd, file)
      await replaceFile(path, page, terminal.cwd).catch(cantWrite('--report', file))
    } catch (error) {
      hasFailed = true
      terminal.note(messageOf(error))
    }
    const entry = entryOfBytes('report.html', Buffer.from(page))
    const [{ url, error = '' } = {}] = await uploadAll(uploads, [entry], signal)
    if (url === undefined) terminal.note(oneLine(terminal.mask(`The report was not uploaded: ${error}`)))
    else terminal.note(`Report: ${oneLine(url)}`)
    report = { file, url, isPage: url !== undefined && (await showsPage(url, terminal, signal)) }
  }

  return {
    async compare(entries, uploads, note) {
      const context = { env: terminal.env, note }
      try {
        const stored = baseline && (await findBaseline(baseline, uploads, hosts, context, signal))
        const earlier =
          stored || named || (hasTriples(entries) || entries.length === 0 ? NO_IMAGES : undefined)
        const how = { findDifference: comparePictures, makeSmall, threshold, masks, run }
        prepared = earlier && (await prepareReview(earlier, entries, how, context, signal))
      } catch (error) {
        // The upload tells which exit code it is.
        hasFailed = true
        note(oneLine(terminal.mask(messageOf(error))))
      }
    },
    async uploadMore(results, uploads) {
      const more = await uploadAll(uploads, prepared?.entries ?? [], signal)
      review = prepared?.conclude(results, more)
      if (signal.aborted) return
      if (baseline !== undefined && isStored) await storeBaseline(baseline, results, uploads)
      if (options.report !== undefined) await storeReport(options.report, results, uploads)
    },
    summarize(results) {
      return review && toBody({ title, run, report }, results, review, SUMMARY_BYTES)
    },
    async conclude(results) {
      if (review?.baseline && !signal.aborted)
        terminal.note(oneLine(`Compared with ${review.baseline.name}: ${totalsOf(review)}.`))
      try {
        rejection = findRejection(review, failOn.flat())
        shownBy = await write?.({ results, review, report, rejection }, signal)
      } catch (error) {
        hasFailed = true
        terminal.note(oneLine(terminal.mask(`Could not write the comment: ${messageOf(error)}`)))
      }
      return !hasFailed
    },
    isRejected() {
      if (rejection !== undefined) terminal.note(`--fail-on: ${rejection}${SHOWN_BY[shownBy ?? 'exit']}.`)
      return rejection !== undefined && shownBy === undefined
    },
  }
}

const SHOWN_BY = { review: ', reviewed', status: ', as the commit status says', exit: '' }

/** The differences that `--fail-on` names. */
function findRejection(review: Review | undefined, words: readonly string[]): string | undefined {
  const counts = Object.entries(review ? countsOf(review) : {}).filter(([word]) => words.includes(word))
  const found = counts.flatMap(([word, count]) => (count > 0 ? [`${count} ${word}`] : []))
  return found.length > 0 ? found.join(' · ') : undefined
}

const NO_IMAGES: EarlierImages = { images: [] }
