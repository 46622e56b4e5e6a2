import { resolve } from 'node:path'
import { runIdOf } from '../client/ci-run.ts'
import { findJob, runOf } from '../client/comments/ci-job.ts'
import { commentNameOf, openComment, type ShownBy, TITLE } from '../client/comments/comment.ts'
import { type ReportLink, toBody } from '../client/comments/comment-body.ts'
import { entryOfBytes } from '../client/entries.ts'
import { createFetch } from '../client/fetch-link.ts'
import { type Prepared, prepareReview } from '../client/reports/compare.ts'
import { type FetchList, findBaseline, findEarlier, toBaseline } from '../client/reports/earlier.ts'
import type { EarlierImages, Image } from '../client/reports/images.ts'
import { readMasks } from '../client/reports/masks.ts'
import { hasTriples } from '../client/reports/pairs.ts'
import { MOST_LIST_BYTES } from '../client/reports/read-results.ts'
import { renderReport } from '../client/reports/report-page.ts'
import { cantWrite } from '../client/reports/reports.ts'
import {
  countsOf,
  isComparison,
  missingShardsOf,
  type Review,
  toReview,
  totalsOf,
} from '../client/reports/review.ts'
import { publishShards, type Shard } from '../client/reports/shards.ts'
import { SUMMARY_BYTES } from '../client/reports/summary.ts'
import type { Result } from '../client/result.ts'
import { type SoughtFile, type Uploads, uploadAll } from '../client/uploads.ts'
import { messageOf } from '../errors.ts'
import { replaceFile } from '../files/replace-file.ts'
import { comparePictures, makeSmall } from '../pictures/compare.ts'
import type { OptionsOf } from './define.ts'
import type { reviewFlags } from './review-flags.ts'
import { oneLine, type Terminal } from './terminal.ts'

export type ReviewOptions = Partial<OptionsOf<typeof reviewFlags>> & {
  /** Whether to write a comment. */
  readonly comment?: boolean
  readonly server?: string
  readonly shard?: Shard
  /** Identifies the run of all shards. Default: that of the CI provider. */
  readonly job?: string
}

/** What a command does with its images. */
export interface Reviewed {
  /** Of the images themselves. */
  readonly results: readonly Result[]
  /** Markdown of the comment. @param mostBytes default: those of a comment */
  toMarkdown(mostBytes?: number): string
  /** Markdown for the summary of the job. Undefined if nothing was compared. */
  readonly summary?: string | undefined
  /** Whether something could not be compared or written. The reason has been noted. */
  readonly hasFailed: boolean
  /** Whether there are differences that `--fail-on` names, and nothing but the exit code tells them. */
  readonly isRejected: boolean
}

interface ToReview {
  readonly images: readonly Image[]
  /** Where the baseline is. Undefined if no destination is named. */
  readonly uploads: Uploads | undefined
  /** Whether nothing is uploaded or written. */
  readonly isDryRun?: boolean
  /** Uploads the images, after they were compared. */
  store(): Promise<readonly Result[]>
}

/** Compares images with earlier ones, has them uploaded, and shows them in a comment, a report and a status. */
export type ReviewImages = (what: ToReview) => Promise<Reviewed>

