import { readFile } from 'node:fs/promises'
import { memberAt } from '../../members.ts'
import { toRun } from '../reports/read-results.ts'
import type { Run } from '../reports/review.ts'

/** The supported Git hosts. Forgejo has the API of Gitea. */
export type ForgeKind = 'github' | 'gitlab' | 'gitea'

/** A pull request, or what GitLab calls a merge request. */
export interface PullRequest {
  readonly forge: ForgeKind
  /** Base URL of its API, without a slash at the end. */
  readonly api: string
  /** `owner/name`. On GitLab: a path of any depth, or the project ID. */
  readonly repo: string
  readonly pull: number
}

type Env = Readonly<Record<string, string | undefined>>

/** The running job of a CI provider, as it describes it. */
export interface CiJob {
  /** The Git host of the job's repository. Undefined if the CI provider does not set it, or if it is not supported. */
  readonly home: Pick<PullRequest, 'forge' | 'api'> | undefined
  /** Undefined if the job does not belong to a pull request. */
  readonly pullRequest: PullRequest | undefined
  /** Whether the pull request comes from a fork, whose jobs get no secrets and a token that may only read. */
  readonly isFork: boolean
  /** Distinguishes the comment of this job from those of other jobs. */
  readonly name: string
  /** Distinguishes the parallel parts of the job. */
  readonly part?: string | undefined
  /** A later run of the job has a higher number. */
  readonly run: number
  /** The commit that was built: of a pull request, its latest one then. Undefined if the CI provider does not name it. */
  readonly commit: unknown
  /** URL of the page of the run. */
  readonly page: string | undefined
  /** ID of the run, which is higher than those of all earlier runs. Undefined if the CI provider has no such number. */
  readonly id?: number
  /** Whether the run is one of the default branch, and not of a pull request. */
  readonly isMain: boolean
}

/** Facts about a run in the comment and the report. */
export const runOf = (job: CiJob | undefined): Run =>
  toRun({ commit: job?.commit, url: job?.page, id: job?.id })

/**
 * Reads the environment variables of a CI provider.
 *
 * @returns undefined if it is not a job of a supported CI provider
 * @throws Error if the URL of the pull request can't be read
 */
export async function findJob(env: Env): Promise<CiJob | undefined> {
  if (env['GITLAB_CI']) return gitlabJob(env)
  if (env['GITHUB_ACTIONS']) return actionsJob(env)
  if (env['CI'] === 'woodpecker') return woodpeckerJob(env)
  return env['JENKINS_URL'] ? jenkinsJob(env) : undefined
}

/** The token of a job for the API of its Git host. */
export function tokenOf(env: Env, forge: ForgeKind): string | undefined {
  const { GITHUB_TOKEN, GITLAB_TOKEN, GITEA_TOKEN, FORGEJO_TOKEN, GITHUB_ACTIONS } = env
  if (forge === 'github') return GITHUB_TOKEN
  if (forge === 'gitlab') return GITLAB_TOKEN
  // The Actions of Gitea and Forgejo set it, too. Elsewhere, it is a token of GitHub.
  return GITEA_TOKEN || FORGEJO_TOKEN || (GITHUB_ACTIONS && GITHUB_TOKEN)
}

const joined = (...names: readonly (string | undefined)[]) => names.filter(Boolean).join(' / ')

