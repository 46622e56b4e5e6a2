import { type Members, membersOf } from '../../members.ts'
import type { ForgeKind, PullRequest } from './pull-request.ts'

/** A comment as a forge tells of it. */
export interface Comment {
  readonly id: number
  readonly body: string
  /** Name of whoever wrote it. */
  readonly author: string
  /** Whether a program without an account wrote it; GitHub alone says so. */
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
  /** Where a token of a program, which has no account, is told by GraphQL who it is. */
  viewer?(pullRequest: PullRequest): string
  /** @returns undefined for what is no comment of a person or a program */
  read(answer: unknown): Comment | undefined
  /** What a token has to be allowed, in words. */
  readonly needs: string
}

function toComment(
  answer: unknown,
  pick: (raw: Members) => { author: unknown; isBot: boolean },
): Comment | undefined {
  const raw = membersOf(answer)
  const { id, body, system } = raw
  if (typeof id !== 'number' || typeof body !== 'string' || system === true) return undefined
  const { author, isBot } = pick(raw)
  return { id, body, author: String(author ?? ''), isBot }
}

/** Who wrote a comment at GitHub and Gitea. */
const userOf = (raw: Members) => membersOf(raw['user'])

const ofIssue = ({ api, repo, pull }: PullRequest) => `${api}/repos/${repo}/issues/${pull}/comments`
const oneOfIssue = ({ api, repo }: PullRequest, id: number) => `${api}/repos/${repo}/issues/comments/${id}`
const ofMergeRequest = ({ api, repo, pull }: PullRequest) =>
  `${api}/projects/${encodeURIComponent(repo)}/merge_requests/${pull}/notes`

/** By their references: GitHub's REST API "Issue comments", GitLab's "Notes API", Gitea's and Forgejo's swagger.v1.json. */
export const DIALECTS: Readonly<Record<ForgeKind, Dialect>> = {
  github: {
    headers: token => ({
      authorization: `Bearer ${token}`,
      accept: 'application/vnd.github+json',
      'x-github-api-version': '2022-11-28',
    }),
    comments: pullRequest => `${ofIssue(pullRequest)}?per_page=100`,
    comment: oneOfIssue,
    change: 'PATCH',
    // GitHub's own at https://api.github.com, that of a company below /api/v3.
    viewer: ({ api }) => `${api.replace(/\/v3$/, '')}/graphql`,
    read: answer =>
      toComment(answer, raw => ({ author: userOf(raw)['login'], isBot: userOf(raw)['type'] === 'Bot' })),
    needs: 'the job needs "permissions: pull-requests: write", which pull requests from forks do not get',
  },
  gitea: {
    headers: token => ({ authorization: `token ${token}`, accept: 'application/json' }),
    comments: ofIssue,
    comment: oneOfIssue,
    change: 'PATCH',
    read: answer => toComment(answer, raw => ({ author: userOf(raw)['login'], isBot: false })),
    needs: 'the token needs the scope "write:issue"',
  },
  gitlab: {
    headers: token => ({ 'private-token': token, accept: 'application/json' }),
    comments: pullRequest => `${ofMergeRequest(pullRequest)}?per_page=100&sort=asc&order_by=created_at`,
    comment: (pullRequest, id) => `${ofMergeRequest(pullRequest)}/${id}`,
    change: 'PUT',
    read: answer =>
      toComment(answer, raw => ({ author: membersOf(raw['author'])['username'], isBot: false })),
    needs: 'the token needs the scope "api"; CI_JOB_TOKEN may not write comments',
  },
}
