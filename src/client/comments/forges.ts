import { type Members, membersOf } from '../../members.ts'
import type { ForgeKind, PullRequest } from './pull-request.ts'

/** A comment as the API of a Git host returns it. */
export interface Comment {
  readonly id: number
  readonly body: string
  /** User name of its author. */
  readonly author: string
  /** Whether the author is an app without a user account. Only GitHub returns that. */
  readonly isBot: boolean
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

/** The URLs, headers and fields of the API of one kind of Git host. */
export interface ForgeApi {
  headers(token: string): Record<string, string>
  /** URL that lists the comments with GET and creates one with POST. */
  comments(pullRequest: PullRequest): string
  /** URL of a comment. Update it with the method in `change`, delete it with DELETE. */
  comment(pullRequest: PullRequest, id: number): string
  readonly change: 'PATCH' | 'PUT'
  /** GraphQL endpoint that returns the user of a token of an app, for which `/user` is forbidden. */
  viewer?(pullRequest: PullRequest): string
  /** @returns undefined if the value is not a comment of a user or an app */
  read(answer: unknown): Comment | undefined
  /** URL of a pull request. */
  pull(pullRequest: PullRequest): string
  readPull(answer: unknown): { readonly commit: string; readonly labels: readonly string[] }
  /** URL that sets a status of a commit with POST. */
  status(pullRequest: PullRequest, commit: string): string
  showStatus(status: CommitStatus): object
  /** The permission that the token needs, as the end of a sentence. */
  readonly needs: string
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : '')

/** A pull request of GitHub or Gitea. */
const ofPulls: Pick<ForgeApi, 'pull' | 'readPull' | 'status' | 'showStatus'> = {
  pull: ({ api, repo, pull }) => `${api}/repos/${repo}/pulls/${pull}`,
  readPull(answer) {
    const { head, labels } = membersOf(answer)
    const names = Array.isArray(labels) ? labels.map(label => textOf(membersOf(label)['name'])) : []
    return { commit: textOf(membersOf(head)['sha']), labels: names }
  },
  status: ({ api, repo }, commit) => `${api}/repos/${repo}/statuses/${commit}`,
  showStatus: ({ state, name, description, url }) => ({
    ...{ state, context: name, description },
    ...(url !== undefined && { target_url: url }),
  }),
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

/** The author of a comment on GitHub or Gitea. */
const userOf = (raw: Members) => membersOf(raw['user'])

const ofIssue = ({ api, repo, pull }: PullRequest) => `${api}/repos/${repo}/issues/${pull}/comments`
const oneOfIssue = ({ api, repo }: PullRequest, id: number) => `${api}/repos/${repo}/issues/comments/${id}`
const ofMergeRequest = ({ api, repo, pull }: PullRequest) =>
  `${api}/projects/${encodeURIComponent(repo)}/merge_requests/${pull}/notes`

/** Implemented from the API references: GitHub's REST API "Issue comments", GitLab's "Notes API", Gitea's and Forgejo's swagger.v1.json. */
export const FORGE_APIS: Readonly<Record<ForgeKind, ForgeApi>> = {
  github: {
    headers: token => ({
      authorization: `Bearer ${token}`,
      accept: 'application/vnd.github+json',
      'x-github-api-version': '2022-11-28',
    }),
    comments: pullRequest => `${ofIssue(pullRequest)}?per_page=100`,
    comment: oneOfIssue,
    ...ofPulls,
    change: 'PATCH',
    // The API of GitHub Enterprise Server is below /api/v3, and its GraphQL endpoint is not.
    viewer: ({ api }) => `${api.replace(/\/v3$/, '')}/graphql`,
    read: answer =>
      toComment(answer, raw => ({ author: userOf(raw)['login'], isBot: userOf(raw)['type'] === 'Bot' })),
    needs:
      'the job needs "permissions: pull-requests: write", and "statuses: write" for --status, which pull requests from forks do not get',
  },
  gitea: {
    headers: token => ({ authorization: `token ${token}`, accept: 'application/json' }),
    comments: ofIssue,
    comment: oneOfIssue,
    ...ofPulls,
    change: 'PATCH',
    read: answer => toComment(answer, raw => ({ author: userOf(raw)['login'], isBot: false })),
    needs: 'the token needs the scope "write:issue"',
  },
  gitlab: {
    headers: token => ({ 'private-token': token, accept: 'application/json' }),
    comments: pullRequest => `${ofMergeRequest(pullRequest)}?per_page=100&sort=asc&order_by=created_at`,
    comment: (pullRequest, id) => `${ofMergeRequest(pullRequest)}/${id}`,
    pull: pullRequest => ofMergeRequest(pullRequest).replace(/\/notes$/, ''),
    readPull(answer) {
      const { sha, labels } = membersOf(answer)
      return { commit: textOf(sha), labels: Array.isArray(labels) ? labels.map(textOf) : [] }
    },
    status: ({ api, repo }, commit) => `${api}/projects/${encodeURIComponent(repo)}/statuses/${commit}`,
    showStatus: ({ state, name, description, url }) => ({
      ...{ state: state === 'failure' ? 'failed' : state, name, description },
      ...(url !== undefined && { target_url: url }),
    }),
    change: 'PUT',
    read: answer =>
      toComment(answer, raw => ({ author: membersOf(raw['author'])['username'], isBot: false })),
    needs: 'the token needs the scope "api"; CI_JOB_TOKEN may not write comments',
  },
}
