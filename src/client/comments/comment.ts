import { isLoopback } from '../../http/proxy/no-proxy.ts'
import { fromEnvironment } from '../../http/proxy/outgoing.ts'
import type { Context } from '../context.ts'
import { failuresOf, isAllTheSame, isComparison, missingShardsOf, type Review } from '../reports/review.ts'
import { type ReportLink, toBody } from './comment-body.ts'
import type { CommitStatus } from './forges.ts'
import { type CiJob, type PullRequest, readPullRequestUrl, runOf } from './pull-request.ts'
import type { Written } from './write.ts'

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

const OUTCOME_NOTES: Readonly<Record<Written, string>> = {
  created: 'Created a comment.',
  updated: 'Updated the comment.',
  unchanged: 'The comment is already up to date.',
  stale: 'A later run has already written the comment.',
  omitted: 'No image has changed, so no comment was created.',
}

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
  const { pr, commentTitle = TITLE, commentToken, status: hasStatus = false } = options
  // CI providers leave the variable with the URL empty if there is no pull request.
  const pullRequest = pr ? readPullRequestUrl(pr) : job?.pullRequest
  if (pullRequest === undefined) {
    if (job?.isElsewhere)
      throw new Error(
        'Could not write a comment: the repository of this job is not on GitHub, GitLab, Gitea or Forgejo. To comment on a pull request there, specify its URL with --pr.',
      )
    if (job === undefined && pr === undefined)
      throw new Error(
        'Could not find the pull request, because this is not a job of a supported CI provider. Specify its URL with --pr.',
      )
    return async () =>
      void context.note('This job does not belong to a pull request, so no comment was written.')
  }
  const token = commentToken || ownToken(pullRequest, job, context.env)
  const { host, protocol, hostname, origin } = new URL(pullRequest.api)
  if (!token) {
    if (job?.isFork) return async () => void context.note(FORK_NOTE)
    const isHome = isAtHome(pullRequest, job)
    throw new Error(
      `Could not write a comment on ${host} without an API token. Set ${isHome ? `${TOKENS[pullRequest.forge]} or ` : ''}UPLOAD_COMMENT_TOKEN in the job.`,
    )
  }
  const isPlain = protocol !== 'https:' && !isLoopback(hostname.replace(/^\[|\]$/g, ''))
  if (isPlain && !(job?.home && new URL(job.home.api).origin === origin))
    throw new Error(
      `Refused to send the token to ${host} over unencrypted http. Specify an https:// URL of the pull request.`,
    )
  context.learn([token])
  const name = commentNameOf(options, job)
  const run = runOf(job)
  return async ({ review, report, rejection }, signal) => {
    const [{ writeComment }, { CommentForbidden, openForge }, approval] = await Promise.all([
      import('./write.ts'),
      import('./forge-client.ts'),
      import('./approval.ts'),
    ])
    const missing = missingShardsOf(review).join()
    const digest = rejection === undefined ? undefined : approval.digestOf(review)
    const forge = openForge({ pullRequest, token, outgoing: fromEnvironment(context.env) })
    try {
      const pull = digest !== undefined || hasStatus ? await approval.readPull(forge, signal) : undefined
      let isReviewed = false
      const request = {
        name,
        run: job?.run ?? 0,
        body: toBody({ title: commentTitle, run, report }, review),
        toEnd(earlier: string): string {
          // The box is about the images of all shards.
          if (missing !== '') return approval.boxIn(earlier)
          if (digest === undefined) return ''
          isReviewed = pull?.isLabelled || approval.isTicked(earlier, digest)
          return approval.toBox(digest, isReviewed)
        },
        isUpdate: isComparison(review) && isAllTheSame(review),
      }
      const written = await writeComment(forge, request, signal)
      context.note(OUTCOME_NOTES[written])
      if (hasStatus && pull) {
        const fault =
          failuresOf(review) ?? (isComparison(review) ? undefined : 'The images could not be compared')
        const found = `${rejection ?? 'No differences'}${isReviewed ? ', reviewed' : ''}`
        const isGreen = fault === undefined && (rejection === undefined || isReviewed)
        const state = isGreen ? 'success' : 'failure'
        const status: CommitStatus = {
          state: fault === undefined && missing !== '' ? 'pending' : state,
          name: [commentTitle, name].filter(Boolean).join(': '),
          description: fault ?? (missing || found),
          url: run.url,
        }
        // Another commit may have been pushed since this run began, whose images were not compared.
        await approval.setStatus(forge, run.commit ?? pull.commit, status, signal)
      }
      return isReviewed ? 'review' : hasStatus ? 'status' : undefined
    } catch (error) {
      if (!job?.isFork || !(error instanceof CommentForbidden)) throw error
      context.note(FORK_NOTE)
      return undefined
    } finally {
      forge.close()
    }
  }
}

const FORK_NOTE =
  'Warning: no comment was written. The pull request comes from a fork, whose jobs have no token that may write comments.'

/** Whether a pull request is on the same Git host as the repository of the CI job. */
function isAtHome({ forge, api }: PullRequest, job: CiJob | undefined): boolean {
  return job?.home?.forge === forge && new URL(job.home.api).origin === new URL(api).origin
}

/** The token of the CI job, which is sent only to the Git host of the job's own repository. */
function ownToken(pullRequest: PullRequest, job: CiJob | undefined, env: Context['env']): string | undefined {
  if (!isAtHome(pullRequest, job)) return undefined
  const { GITHUB_TOKEN, GITLAB_TOKEN, GITEA_TOKEN, FORGEJO_TOKEN } = env
  const ofForge = { github: GITHUB_TOKEN, gitlab: GITLAB_TOKEN, gitea: GITEA_TOKEN || FORGEJO_TOKEN }
  return job?.token || ofForge[pullRequest.forge]
}

const TOKENS = {
  github: 'GITHUB_TOKEN',
  gitlab: 'GITLAB_TOKEN (CI_JOB_TOKEN may not write comments)',
  gitea: 'GITEA_TOKEN',
} as const
