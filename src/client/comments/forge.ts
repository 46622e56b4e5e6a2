import { UploadError } from '../../errors.ts'
import { retry } from '../../flow/retry.ts'
import type { HttpReply, HttpRequest } from '../../http/client.ts'
import { createConnections } from '../../http/connections.ts'
import type { Outgoing } from '../../http/proxy/outgoing.ts'
import { memberAt, membersOf } from '../../members.ts'
import type { ForgeKind, PullRequest } from './ci-job.ts'

/** A comment on a pull request. */
export interface Comment {
  readonly id: number
  readonly body: string
  /** ID of its author. */
  readonly author: number
}

/** A status of a commit, next to its checks. */
export interface CommitStatus {
  /** `pending`: not all shards of the run are there. */
  readonly state: 'success' | 'failure' | 'pending'
  /** Distinguishes it from those of other jobs. */
  readonly name: string
  readonly description: string
  /** What it links to. */
  readonly url?: string | undefined
}

/** The API of the Git host of one pull request. Everything throws UploadError `destination_failed`. */
export interface Forge {
  list(signal: AbortSignal): Promise<Comment[]>
  create(body: string, signal: AbortSignal): Promise<Comment>
  /** @returns false if the comment does not exist */
  change(id: number, body: string, signal: AbortSignal): Promise<boolean>
  remove(id: number, signal: AbortSignal): Promise<void>
  /** ID of the user or app of the token. Undefined if the token may not read it. */
  findSelf(signal: AbortSignal): Promise<unknown>
  /** The latest commit of the pull request, and its labels. */
  readPull(signal: AbortSignal): Promise<{ readonly commit: string; readonly labels: readonly unknown[] }>
  setStatus(commit: string, status: CommitStatus, signal: AbortSignal): Promise<void>
  close(): void
}

/** What differs between the APIs. URLs are below that of the API. */
interface Api {
  headers(token: string): Record<string, string>
  pull(pullRequest: PullRequest): string
  /** URL that lists the comments, and creates one. */
  comments(pullRequest: PullRequest): string
  /** Query that lists as many as possible, the oldest first. */
  readonly query: string
  comment(pullRequest: PullRequest, id: number): string
  readonly change: 'PATCH' | 'PUT'
  status(pullRequest: PullRequest, commit: string): string
  showStatus(status: CommitStatus): object
  /** Requests the user of the token, and the names that lead to its ID. */
  readonly self: Pick<HttpRequest, 'method' | 'url' | 'body'>
  readonly selfId: readonly string[]
  /** The permission that the token needs, as the end of a sentence. */
  readonly needs: string
}

const ofGitHub = {
  pull: ({ repo, pull }) => `/repos/${repo}/pulls/${pull}`,
  comments: ({ repo, pull }) => `/repos/${repo}/issues/${pull}/comments`,
  comment: ({ repo }, id) => `/repos/${repo}/issues/comments/${id}`,
  change: 'PATCH',
  status: ({ repo }, commit) => `/repos/${repo}/statuses/${commit}`,
  showStatus: ({ name, url, ...status }) => ({ ...status, context: name, target_url: url }),
} as const satisfies Partial<Api>

const projectOf = ({ repo }: PullRequest) => `/projects/${encodeURIComponent(repo)}`
const mergeRequestOf = (one: PullRequest) => `${projectOf(one)}/merge_requests/${one.pull}`
const ofUser = { self: { method: 'GET', url: '/user' }, selfId: ['id'] } as const

/**
 * Implemented from the API references: GitHub's REST API "Issue comments" and GraphQL API "viewer", which also tells apps who they
 * are; GitLab's "Notes API"; Gitea's and Forgejo's swagger.v1.json.
 */
const APIS: Readonly<Record<ForgeKind, Api>> = {
  github: {
    headers: token => ({
      authorization: `Bearer ${token}`,
      accept: 'application/vnd.github+json',
      'x-github-api-version': '2022-11-28',
    }),
    ...ofGitHub,
    query: '?per_page=100',
    self: {
      method: 'POST',
      url: '/graphql',
      body: JSON.stringify({ query: '{ viewer { databaseId } }' }),
    },
    selfId: ['data', 'viewer', 'databaseId'],
    needs:
      'the job needs "permissions: pull-requests: write", and "statuses: write" for --status, which pull requests from forks do not get',
  },
  gitea: {
    headers: token => ({ authorization: `token ${token}`, accept: 'application/json' }),
    ...ofGitHub,
    query: '',
    ...ofUser,
    needs: 'the token needs the scope "write:issue"',
  },
  gitlab: {
    headers: token => ({ 'private-token': token, accept: 'application/json' }),
    pull: mergeRequestOf,
    comments: one => `${mergeRequestOf(one)}/notes`,
    query: '?per_page=100&sort=asc&order_by=created_at',
    comment: (one, id) => `${mergeRequestOf(one)}/notes/${id}`,
    change: 'PUT',
    status: (one, commit) => `${projectOf(one)}/statuses/${commit}`,
    showStatus: ({ state, url, ...status }) => ({
      ...{ ...status, state: state === 'failure' ? 'failed' : state, target_url: url },
    }),
    ...ofUser,
    needs: 'the token needs the scope "api"; CI_JOB_TOKEN may not write comments',
  },
}