function gitlabJob(env: Env): CiJob {
  // A branch pipeline only has the open merge requests of its branch, as `group/project!7`, separated by commas.
  const [, openRepo, open] = /^([^,!]+)!(\d+)/.exec(env['CI_OPEN_MERGE_REQUESTS'] ?? '') ?? []
  const isBranch = open !== undefined && !env['CI_MERGE_REQUEST_IID']
  const pull = toNumber(isBranch ? open : env['CI_MERGE_REQUEST_IID'])
  const [source, target] = isBranch
    ? [env['CI_PROJECT_PATH'], openRepo]
    : [env['CI_MERGE_REQUEST_SOURCE_PROJECT_ID'], env['CI_MERGE_REQUEST_PROJECT_ID']]
  const [api, repo] = [env['CI_API_V4_URL'], target ?? env['CI_PROJECT_ID']]
  return {
    home: homeOf('gitlab', api),
    pullRequest: api && repo && pull ? { forge: 'gitlab', api, repo, pull } : undefined,
    isFork: Boolean(source && target) && source !== target,
    name: env['CI_JOB_NAME']?.replace(/ \d+\/\d+$/, '') ?? '',
    part: env['CI_NODE_INDEX'],
    run: toNumber(env['CI_PIPELINE_IID']),
    commit: env['CI_MERGE_REQUEST_SOURCE_BRANCH_SHA'] || env['CI_COMMIT_SHA'],
    page: env['CI_PIPELINE_URL'],
    id: toNumber(env['CI_PIPELINE_ID']),
    isMain: isEqual(env['CI_COMMIT_BRANCH'], env['CI_DEFAULT_BRANCH']),
  }
}

