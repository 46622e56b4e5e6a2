import type { Forge, PullRequest } from './pull-request.ts'

/** A comment as a forge tells of it. */
export interface Comment {
  readonly id: number
  readonly body: string
  /** Name of whoever wrote it. */
  readonly author: string
  /** Whether a program wrote it that has no account of its own: nobody else can. */
  readonly isBot: boolean
}

/** How a forge is asked. */
export interface Dialect {
  headers(token: string): Record<string, string>
  /** Lists with GET, adds one with POST. */
  comments(pullRequest: PullRequest): string
  /** Changes one with `change`, removes it with DELETE. */
  comment(pullRequest: PullRequest, id: number): string
  readonly change: 'PATCH' | 'PUT'
  /** @returns undefined for what is no comment of a person or a program */
  read(answer: unknown): Comment | undefined
  /** What a token has to be allowed, in words. */
  readonly needs: string
}

interface Raw {
  readonly id?: unknown
  readonly body?: unknown
  readonly system?: unknown
  readonly user?: { readonly login?: unknown; readonly type?: unknown; readonly id?: unknown }
  readonly author?: { readonly username?: unknown }
}

function toComment(
  answer: unknown,
  pick: (raw: Raw) => { author: unknown; isBot: boolean },
): Comment | undefined {
  const raw = answer as Raw | null
  if (typeof raw?.id !== 'number' || typeof raw.body !== 'string' || raw.system === true) return undefined
  const { author, isBot } = pick(raw)
  return { id: raw.id, body: raw.body, author: String(author ?? ''), isBot }
}

const ofIssue = ({ api, repo, pull }: PullRequest) => `${api}/repos/${repo}/issues/${pull}/comments`
const oneOfIssue = ({ api, repo }: PullRequest, id: number) => `${api}/repos/${repo}/issues/comments/${id}`
const ofMergeRequest = ({ api, repo, pull }: PullRequest) =>
  `${api}/projects/${encodeURIComponent(repo)}/merge_requests/${pull}/notes`

/** By their references: GitHub's REST API "Issue comments", GitLab's "Notes API", Gitea's and Forgejo's swagger.v1.json. */
export const DIALECTS: Readonly<Record<Forge, Dialect>> = {
  github: {
    headers: token => ({
      authorization: `Bearer ${token}`,
      accept: 'application/vnd.github+json',
      'x-github-api-version': '2022-11-28',
    }),
    comments: pullRequest => `${ofIssue(pullRequest)}?per_page=100`,
    comment: oneOfIssue,
    change: 'PATCH',
    read: answer => toComment(answer, ({ user }) => ({ author: user?.login, isBot: user?.type === 'Bot' })),
    needs: 'the job needs "permissions: pull-requests: write", which pull requests from forks do not get',
  },
  gitea: {
    headers: token => ({ authorization: `token ${token}`, accept: 'application/json' }),
    comments: ofIssue,
    comment: oneOfIssue,
    change: 'PATCH',
    // The user of its Actions has no account, and a number below zero.
    read: answer => toComment(answer, ({ user }) => ({ author: user?.login, isBot: Number(user?.id) < 0 })),
    needs: 'the token needs the scope "write:issue"',
  },
  gitlab: {
    headers: token => ({ 'private-token': token, accept: 'application/json' }),
    comments: pullRequest => `${ofMergeRequest(pullRequest)}?per_page=100&sort=asc&order_by=created_at`,
    comment: (pullRequest, id) => `${ofMergeRequest(pullRequest)}/${id}`,
    change: 'PUT',
    read: answer => toComment(answer, ({ author }) => ({ author: author?.username, isBot: false })),
    needs: 'the token needs the scope "api"; CI_JOB_TOKEN may not write comments',
  },
}