/** Checks the options, and finds the earlier images that need no server. @throws Error */
export async function openReviewing(
  options: ReviewOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<ReviewImages> {
  const { compare, baseline, server, shard, threshold = 0, failOn = [], updateBaseline = 'auto' } = options
  const job = await findJob(terminal.env)
  const run = runOf(job)
  const runId = options.job ?? runIdOf(terminal.env)
  if (shard && runId === undefined)
    throw new Error(
      '--shard: this is not a job of a supported CI provider. Pass the same --job ID to all shards.',
    )
  const write = options.comment ? await openComment(options, job, terminal) : undefined
  const fetchList: FetchList = (link, signal) =>
    createFetch(terminal, server, [new URL(link).host])(link, MOST_LIST_BYTES, signal)
  const named = compare === undefined ? undefined : await findEarlier(compare, fetchList, terminal, signal)
  const masks = options.masks === undefined ? undefined : await readMasks(options.masks, terminal)
  const title = options.commentTitle ?? TITLE
  const isStored = updateBaseline === 'always' || (updateBaseline === 'auto' && job?.isMain === true)
  let hasFailed = false
  const say = (message: string) => terminal.note(oneLine(terminal.mask(message)))
  const fail = (message: string) => {
    hasFailed = true
    say(message)
  }

  async function prepare({ images, uploads, isDryRun }: ToReview): Promise<Prepared | undefined> {
    const stored =
      baseline && uploads && (await findBaseline(baseline, uploads, fetchList, terminal.note, signal))
    const earlier = stored || named || (hasTriples(images) || images.length === 0 ? NO_IMAGES : undefined)
    if (earlier === undefined) return undefined
    const how = {
      ...{ findDifference: comparePictures, threshold, masks, run },
      makeSmall: uploads && !isDryRun ? makeSmall : undefined,
      fetch: createFetch(terminal, server, earlier.host === undefined ? [] : [earlier.host]),
      find: stored && uploads ? (files: readonly SoughtFile[]) => uploads.find(files, signal) : undefined,
      note: say,
    }
    return prepareReview(earlier, images, how, signal)
  }

  async function storeBaseline(name: string, review: Review, uploads: Uploads): Promise<void> {
    const list = toBaseline(name, review, updateBaseline === 'always', terminal.note)
    const [stored] = list ? await uploadAll(uploads, [list], signal) : []
    if (stored?.error !== undefined) fail(`The baseline "${name}" was not stored: ${stored.error}`)
  }

  async function storeReport(
    file: string,
    review: Review,
    uploads: Uploads | undefined,
  ): Promise<ReportLink> {
    const page = await renderReport(title, review)
    try {
      const path = resolve(terminal.cwd, file)
      await replaceFile(path, page, terminal.cwd).catch(cantWrite('--report', file))
    } catch (error) {
      fail(messageOf(error))
    }
    if (!uploads) return { file }
    const entry = entryOfBytes('report.html', Buffer.from(page))
    const [{ url, error = '' } = {}] = await uploadAll(uploads, [entry], signal)
    say(url === undefined ? `The report was not uploaded: ${error}` : `Report: ${url}`)
    return { file, url }
  }

  /** Stores and writes everything that shows a review: that of this job, or those of several shards. */
  async function publish(
    review: Review,
    uploads: Uploads | undefined,
  ): Promise<Pick<Reviewed, 'toMarkdown' | 'summary' | 'isRejected'>> {
    const isComplete = missingShardsOf(review).length === 0
    const mayBeBaseline = isStored && isComplete && isComparison(review) && !signal.aborted
    if (uploads && baseline !== undefined && mayBeBaseline) await storeBaseline(baseline, review, uploads)
    const { report: file } = options
    const report = file === undefined || signal.aborted ? undefined : await storeReport(file, review, uploads)
    if (review.baseline && !signal.aborted) say(`Compared with ${review.baseline.name}: ${totalsOf(review)}.`)
    const rejection = isComplete ? findRejection(review, failOn.flat()) : undefined
    let shownBy: ShownBy
    try {
      shownBy = await write?.({ review, report, rejection }, signal)
    } catch (error) {
      fail(`Could not write the comment: ${messageOf(error)}`)
    }
    if (rejection !== undefined) say(`--fail-on: ${rejection}${SHOWN_BY[shownBy ?? 'exit']}.`)
    const toMarkdown = (mostBytes?: number) => toBody({ title, run, report }, review, mostBytes)
    return {
      toMarkdown,
      summary: isComparison(review) ? toMarkdown(SUMMARY_BYTES) : undefined,
      isRejected: rejection !== undefined && shownBy === undefined,
    }
  }

  return async what => {
    const prepared = await prepare(what).catch((error: unknown) => {
      fail(messageOf(error)) // The upload tells which exit code it is.
      return undefined
    })
    const results = await what.store()
    const uploads = what.isDryRun ? undefined : what.uploads
    const more = uploads ? await uploadAll(uploads, prepared?.entries ?? [], signal) : []
    const own = prepared?.conclude(results, more) ?? toReview(results, run)
    let reviewed: Partial<Reviewed> = {}
    const publishThis = async (review: Review) => {
      reviewed = await publish(review, uploads)
    }
    if (!shard || !uploads) await publishThis(own)
    // Without its own list, the other shards know that this one is missing.
    else if (!hasFailed && !signal.aborted) {
      const whose = [runId, commentNameOf(options, job)]
      await publishShards(own, shard, whose, { uploads, fetch: fetchList, signal }, publishThis).catch(
        (error: unknown) => fail(`Could not join the shards: ${messageOf(error)}`),
      )
    }
    return { toMarkdown: () => '', isRejected: false, ...reviewed, results, hasFailed }
  }
}

const SHOWN_BY = { review: ', reviewed', status: ', as the commit status says', exit: '' }

/** The differences that `--fail-on` names. */
function findRejection(review: Review, words: readonly string[]): string | undefined {
  const found = Object.entries(countsOf(review)).filter(([word, count]) => words.includes(word) && count > 0)
  return found.map(([word, count]) => `${count} ${word}`).join(' · ') || undefined
}

const NO_IMAGES: EarlierImages = { images: [] }
