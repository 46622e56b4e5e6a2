import { UploadError } from '../../errors.ts'
import { retry } from '../../flow/retry.ts'
import type { HttpReply } from '../../http/client.ts'
import { membersOf } from '../../members.ts'
import { type ForgeAccess, type ForgeClient, openForge, RETRIES } from './forge-client.ts'
import { type Comment, DIALECTS } from './forges.ts'
import type { PullRequest } from './pull-request.ts'

/** Most pages of comments that are read. */
const MOST_PAGES = 100

export interface CommentRequest extends ForgeAccess {
  /** Tells this comment from those of other jobs. */
  readonly name: string
  /** Of two runs, the one with the higher number holds. */
  readonly run: number
  /** Markdown. */
  readonly body: string
}

/** What became of it: `stale` means that a later run has written it already. */
export type Written = 'created' | 'updated' | 'unchanged' | 'stale'

/**
 * Writes a comment at a pull request, or brings the one up to date that an earlier run of the job has written. Jobs side
 * by side each have their own.
 *
 * @throws UploadError `delivery_failed`; CommentForbidden
 */
export async function writeComment(request: CommentRequest, signal: AbortSignal): Promise<Written> {
  const comments = openComments(request)
  const text = `${markOf(request.name, request.run)}\n${request.body}`
  try {
    const [before] = await comments.listOwn(signal)
    if (before) {
      if (before.run > request.run) return 'stale'
      if (before.comment.body.trimEnd() === text.trimEnd()) return 'unchanged'
      if (await comments.change(before.comment.id, text, signal)) return 'updated'
      // Somebody has removed it meanwhile.
    }
    const id = await createOnce(comments, text, signal)
    // Another run of the job may have written one in the same moment: the first of them stays.
    const first = (await comments.listOwn(signal)).find(one => one.comment.id !== id)
    if (first === undefined || first.comment.id > id) return 'created'
    if (first.run <= request.run) await comments.change(first.comment.id, text, signal)
    await comments.remove(id, signal)
    return first.run > request.run ? 'stale' : 'updated'
  } finally {
    comments.close()
  }
}

/** When an answer is lost, what was to be written may be there. */
async function createOnce(comments: OwnComments, text: string, signal: AbortSignal): Promise<number> {
  let isAgain = false
  const create = async () => {
    const written = isAgain ? await comments.listOwn(signal) : []
    isAgain = true
    const same = written.find(({ comment }) => comment.body.trimEnd() === text.trimEnd())
    return same?.comment.id ?? comments.create(text, signal)
  }
  return retry(create, RETRIES, signal)
}

function markOf(name: string, run: number): string {
  // Two hyphens would end the remark of HTML early.
  return `<!-- upload-server comment ${encodeURIComponent(name).replaceAll('-', '%2D')} run ${run} -->`
}

/** The run that a comment of this name is of; undefined when it is another. */
function runOf(body: string, name: string): number | undefined {
  const [begin = ''] = markOf(name, 0).split(' run ')
  if (!body.startsWith(`${begin} run `)) return undefined
  const [, run] = /^(\d{1,15}) -->/.exec(body.slice(begin.length + ' run '.length)) ?? []
  return run === undefined ? undefined : Number(run)
}

/** The comments of one name at a pull request, by whoever the token is of. */
interface OwnComments {
  /** The oldest first; none while it is not known whose the token is. People and programs may have copied the mark. */
  listOwn(signal: AbortSignal): Promise<Marked[]>
  /** @returns its id */
  create(body: string, signal: AbortSignal): Promise<number>
  /** @returns false when it is not there */
  change(id: number, body: string, signal: AbortSignal): Promise<boolean>
  remove(id: number, signal: AbortSignal): Promise<void>
  close(): void
}

interface Marked {
  readonly comment: Comment
  readonly run: number
}

