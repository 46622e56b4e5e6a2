import { createHash } from 'node:crypto'
import { type Answer, type Played, startPlayer } from '../helpers/player.ts'

interface ForgeRequest extends Pick<Played, 'method' | 'headers'> {
  /** Without the query. */
  readonly path: string
  readonly query: URLSearchParams
  /** Undefined when there is none. */
  readonly body: unknown
}

export type CommentForgeKind = 'github' | 'gitea' | 'gitlab'

/** Who may have written a comment. */
export interface Author {
  readonly name: string
  /** A program without an account, which can't ask for its account. */
  readonly isBot?: boolean
  /** Whether GraphQL tells it who it is. Default: yes. */
  readonly mayAsk?: boolean
}

export interface StoredComment {
  readonly id: number
  body: string
  readonly author: Author
}

export interface CommentForge {
  readonly url: string
  /** Of its API. */
  readonly api: string
  readonly comments: StoredComment[]
  /** Every request as `METHOD /path?query`. */
  readonly asked: string[]
  /** Labels of the pull request. */
  readonly labels: string[]
  /** The bodies of the statuses of its commits. */
  readonly statuses: object[]
  /** Adds a comment as somebody would by the page. */
  write(author: Author, body: string): StoredComment
  /** What to answer instead, once for each. */
  readonly instead: ((request: ForgeRequest) => Answer | undefined)[]
  /** Done before a request is looked at. */
  before: (request: ForgeRequest) => void
  close(): Promise<void>
}

const SELF: Author = { name: 'ci' }
export const TOKEN = 'to-ken-0123456789'

/** A job of GitHub Actions for the pull request. */
export const ACTIONS_JOB = {
  GITHUB_ACTIONS: 'true',
  GITHUB_REPOSITORY: 'me/app',
  GITHUB_REF: 'refs/pull/7/merge',
  GITHUB_WORKFLOW: 'CI',
  GITHUB_JOB: 'e2e',
  GITHUB_RUN_NUMBER: '1',
  GITHUB_RUN_ATTEMPT: '1',
}

/** The latest commit of the pull request. */
export const COMMIT = 'c0ffee0c0ffee0c0ffee0c0ffee0c0ffee0c0ffe'

/** Each name has its own. */
const idOf = ({ name }: Author) => createHash('sha256').update(name).digest().readUInt32BE()

/** Most comments of a page, so that there are several. */
const PAGE = 3

interface Rules {
  readonly api: string
  readonly authorization: readonly [header: string, value: string]
  readonly headers: Readonly<Record<string, string>>
  /** Path below the API, and the query it is listed with. */
  readonly list: string
  readonly query: string
  readonly one: RegExp
  readonly change: 'PATCH' | 'PUT'
  readonly pull: string
  readonly statuses: string
  /** Names and values of a status. */
  readonly status: Readonly<Record<string, RegExp>>
  showPull(labels: readonly string[]): object
  readonly mostCharacters: number
  show(comment: StoredComment): object
}

/** What Gitea took from GitHub. */
const LIKE_GITHUB = {
  list: '/repos/me/app/issues/7/comments',
  one: /^\/repos\/me\/app\/issues\/comments\/(\d+)$/,
  pull: '/repos/me/app/pulls/7',
  statuses: '/repos/me/app/statuses/',
  status: {
    state: /^(?:success|failure|pending)$/,
    context: /./,
    description: /^.{1,140}$/,
    target_url: /^https:/,
  },
  showPull: (labels: readonly string[]) => ({
    head: { sha: COMMIT },
    labels: labels.map(name => ({ id: 1, name })),
  }),
  change: 'PATCH',
} as const

/**
 * How forges document it. GitHub: docs.github.com/en/rest/issues/comments and /rest/users/users; GitLab:
 * docs.gitlab.com/api/notes (merge requests) and /api/users; Gitea: its swagger.v1.json, which Forgejo has, too.
 */
const KINDS: Readonly<Record<CommentForgeKind, Rules>> = {
  github: {
    api: '/api/v3',
    authorization: ['authorization', `Bearer ${TOKEN}`],
    headers: { accept: 'application/vnd.github+json', 'x-github-api-version': '2022-11-28' },
    ...LIKE_GITHUB,
    query: 'per_page=100',
    show: ({ id, body, author }: StoredComment) => ({
      id,
      body,
      user: { login: author.name, id: idOf(author) },
    }),
    mostCharacters: 65_536,
  },
  gitea: {
    api: '/api/v1',
    authorization: ['authorization', `token ${TOKEN}`],
    headers: { accept: 'application/json' },
    ...LIKE_GITHUB,
    query: '',
    show: ({ id, body, author }: StoredComment) => ({
      id,
      body,
      user: { login: author.name, id: idOf(author) },
    }),
    mostCharacters: Infinity,
  },
  gitlab: {
    api: '/api/v4',
    authorization: ['private-token', TOKEN],
    headers: { accept: 'application/json' },
    list: '/projects/group%2Fme%2Fapp/merge_requests/7/notes',
    one: /^\/projects\/group%2Fme%2Fapp\/merge_requests\/7\/notes\/(\d+)$/,
    query: 'per_page=100&sort=asc&order_by=created_at',
    pull: '/projects/group%2Fme%2Fapp/merge_requests/7',
    statuses: '/projects/group%2Fme%2Fapp/statuses/',
    status: {
      state: /^(?:success|failed|pending)$/,
      name: /./,
      description: /^.{1,255}$/,
      target_url: /^https:/,
    },
    showPull: labels => ({ iid: 7, sha: COMMIT, labels }),
    change: 'PUT',
    show: ({ id, body, author }: StoredComment) => ({
      id,
      body,
      author: { username: author.name, id: idOf(author) },
      system: false,
    }),
    mostCharacters: 1_000_000,
  },
}

