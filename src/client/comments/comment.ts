import { createHash } from 'node:crypto'
import { HttpRefusal } from '../../http/client.ts'
import { fromEnvironment } from '../../http/proxy/outgoing.ts'
import type { Context } from '../context.ts'
import {
  failuresOf,
  isAllTheSame,
  isComparison,
  missingShardsOf,
  type Review,
  rowsIn,
} from '../reports/review.ts'
import { isPlain } from '../tokens/token-source.ts'
import { type CiJob, type PullRequest, readPullRequestUrl, runOf, tokenOf } from './ci-job.ts'
import { type ReportLink, toBody } from './comment-body.ts'
import { type Forge, openForge, withRetries } from './forge.ts'

export interface CommentOptions {
  /** URL of the pull request. */
  pr?: string
  commentName?: string
  commentTitle?: string
  commentToken?: string
  /** Whether a commit status tells the differences that `--fail-on` names. */
  status?: boolean
  /** Set if all shards of the run write the same comment. */
  shard?: object
}

/** The default heading of a comment. */
export const TITLE = 'Pictures'

/** The label of a pull request that approves all differences. */
const LABEL = 'images-reviewed'

/** Identifies the comment. Parallel parts of a job have separate comments, unless they are shards of one run. */
export const commentNameOf = ({ commentName, shard }: CommentOptions, job: CiJob | undefined) =>
  commentName ?? [job?.name, shard ? '' : job?.part].filter(Boolean).join(' / ')

/** What a comment shows. */
export interface Shown {
  readonly review: Review
  readonly report?: ReportLink | undefined
  /** The differences that `--fail-on` names, such as "3 changed". Undefined if there are none. */
  readonly rejection?: string | undefined
}

/** What shows the differences that `--fail-on` names instead of the exit code: the review of a person, or a commit status. */
export type ShownBy = 'review' | 'status' | undefined

/**
 * Finds the pull request and the token before anything is uploaded.
 *
 * @returns a function that writes the comment and notes the outcome
 * @throws Error if the pull request or the token can't be found
 */
export async function openComment(
  options: CommentOptions,
  job: CiJob | undefined,
  context: Context,
): Promise<(shown: Shown, signal: AbortSignal) => Promise<ShownBy>> {
  const { pr, commentTitle = TITLE, status: hasStatus = false } = options
  const nothing = (why: string) => async () => void context.note(why)
  // CI providers leave the variable with the URL empty if there is no pull request.
  const pullRequest = pr ? readPullRequestUrl(pr) : job?.pullRequest
  if (pullRequest === undefined) {
    if (job === undefined && pr === undefined)
      throw new Error(
        'Could not find the pull request, because this is not a job of a supported CI provider. Specify its URL with --pr.',
      )
    return nothing(
      'This job does not belong to a pull request on GitHub, GitLab, Gitea or Forgejo, so no comment was written.',
    )
  }
  const token = findToken(pullRequest, options, job, context.env)
  if (token === undefined) return nothing(FORK_NOTE)
  context.learn([token])
  const name = commentNameOf(options, job)
  const run = runOf(job)
  const outgoing = fromEnvironment(context.env)

  async function write({ review, report, rejection }: Shown, forge: Forge, signal: AbortSignal) {
    const pull = rejection !== undefined || hasStatus ? await forge.readPull(signal) : undefined
    const missing = missingShardsOf(review).join()
    const digest = digestOf(review)
    let isReviewed = false
    const request: CommentRequest = {
      name,
      run: job?.run ?? 0,
      body: toBody({ title: commentTitle, run, report }, review),
      toEnd(earlier) {
        const box = BOX.exec(earlier)
        // The box is about the images of all shards.
        if (missing !== '') return box ? `\n${box[0]}\n` : ''
        if (rejection === undefined) return ''
        const isTicked = box?.[1] === digest && !box[0].startsWith('- [ ]')
        isReviewed = isTicked || (pull?.labels.includes(LABEL) ?? false)
        return `\n- [${isReviewed ? 'x' : ' '}] I have looked at these images <!-- reviewed ${digest} -->\n`
      },
      isUpdate: isComparison(review) && isAllTheSame(review),
    }
    context.note(OUTCOME_NOTES[await writeComment(forge, request, signal)])
    if (hasStatus && pull) {
      const fault =
        failuresOf(review) ?? (isComparison(review) ? undefined : 'The images could not be compared')
      const found = `${rejection ?? 'No differences'}${isReviewed ? ', reviewed' : ''}`
      const isGreen = fault === undefined && (rejection === undefined || isReviewed)
      const state = isGreen ? 'success' : 'failure'
      const status = {
        state: fault === undefined && missing !== '' ? 'pending' : state,
        name: [commentTitle, name].filter(Boolean).join(': '),
        description: fault ?? (missing || found),
        url: run.url,
      } as const
      // Another commit may have been pushed since this run began, whose images were not compared.
      await forge.setStatus(run.commit ?? pull.commit, status, signal)
    }
    return isReviewed ? 'review' : hasStatus ? 'status' : undefined
  }

  return async (shown, signal) => {
    const forge = openForge(pullRequest, token, outgoing)
    try {
      return await write(shown, forge, signal)
    } catch (error) {
      if (!job?.isFork || !(error instanceof HttpRefusal && error.reply.status === 403)) throw error
      context.note(FORK_NOTE)
      return undefined
    } finally {
      forge.close()
    }
  }
}

