import { readFile } from 'node:fs/promises'
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

/** The running job of a CI provider. */
export interface CiJob {
  /** The Git host of the job's repository. Undefined if the CI provider does not set it. */
  readonly home: Pick<PullRequest, 'forge' | 'api'> | undefined
  /** Whether the pull request comes from a fork, whose jobs get no secrets and a token that may only read. */
  readonly isFork: boolean
  /** Undefined if the job does not belong to a pull request, or if `isElsewhere`. */
  readonly pullRequest: PullRequest | undefined
  /** Whether the repository is on a Git host that is not supported. */
  readonly isElsewhere?: boolean
  /** Distinguishes the comment of this job from those of other jobs. */
  readonly name: string
  /** Distinguishes the parallel parts of the job. */
  readonly part?: string | undefined
  /** A later run of the job has a higher number. */
  readonly run: number
  /** Undefined if the CI provider sets none. */
  readonly token: string | undefined
  /** The commit that was built: of a pull request, its latest one then. Undefined if the CI provider does not name it. */
  readonly commit: string | undefined
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
  if (env['BUILDKITE']) return buildkiteJob(env)
  if (env['JENKINS_URL']) return jenkinsJob(env)
  if (env['CIRCLECI']) return circleJob(env)
  return undefined
}

function gitlabJob(env: Env): CiJob {
  // A branch pipeline only has the open merge requests of its branch, as `group/project!7`, separated by commas.
  const [, openRepo, open] = /^([^,!]+)!(\d+)/.exec(env['CI_OPEN_MERGE_REQUESTS'] ?? '') ?? []
  const pull = toNumber(env['CI_MERGE_REQUEST_IID']) || toNumber(open)
  const isBranch = pull > 0 && !env['CI_MERGE_REQUEST_IID']
  const repo = isBranch ? openRepo : (env['CI_MERGE_REQUEST_PROJECT_ID'] ?? env['CI_PROJECT_ID'])
  const api = env['CI_API_V4_URL']
  const [source, target] = isBranch
    ? [env['CI_PROJECT_PATH'], openRepo]
    : [env['CI_MERGE_REQUEST_SOURCE_PROJECT_ID'], env['CI_MERGE_REQUEST_PROJECT_ID']]
  return {
    home: homeOf('gitlab', api),
    isFork: Boolean(source && target) && source !== target,
    pullRequest: api && repo && pull ? { forge: 'gitlab', api, repo, pull } : undefined,
    name: (env['CI_JOB_NAME'] ?? '').replace(/ \d+\/\d+$/, ''),
    part: env['CI_NODE_INDEX'],
    run: toNumber(env['CI_PIPELINE_IID']),
    token: env['GITLAB_TOKEN'],
    commit: env['CI_MERGE_REQUEST_SOURCE_BRANCH_SHA'] || env['CI_COMMIT_SHA'],
    page: env['CI_PIPELINE_URL'],
    id: toNumber(env['CI_PIPELINE_ID']),
    isMain: isEqual(env['CI_COMMIT_BRANCH'], env['CI_DEFAULT_BRANCH']),
  }
}

/** GitHub's Actions, and those of Gitea and Forgejo, which set the same variables. */
async function actionsJob(env: Env): Promise<CiJob> {
  const forge = env['GITEA_ACTIONS'] || env['FORGEJO_ACTIONS'] ? 'gitea' : 'github'
  const { GITHUB_API_URL: api, GITHUB_REPOSITORY: repo, GITHUB_REF: ref = '' } = env
  const [, inRef] = /^refs\/pull\/(\d{1,15})\//.exec(ref) ?? []
  const event = await readEvent(env['GITHUB_EVENT_PATH'])
  const pull = toNumber(inRef) || pullOf(event)
  return {
    home: homeOf(forge, api),
    isFork: isOfFork(event),
    pullRequest: api && repo && pull ? { forge, api: withoutSlash(api), repo, pull } : undefined,
    name: [env['GITHUB_WORKFLOW'], env['GITHUB_JOB'], env['GITHUB_ACTION']].filter(Boolean).join(' / '),
    // A run is repeated fewer than a thousand times.
    run: toNumber(env['GITHUB_RUN_NUMBER']) * 1000 + Math.min(toNumber(env['GITHUB_RUN_ATTEMPT']), 999),
    token: (forge === 'gitea' && (env['GITEA_TOKEN'] || env['FORGEJO_TOKEN'])) || env['GITHUB_TOKEN'],
    commit: event.issue ? undefined : (commitOf(event) ?? env['GITHUB_SHA']),
    page: `${env['GITHUB_SERVER_URL']}/${repo}/actions/runs/${env[forge === 'gitea' ? 'GITHUB_RUN_NUMBER' : 'GITHUB_RUN_ID']}`,
    id: toNumber(env['GITHUB_RUN_ID']),
    isMain: isMainEvent(env, event),
  }
}