/** The address of the pull request's page. */
export function pageOf({ url }: CommentForge, kind: CommentForgeKind): string {
  const path = {
    github: 'me/app/pull/7',
    gitea: 'me/app/pulls/7',
    gitlab: 'group/me/app/-/merge_requests/7',
  }[kind]
  return `${url}/${path}`
}

/** A forge with one pull request, which answers only what its documentation has. */
export async function startCommentForge(kind: CommentForgeKind, self: Author = SELF): Promise<CommentForge> {
  const rules: Rules = KINDS[kind]
  const comments: StoredComment[] = []
  const asked: string[] = []
  const labels: string[] = []
  const statuses: object[] = []
  const instead: CommentForge['instead'] = []
  let lastId = 100

  function write(author: Author, body: string): StoredComment {
    const comment = { id: ++lastId, body, author }
    comments.push(comment)
    return comment
  }

  function handle({ method, path, query, headers, body }: ForgeRequest, base: string): Answer {
    const refuse = (status: number, message: string) => ({ status, body: { message } })
    const show: (comment: StoredComment) => object = rules.show
    const [name, value] = rules.authorization
    if (headers[name] !== value) return refuse(401, 'Bad credentials')
    for (const [name, value] of Object.entries(rules.headers))
      if (headers[name] !== value) return refuse(400, `${name} is ${headers[name]}`)
    const at = path.startsWith(rules.api) ? path.slice(rules.api.length) : undefined
    const number = rules.one.exec(at ?? '')?.[1]
    const comment = comments.find(({ id }) => id === Number(number))
    // docs.github.com/en/graphql/reference/queries#viewer, which knows programs, too
    if (rules === KINDS.github && method === 'POST' && path === '/api/graphql')
      return self.mayAsk === false
        ? refuse(403, 'Resource not accessible by integration')
        : { status: 200, body: { data: { viewer: { databaseId: idOf(self) } } } }
    if (method === 'GET' && at === '/user')
      return self.isBot
        ? refuse(403, 'Resource not accessible by integration')
        : { status: 200, body: { id: idOf(self) } }
    if (method === 'GET' && at === rules.list) {
      const page = Number(query.get('page') ?? 1)
      query.delete('page')
      if (query.toString() !== rules.query) return refuse(400, `unknown query ${query}`)
      if (rules.query === '') return { status: 200, body: comments.map(show) }
      const next = `<${base}${path}?${rules.query}&page=${page + 1}>; rel="next"`
      const last = `<${base}${path}?${rules.query}&page=9>; rel="last"`
      const isMore = comments.length > page * PAGE
      return {
        status: 200,
        headers: isMore ? { Link: `${last}, ${next}` } : {},
        body: comments.slice((page - 1) * PAGE, page * PAGE).map(show),
      }
    }
    if (query.size > 0) return refuse(400, 'no query is known here')
    if (method === 'GET' && at === rules.pull) return { status: 200, body: rules.showPull(labels) }
    if (method === 'POST' && at?.startsWith(rules.statuses) && /\/[\da-f]{40}$/.test(at)) {
      const given = Object.entries((body ?? {}) as object)
      if (given.some(([name, text]) => !rules.status[name]?.test(String(text))))
        return refuse(422, 'Validation Failed')
      // As GitLab does: a transition to the same state is none.
      const isPending = (one: unknown) => one !== undefined && (one as { state: string }).state === 'pending'
      if (rules === KINDS.gitlab && isPending(body) && isPending(statuses.at(-1)))
        return refuse(400, 'Cannot transition status via :enqueue from :pending')
      statuses.push(body as object)
      return { status: 201, body: { id: 1 } }
    }
    const isAdded = method === 'POST' && at === rules.list
    if (!isAdded && (number === undefined || ![rules.change, 'DELETE'].includes(method)))
      return refuse(404, 'Not Found')
    if (!isAdded && comment === undefined) return refuse(404, 'Not Found')
    if (comment && method === 'DELETE') {
      comments.splice(comments.indexOf(comment), 1)
      return { status: 204, body: '' }
    }
    const text = (body as { body?: unknown } | undefined)?.body
    if (
      headers['content-type'] !== 'application/json' ||
      typeof text !== 'string' ||
      Object.keys(body as object).length !== 1
    )
      return refuse(422, 'Validation Failed')
    if (text === '' || text.length > rules.mostCharacters) return refuse(422, 'body is too long')
    if (isAdded) return { status: 201, body: rules.show(write(self, text)) }
    if (comment) comment.body = text
    return { status: 200, body: comment && rules.show(comment) }
  }

  const forge: CommentForge = {
    url: '',
    api: '',
    comments,
    asked,
    labels,
    statuses,
    write,
    instead,
    before: () => {},
    close: async () => {},
  }
  const { url, close } = await startPlayer(({ method, url: target, headers, text }) => {
    const { origin, pathname: path, searchParams: query } = new URL(target, `http://${headers['host']}`)
    const request = { method, path, query, headers, body: text === '' ? undefined : JSON.parse(text) }
    asked.push(`${method} ${target}`)
    forge.before(request)
    return instead.shift()?.(request) ?? handle(request, origin)
  })
  return Object.assign(forge, { url, api: url + rules.api, close })
}