const FORK_NOTE =
  'Warning: no comment was written. The pull request comes from a fork, whose jobs have no token that may write comments.'

const TOKENS = {
  github: 'GITHUB_TOKEN',
  gitlab: 'GITLAB_TOKEN (CI_JOB_TOKEN may not write comments)',
  gitea: 'GITEA_TOKEN',
} as const

/**
 * The token that the user names, or that of the CI job, which is sent only to the Git host of the job's own repository.
 *
 * @returns undefined if the pull request comes from a fork
 * @throws Error if there is none, or if it would be sent without encryption
 */
function findToken(
  { forge, api }: PullRequest,
  { commentToken }: CommentOptions,
  job: CiJob | undefined,
  env: Context['env'],
): string | undefined {
  const url = new URL(api)
  const isSameHost = job?.home !== undefined && new URL(job.home.api).origin === url.origin
  const isHome = isSameHost && job.home?.forge === forge
  const token = commentToken || (isHome ? tokenOf(env, forge) : undefined)
  if (!token) {
    if (job?.isFork) return undefined
    const own = isHome ? `${TOKENS[forge]} or ` : ''
    throw new Error(
      `Could not write a comment on ${url.host} without an API token. Set ${own}UPLOAD_COMMENT_TOKEN in the job.`,
    )
  }
  if (isSameHost || !isPlain(url)) return token
  throw new Error(
    `Refused to send the token to ${url.host} over unencrypted http. Specify an https:// URL of the pull request.`,
  )
}

/** Identifies the differences that a box is about: other ones need another look. */
export function digestOf(review: Review): string {
  const rows = rowsIn(review, 'changed', 'new', 'gone', 'renamed').map(({ name, state, before, after }) =>
    JSON.stringify([name, state, before?.sha256, after?.sha256, after?.url]),
  )
  return createHash('sha256').update(rows.sort().join('\n')).digest('hex')
}

/** The box below the images of a comment. Names in a comment can't contain `<`, so they can't forge it. */
const BOX = /^- \[[ xX]\] .{0,100}<!-- reviewed (\w{64}) -->$/m

export interface CommentRequest {
  /** Distinguishes this comment from those of other jobs. */
  readonly name: string
  /** Number of the run. A comment of a later run is not replaced. */
  readonly run: number
  /** Markdown. */
  readonly body: string
  /** Makes the end of the body from the comment of an earlier run, which is empty if there is none. */
  readonly toEnd?: (earlier: string) => string
  /** Whether to update an earlier comment only, because there is nothing to show. */
  readonly isUpdate?: boolean
}

/** The outcome. `stale`: a later run has already written the comment. `omitted`: there was none to update. */
export type Written = keyof typeof OUTCOME_NOTES

const OUTCOME_NOTES = {
  created: 'Created a comment.',
  updated: 'Updated the comment.',
  unchanged: 'The comment is already up to date.',
  stale: 'A later run has already written the comment.',
  omitted: 'No image has changed, so no comment was created.',
}

/**
 * Creates a comment on a pull request, or updates the comment of an earlier run of the job. After a transient failure it begins
 * again with the list of comments, because only a response may have been lost.
 *
 * @throws UploadError `destination_failed`
 */
export function writeComment(forge: Forge, request: CommentRequest, signal: AbortSignal): Promise<Written> {
  const { name, run, body, toEnd, isUpdate } = request
  const marker = markerOf(name)
  let self: unknown

  /** The comments of this job, the oldest first. Others may have copied its marker, so it must be the user of the token. */
  async function listOwn() {
    const marked = (await forge.list(signal)).filter(one => one.body.startsWith(marker))
    if (marked.length > 0) self ??= await forge.findSelf(signal)
    const own = marked.filter(({ author }) => author === self).sort((a, b) => a.id - b.id)
    return own.map(one => ({ ...one, run: Number.parseInt(one.body.slice(marker.length), 10) || 0 }))
  }

  return withRetries(async () => {
    const [before] = await listOwn()
    const text = `${marker}${run} -->\n${body}${toEnd?.(before?.body ?? '') ?? ''}`
    if (before && before.run > run) return 'stale'
    if (before?.body.trimEnd() === text.trimEnd()) return 'unchanged'
    if (before && (await forge.change(before.id, text, signal))) return 'updated'
    // It may have been deleted in the meantime.
    if (isUpdate) return 'omitted'
    const { id, author } = await forge.create(text, signal)
    self = author
    // A parallel run of the job may have created another comment. The first one is kept.
    const first = (await listOwn()).find(one => one.id !== id)
    if (first === undefined || first.id > id) return 'created'
    if (first.run <= run) await forge.change(first.id, text, signal)
    await forge.remove(id, signal)
    return first.run > run ? 'stale' : 'updated'
  }, signal)
}

/** The beginning of a comment, before the number of the run. Two hyphens would end the HTML comment early. */
const markerOf = (name: string) =>
  `<!-- upload-server comment ${encodeURIComponent(name).replaceAll('-', '%2D')} run `