function openComments(request: CommentRequest): OwnComments {
  const { pullRequest, name } = request
  const dialect = DIALECTS[pullRequest.forge]
  const forge = openForge(request)
  let self: Promise<Author | undefined> | undefined
  /** Who wrote what this token has just written. */
  let learnt: Author | undefined
  return {
    async listOwn(signal) {
      const found = await listMarked(forge, pullRequest, name, signal)
      if (found.length === 0) return found
      if (learnt === undefined) self ??= findSelf(forge, pullRequest, signal)
      const author = learnt ?? (await self)
      return found
        .filter(({ comment }) => author !== undefined && isBy(author, comment))
        .sort((a, b) => a.comment.id - b.comment.id)
    },
    async create(body, signal) {
      const [url = ''] = dialect.comments(pullRequest).split('?', 1)
      const reply = await forge.ask('POST', url, { body }, signal)
      const comment = dialect.read(reply.json())
      if (!comment) throw notAForge(pullRequest)
      learnt = { name: comment.author }
      return comment.id
    },
    async change(id, body, signal) {
      const reply = await forge.ask(dialect.change, dialect.comment(pullRequest, id), { body }, signal, [404])
      return reply.status !== 404
    },
    async remove(id, signal) {
      await forge.ask('DELETE', dialect.comment(pullRequest, id), undefined, signal, [404])
    },
    close: forge.close,
  }
}

async function listMarked(
  forge: ForgeClient,
  pullRequest: PullRequest,
  name: string,
  signal: AbortSignal,
): Promise<Marked[]> {
  const dialect = DIALECTS[pullRequest.forge]
  const { origin } = new URL(pullRequest.api)
  const found: Marked[] = []
  let next: string | undefined = dialect.comments(pullRequest)
  for (let page = 0; next !== undefined && page < MOST_PAGES; page++) {
    const reply: HttpReply = await forge.ask('GET', next, undefined, signal)
    const list = reply.json()
    if (!Array.isArray(list)) throw notAForge(pullRequest)
    for (const item of list) {
      const comment = dialect.read(item)
      const run = comment && runOf(comment.body, name)
      if (comment && run !== undefined) found.push({ comment, run })
    }
    next = nextPage(reply, origin)
  }
  return found
}

/** Whoever the token is of. Undefined: it may not ask. */
async function findSelf(
  forge: ForgeClient,
  pullRequest: PullRequest,
  signal: AbortSignal,
): Promise<Author | undefined> {
  const reply = await forge.ask('GET', `${pullRequest.api}/user`, undefined, signal, [401, 403, 404])
  if (reply.status < 400) {
    const { login, username } = membersOf(reply.json())
    return { name: String((pullRequest.forge === 'gitlab' ? username : login) ?? '') }
  }
  const { viewer } = DIALECTS[pullRequest.forge]
  if (!viewer) return undefined
  const query = { query: '{ viewer { login } }' }
  const response = await forge.ask('POST', viewer(pullRequest), query, signal, [400, 401, 403, 404])
  if (response.status >= 400) return undefined
  const { login } = membersOf(membersOf(membersOf(response.json())['data'])['viewer'])
  return typeof login === 'string' ? { name: login.replace(BOT, ''), isBot: true } : undefined
}

/** Who wrote a comment. */
interface Author {
  readonly name: string
  /** Whether it is a program, of whose name GitHub's two interfaces write the end differently. */
  readonly isBot?: boolean
}

const BOT = /\[bot\]$/

function isBy({ name, isBot }: Author, comment: Comment): boolean {
  return isBot ? comment.isBot && comment.author.replace(BOT, '') === name : comment.author === name
}

/** The page that follows (RFC 8288), of the same host: the token is sent there. */
function nextPage({ headers }: HttpReply, origin: string): string | undefined {
  for (const part of (headers['link'] ?? '').slice(0, 8192).split(',')) {
    const [target = '', ...parameters] = part.split(';').map(one => one.trim())
    if (!parameters.includes('rel="next"') || !target.startsWith('<') || !target.endsWith('>')) continue
    const url = target.slice(1, -1)
    if (URL.canParse(url) && new URL(url).origin === origin) return url
  }
  return undefined
}

function notAForge({ api }: PullRequest): UploadError {
  return new UploadError(
    'delivery_failed',
    `${new URL(api).host} did not respond like the API of a Git host. Check the URL.`,
  )
}