/** GitHub's Actions, and those of Gitea and Forgejo, which set the same variables. */
async function actionsJob(env: Env): Promise<CiJob> {
  const forge = env['GITEA_ACTIONS'] || env['FORGEJO_ACTIONS'] ? 'gitea' : 'github'
  const { GITHUB_API_URL: api, GITHUB_REPOSITORY: repo, GITHUB_REF: ref = '', GITHUB_RUN_ID: id } = env
  const event: unknown = JSON.parse(await readFile(env['GITHUB_EVENT_PATH'] ?? '', 'utf8').catch(() => '{}'))
  const at = (...path: string[]) => memberAt(event, ...path)
  const isComment = at('issue', 'pull_request') !== undefined
  // The ref is a branch for `pull_request_target`, `issue_comment` and `workflow_run`.
  const pull =
    toNumber(/^refs\/pull\/(\d+)\//.exec(ref)?.[1]) ||
    toNumber(at('pull_request', 'number')) ||
    toNumber(isComment ? at('issue', 'number') : at('workflow_run', 'pull_requests', '0', 'number'))
  const base = at('pull_request', 'base', 'repo', 'full_name')
  const home = homeOf(forge, api)
  const page = forge === 'gitea' ? env['GITHUB_RUN_NUMBER'] : id
  return {
    home,
    pullRequest: home && repo && pull ? { ...home, repo, pull } : undefined,
    // A fork that was deleted has no name.
    isFork: base !== undefined && at('pull_request', 'head', 'repo', 'full_name') !== base,
    name: joined(env['GITHUB_WORKFLOW'], env['GITHUB_JOB'], env['GITHUB_ACTION']),
    // A run is repeated fewer than a thousand times.
    run: toNumber(env['GITHUB_RUN_NUMBER']) * 1000 + Math.min(toNumber(env['GITHUB_RUN_ATTEMPT']), 999),
    // GITHUB_SHA is the commit that merges the pull request.
    commit: at('issue')
      ? undefined
      : (at('pull_request', 'head', 'sha') ?? at('workflow_run', 'head_sha') ?? env['GITHUB_SHA']),
    page: `${env['GITHUB_SERVER_URL']}/${repo}/actions/runs/${page}`,
    id: toNumber(id),
    isMain: isMainEvent(env, at),
  }
}

/**
 * Whether a run belongs to the default branch. `workflow_run` always runs there, also for the results of forks: it counts
 * if it follows a push, which a fork can't make in this repository. A scheduled run is always one of the default
 * branch, and its event does not name it.
 */
function isMainEvent(
  { GITHUB_EVENT_NAME: name = '', GITHUB_REF: ref }: Env,
  at: (...path: string[]) => unknown,
) {
  const branch = at('repository', 'default_branch')
  if (name === 'workflow_run')
    return at('workflow_run', 'event') === 'push' && at('workflow_run', 'head_branch') === branch
  return (
    name === 'schedule' || (['push', 'workflow_dispatch'].includes(name) && ref === `refs/heads/${branch}`)
  )
}

const PAGES = { github: 'pull', gitlab: '-/merge_requests', gitea: 'pulls', forgejo: 'pulls' } as const

function woodpeckerJob(env: Env): CiJob {
  const { CI_FORGE_URL: url = '', CI_FORGE_TYPE: kind = '', CI_PIPELINE_EVENT: event = '' } = env
  // Only the Git hosts of `PAGES` get a token.
  const [, page] = Object.entries(PAGES).find(([name]) => name === kind) ?? []
  const pull = toNumber(env['CI_COMMIT_PULL_REQUEST'])
  const read = (number: number) =>
    readPullRequestUrl(`${withoutSlash(url)}/${env['CI_REPO']}/${page}/${number}`)
  return {
    home: page && read(1),
    pullRequest: page && pull > 0 ? read(pull) : undefined,
    isFork: false,
    name: joined(env['CI_WORKFLOW_NAME'], env['CI_STEP_NAME']),
    run: toNumber(env['CI_PIPELINE_NUMBER']),
    commit: env['CI_COMMIT_SHA'],
    page: env['CI_PIPELINE_URL'],
    isMain:
      ['push', 'cron', 'manual'].includes(event) &&
      isEqual(env['CI_COMMIT_BRANCH'], env['CI_REPO_DEFAULT_BRANCH']),
  }
}

function jenkinsJob(env: Env): CiJob {
  const url = env['CHANGE_URL']
  const pullRequest = url ? readPullRequestUrl(url) : undefined
  return {
    home: pullRequest,
    pullRequest,
    isFork: Boolean(env['CHANGE_FORK']),
    name: env['STAGE_NAME'] ?? '',
    run: toNumber(env['BUILD_NUMBER']),
    commit: url ? undefined : env['GIT_COMMIT'], // of a pull request: a merge that only this job has
    page: env['BUILD_URL'],
    isMain: !url && env['BRANCH_IS_PRIMARY'] === 'true',
  }
}

function homeOf(forge: ForgeKind, api: string | undefined): CiJob['home'] {
  return api && URL.canParse(api) ? { forge, api: withoutSlash(api) } : undefined
}

/**
 * Reads the URL of a pull request.
 *
 * @throws Error if it is not the URL of a pull request
 */
export function readPullRequestUrl(address: string): PullRequest {
  const { origin, hostname, pathname } =
    /^https?:/i.test(address) && URL.canParse(address) ? new URL(address) : new URL('none:')
  const [, before = '', word, number] =
    /^\/(\S{1,500}?)\/(pull|pulls|-\/merge_requests)\/(\d{1,15})\/?$/.exec(pathname) ?? []
  const pull = toNumber(number)
  const names = before.split('/')
  if (names.length < 2 || pull === 0)
    throw new Error(
      `"${address}" is not the URL of a pull request. Such URLs look like https://github.com/OWNER/NAME/pull/7 (GitHub), …/pulls/7 (Gitea, Forgejo) or …/-/merge_requests/7 (GitLab).`,
    )
  if (word === PAGES.gitlab) return { forge: 'gitlab', api: `${origin}/api/v4`, repo: before, pull }
  const repo = names.slice(-2).join('/')
  const root = [origin, ...names.slice(0, -2)].join('/')
  if (word === PAGES.gitea) return { forge: 'gitea', api: `${root}/api/v1`, repo, pull }
  const api = hostname === 'github.com' ? 'https://api.github.com' : `${root}/api/v3`
  return { forge: 'github', api, repo, pull }
}

const isEqual = (branch: string | undefined, other: string | undefined) => Boolean(branch) && branch === other

const withoutSlash = (url: string) => (url.endsWith('/') ? url.slice(0, -1) : url)

const toNumber = (value: unknown) => (/^\d{1,15}$/.test(String(value)) ? Number(value) : 0)