/** Maximum size of a page of comments, bytes. A comment may have 64 KiB on GitHub and 1 MiB on GitLab. */
const PAGE_BYTES = 32 * 1024 * 1024
/** Maximum number of pages of comments that are read. */
const MOST_PAGES = 100
const SILENT_MS = 15_000
const RETRIES = { attempts: 6, longestPauseMs: 60_000 }

/** Retries work that may be done again from its beginning. */
export const withRetries = <T>(work: () => Promise<T>, signal: AbortSignal) => retry(work, RETRIES, signal)

/** Sends the token with each request. @param outgoing the outbound proxies; default: none */
export function openForge(pullRequest: PullRequest, token: string, outgoing?: Outgoing): Forge {
  const api = APIS[pullRequest.forge]
  const { origin, host } = new URL(pullRequest.api)
  const { http, close } = createConnections({ outgoing, idleTimeoutMs: SILENT_MS })

  function explain({ status, text, headers }: HttpReply) {
    const said = text.replaceAll(token, '[secret]')
    const isRefused = [401, 403, 404].includes(status)
    return {
      reason: isRefused ? `To write a comment, ${api.needs}. The response was: ${said}` : said,
      // GitHub's secondary rate limit.
      ...(status === 403 && headers['retry-after'] !== undefined && { retryable: true }),
    }
  }

  /** @param accepted statuses that are not failures, in addition to 200 to 299 */
  function ask(
    { method, url, body }: Api['self'],
    signal: AbortSignal,
    accepted: readonly number[] = [],
  ): Promise<HttpReply> {
    const request: HttpRequest = {
      method,
      url: new URL(url, origin),
      headers: { ...api.headers(token), ...(body !== undefined && { 'content-type': 'application/json' }) },
      body,
      accept: status => (status >= 200 && status < 300) || accepted.includes(status),
      maxReplyBytes: PAGE_BYTES,
      explain,
    }
    return http.send(request, signal)
  }

  const at = (path: string) => pullRequest.api + path
  const send = (method: string, path: string, body?: object): Api['self'] => ({
    method,
    url: at(path),
    body: body && JSON.stringify(body),
  })
  const notAForge = () =>
    new UploadError(
      'destination_failed',
      `${host} did not respond like the API of a Git host. Check the URL.`,
    )

  return {
    async list(signal) {
      const found: Comment[] = []
      let next: string | undefined = at(api.comments(pullRequest) + api.query)
      for (let page = 0; next !== undefined && page < MOST_PAGES; page++) {
        const reply: HttpReply = await ask({ method: 'GET', url: next }, signal)
        const list = reply.json()
        if (!Array.isArray(list)) throw notAForge()
        found.push(...list.flatMap(toComment))
        next = nextPage(reply, origin)
      }
      return found
    },
    async create(body, signal) {
      const reply = await ask(send('POST', api.comments(pullRequest), { body }), signal)
      const [comment] = toComment(reply.json())
      if (comment === undefined) throw notAForge()
      return comment
    },
    async change(id, body, signal) {
      const { status } = await ask(send(api.change, api.comment(pullRequest, id), { body }), signal, [404])
      return status !== 404
    },
    async remove(id, signal) {
      await ask(send('DELETE', api.comment(pullRequest, id)), signal, [404])
    },
    async findSelf(signal) {
      // The API of GitHub Enterprise Server is below /api/v3, and its GraphQL endpoint is not.
      const url = at(`${api.self.url}`).replace('/v3/graphql', '/graphql')
      const reply = await ask({ ...api.self, url }, signal, [400, 401, 403, 404])
      return reply.status < 400 ? memberAt(reply.json(), ...api.selfId) : undefined
    },
    readPull: signal =>
      withRetries(async () => {
        const reply = await ask({ method: 'GET', url: at(api.pull(pullRequest)) }, signal)
        const pull = membersOf(reply.json())
        const labels: readonly unknown[] = Array.isArray(pull['labels']) ? pull['labels'] : []
        return {
          commit: String(memberAt(pull, 'head', 'sha') ?? pull['sha']),
          labels: labels.map(label => memberAt(label, 'name') ?? label),
        }
      }, signal),
    setStatus: (commit, status, signal) =>
      withRetries(async () => {
        // GitLab refuses a status that is pending already.
        const accepted = status.state === 'pending' ? [400] : []
        await ask(send('POST', api.status(pullRequest, commit), api.showStatus(status)), signal, accepted)
      }, signal),
    close,
  }
}

/** The comment in a response; none if the Git host itself has written it. */
function toComment(answer: unknown): Comment[] {
  const { id, body, user, author = user, system } = membersOf(answer)
  const who = memberAt(author, 'id')
  const isComment = typeof id === 'number' && typeof body === 'string' && typeof who === 'number'
  return isComment && system !== true ? [{ id, body, author: who }] : []
}

/** The next page (RFC 8288). It must be on the same host, because the token is sent to it. */
function nextPage({ headers }: HttpReply, origin: string): string | undefined {
  const links = (headers['link'] ?? '').slice(0, 8192).split(',')
  const next = links.find(link => /;\s*rel="next"/.test(link))
  const [, url = ''] = /^\s*<([^>]*)>/.exec(next ?? '') ?? []
  return URL.canParse(url) && new URL(url).origin === origin ? url : undefined
}
