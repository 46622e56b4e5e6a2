import { readFile } from 'node:fs/promises'

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
  /** Undefined if the job does not belong to a pull request. */
  readonly pullRequest: PullRequest | undefined
  /** Distinguishes the comment of this job from those of other jobs. */
  readonly name: string
  /** A later run of the job has a higher number. */
  readonly run: number
  /** Undefined if the CI provider sets none. */
  readonly token: string | undefined
}

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
  return undefined
}

function gitlabJob(env: Env): CiJob {
  const repo = env['CI_MERGE_REQUEST_PROJECT_ID'] ?? env['CI_PROJECT_ID']
  const pull = toNumber(env['CI_MERGE_REQUEST_IID'])
  const api = env['CI_API_V4_URL']
  const [source, target] = [env['CI_MERGE_REQUEST_SOURCE_PROJECT_ID'], env['CI_MERGE_REQUEST_PROJECT_ID']]
  return {
    home: homeOf('gitlab', api),
    isFork: Boolean(source && target) && source !== target,
    pullRequest: api && repo && pull ? { forge: 'gitlab', api, repo, pull } : undefined,
    name: env['CI_JOB_NAME'] ?? '',
    run: toNumber(env['CI_PIPELINE_IID']),
    token: env['GITLAB_TOKEN'],
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
    name: [env['GITHUB_WORKFLOW'], env['GITHUB_JOB']].filter(Boolean).join(' / '),
    // A run is repeated fewer than a thousand times.
    run: toNumber(env['GITHUB_RUN_NUMBER']) * 1000 + Math.min(toNumber(env['GITHUB_RUN_ATTEMPT']), 999),
    token: (forge === 'gitea' && (env['GITEA_TOKEN'] || env['FORGEJO_TOKEN'])) || env['GITHUB_TOKEN'],
  }
}

/** The fields of the event that started a run which are read here. */
interface Event {
  readonly issue?: { readonly number?: unknown; readonly pull_request?: unknown }
  readonly pull_request?: {
    readonly number?: unknown
    readonly head?: { readonly repo?: { readonly full_name?: unknown } | null }
    readonly base?: { readonly repo?: { readonly full_name?: unknown } }
  }
  readonly workflow_run?: { readonly pull_requests?: readonly { readonly number?: unknown }[] }
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

/** A fork that was deleted has no name. */
function isOfFork({ pull_request: pull }: Event): boolean {
  const base = pull?.base?.repo?.full_name
  return base !== undefined && pull?.head?.repo?.full_name !== base
}

function homeOf(forge: ForgeKind, api: string | undefined): CiJob['home'] {
  return api && URL.canParse(api) ? { forge, api: withoutSlash(api) } : undefined
}

function woodpeckerJob(env: Env): CiJob {
  const { CI_FORGE_URL: url, CI_FORGE_TYPE: type, CI_REPO: repo } = env
  const pull = toNumber(env['CI_COMMIT_PULL_REQUEST'])
  const word = type === 'gitlab' ? '-/merge_requests' : type === 'github' ? 'pull' : 'pulls'
  const pageOf = (number: number) => `${withoutSlash(url ?? '')}/${repo}/${word}/${number}`
  return {
    home: url && URL.canParse(url) && repo?.includes('/') ? readPullRequestUrl(pageOf(1)) : undefined,
    isFork: false,
    pullRequest: url && repo && pull ? readPullRequestUrl(pageOf(pull)) : undefined,
    name: [env['CI_WORKFLOW_NAME'], env['CI_STEP_NAME']].filter(Boolean).join(' / '),
    run: toNumber(env['CI_PIPELINE_NUMBER']),
    token: undefined,
  }
}

function buildkiteJob(env: Env): CiJob {
  const pull = toNumber(env['BUILDKITE_PULL_REQUEST'])
  const remote = (env['BUILDKITE_REPO'] ?? '').replace(/^(?:ssh:\/\/)?git@([\w.-]+)[:/]/, 'https://$1/')
  const { host, pathname } = URL.canParse(remote) ? new URL(remote) : new URL('none:')
  const path = pathname.replace(/^\/|\.git$/g, '')
  const word = host.includes('gitlab') ? '-/merge_requests' : 'pull'
  const pageOf = (number: number) => `https://${host}/${path}/${word}/${number}`
  const source = env['BUILDKITE_PULL_REQUEST_REPO']
  return {
    home: host && path.includes('/') ? readPullRequestUrl(pageOf(1)) : undefined,
    isFork: Boolean(pull && source) && !source?.replace(/\.git$/, '').endsWith(path),
    pullRequest: host && pull ? readPullRequestUrl(pageOf(pull)) : undefined,
    name: [env['BUILDKITE_PIPELINE_SLUG'], env['BUILDKITE_STEP_KEY']].filter(Boolean).join(' / '),
    run: toNumber(env['BUILDKITE_BUILD_NUMBER']),
    token: undefined,
  }
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

const withoutSlash = (url: string) => (url.endsWith('/') ? url.slice(0, -1) : url)

const toNumber = (text: string | undefined) => (/^\d{1,15}$/.test(text ?? '') ? Number(text) : 0)