/** The fields of the event that started a run which are read here. */
interface Event {
  readonly repository?: { readonly default_branch?: unknown }
  readonly issue?: { readonly number?: unknown; readonly pull_request?: unknown }
  readonly pull_request?: {
    readonly number?: unknown
    readonly head?: { readonly sha?: unknown; readonly repo?: { readonly full_name?: unknown } | null }
    readonly base?: { readonly repo?: { readonly full_name?: unknown } }
  }
  readonly workflow_run?: {
    readonly event?: unknown
    readonly head_branch?: unknown
    readonly head_sha?: unknown
    readonly pull_requests?: readonly { readonly number?: unknown }[]
  }
}

async function readEvent(file: string | undefined): Promise<Event> {
  if (!file) return {}
  return JSON.parse(await readFile(file, 'utf8').catch(() => '{}')) ?? {}
}

/** For events whose ref is a branch: `pull_request_target`, `issue_comment`, `workflow_run`. */
function pullOf({ issue, pull_request, workflow_run }: Event): number {
  const ofIssue = issue?.pull_request ? issue.number : undefined
  return toNumber(String(pull_request?.number ?? ofIssue ?? workflow_run?.pull_requests?.[0]?.number))
}

/** The latest commit of a pull request, instead of the commit that merges it, which GITHUB_SHA is. */
function commitOf({ pull_request: pull, workflow_run }: Event): string | undefined {
  const sha = pull?.head?.sha ?? workflow_run?.head_sha
  return typeof sha === 'string' ? sha : undefined
}

/**
 * Whether a run belongs to the default branch. `workflow_run` always runs there, also for the results of forks: it counts
 * if it follows a push, which a fork can't make in this repository. A scheduled run is always one of the default
 * branch, and its event does not name it.
 */
function isMainEvent(
  { GITHUB_EVENT_NAME: name = '', GITHUB_REF: ref }: Env,
  { repository, workflow_run: run }: Event,
): boolean {
  if (name === 'schedule') return true
  if (name === 'workflow_run') return run?.event === 'push' && run.head_branch === repository?.default_branch
  return ['push', 'workflow_dispatch'].includes(name) && ref === `refs/heads/${repository?.default_branch}`
}

/** A fork that was deleted has no name. */
function isOfFork({ pull_request: pull }: Event): boolean {
  const base = pull?.base?.repo?.full_name
  return base !== undefined && pull?.head?.repo?.full_name !== base
}

function homeOf(forge: ForgeKind, api: string | undefined): CiJob['home'] {
  return api && URL.canParse(api) ? { forge, api: withoutSlash(api) } : undefined
}

/** The URL of a pull request, as the Git host that a CI provider names writes it. Undefined for others: they get no token. */
function pageOf(kind: string, repository: string, pull: number): string | undefined {
  const [, forge] = /^(github|gitlab|gitea|forgejo)/.exec(kind) ?? []
  const word = { github: 'pull', gitlab: '-/merge_requests' }[forge ?? ''] ?? 'pulls'
  return forge && `${repository}/${word}/${pull}`
}

function woodpeckerJob(env: Env): CiJob {
  const { CI_FORGE_URL: url = '', CI_FORGE_TYPE: kind = '', CI_REPO: repo } = env
  return {
    ...jobOf(kind, `${withoutSlash(url)}/${repo}`, toNumber(env['CI_COMMIT_PULL_REQUEST'])),
    isFork: false,
    name: [env['CI_WORKFLOW_NAME'], env['CI_STEP_NAME']].filter(Boolean).join(' / '),
    run: toNumber(env['CI_PIPELINE_NUMBER']),
    token: undefined,
    commit: env['CI_COMMIT_SHA'],
    page: env['CI_PIPELINE_URL'],
    isMain:
      ['push', 'cron', 'manual'].includes(env['CI_PIPELINE_EVENT'] ?? '') &&
      isEqual(env['CI_COMMIT_BRANCH'], env['CI_REPO_DEFAULT_BRANCH']),
  }
}

function buildkiteJob(env: Env): CiJob {
  const pull = toNumber(env['BUILDKITE_PULL_REQUEST'])
  const remote = (env['BUILDKITE_REPO'] ?? '').replace(/^(?:ssh:\/\/)?git@([\w.-]+)[:/]/, 'https://$1/')
  const { host, pathname } = URL.canParse(remote) ? new URL(remote) : new URL('none:')
  const path = pathname.replace(/^\/|\.git$/g, '')
  const source = env['BUILDKITE_PULL_REQUEST_REPO']
  const { BUILDKITE_PIPELINE_PROVIDER: provider = '' } = env
  return {
    ...jobOf(provider || host, `https://${host}/${path}`, pull),
    isFork: Boolean(pull && source) && !source?.replace(/\.git$/, '').endsWith(path),
    name: [
      env['BUILDKITE_PIPELINE_SLUG'],
      env['BUILDKITE_STEP_KEY'],
      env['BUILDKITE_LABEL'], // has the values of a matrix
    ]
      .filter(Boolean)
      .join(' / '),
    part: env['BUILDKITE_PARALLEL_JOB'],
    run: toNumber(env['BUILDKITE_BUILD_NUMBER']),
    token: undefined,
    commit: env['BUILDKITE_COMMIT'],
    page: env['BUILDKITE_BUILD_URL'],
    isMain: pull === 0 && isEqual(env['BUILDKITE_BRANCH'], env['BUILDKITE_PIPELINE_DEFAULT_BRANCH']),
  }
}

function circleJob(env: Env): CiJob {
  const address = env['CIRCLE_PULL_REQUEST']
  const isElsewhere = Boolean(address) && !/^https:\/\/github\.com\//.test(address ?? '')
  const pullRequest = address && !isElsewhere ? readPullRequestUrl(address) : undefined
  return {
    home: pullRequest,
    isFork: Boolean(env['CIRCLE_PR_REPONAME']),
    pullRequest,
    isElsewhere,
    name: env['CIRCLE_JOB'] ?? '',
    part: toNumber(env['CIRCLE_NODE_TOTAL']) > 1 ? env['CIRCLE_NODE_INDEX'] : undefined,
    run: toNumber(env['CIRCLE_BUILD_NUM']),
    token: undefined,
    commit: env['CIRCLE_SHA1'],
    page: env['CIRCLE_BUILD_URL'],
    isMain: false, // CircleCI does not tell its jobs which branch is the default one.
  }
}

/** @param kind of the Git host: its type, or its name */
function jobOf(
  kind: string,
  repository: string,
  pull: number,
): Pick<CiJob, 'home' | 'pullRequest' | 'isElsewhere'> {
  const isRepository = /^https?:\/\/[^/]+\/\S+\/\S/.test(repository)
  const read = (number: number) => {
    const page = isRepository && number > 0 ? pageOf(kind, repository, number) : undefined
    return page === undefined ? undefined : readPullRequestUrl(page)
  }
  const [home, pullRequest] = [read(1), read(pull)]
  return { home, pullRequest, isElsewhere: isRepository && pull > 0 && home === undefined }
}

function jenkinsJob(env: Env): CiJob {
  const url = env['CHANGE_URL']
  const pullRequest = url ? readPullRequestUrl(url) : undefined
  return {
    home: pullRequest,
    isFork: Boolean(env['CHANGE_FORK']),
    pullRequest,
    name: env['STAGE_NAME'] ?? '',
    run: toNumber(env['BUILD_NUMBER']),
    token: undefined,
    commit: url ? undefined : env['GIT_COMMIT'], // of a pull request: a merge that only this job has
    page: env['BUILD_URL'],
    isMain: !url && env['BRANCH_IS_PRIMARY'] === 'true',
  }
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
  if (word === '-/merge_requests') return { forge: 'gitlab', api: `${origin}/api/v4`, repo: before, pull }
  const repo = names.slice(-2).join('/')
  const root = [origin, ...names.slice(0, -2)].join('/')
  if (word === 'pulls') return { forge: 'gitea', api: `${root}/api/v1`, repo, pull }
  const api = hostname === 'github.com' ? 'https://api.github.com' : `${root}/api/v3`
  return { forge: 'github', api, repo, pull }
}

const isEqual = (branch: string | undefined, other: string | undefined) => Boolean(branch) && branch === other

const withoutSlash = (url: string) => (url.endsWith('/') ? url.slice(0, -1) : url)

const toNumber = (text: string | undefined) => (/^\d{1,15}$/.test(text ?? '') ? Number(text) : 0)
