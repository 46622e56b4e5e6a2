import { UploadError } from '../../errors.ts'
import { retry } from '../../flow/retry.ts'
import type { HttpReply } from '../../http/client.ts'
import { membersOf } from '../../members.ts'
import { type ForgeClient, RETRIES } from './forge-client.ts'
import type { Comment } from './forges.ts'
import type { PullRequest } from './pull-request.ts'

/** Maximum number of pages of comments that are read. */
const MOST_PAGES = 100

export interface CommentRequest {
  /** Distinguishes this comment from those of other jobs. */
  readonly name: string
  /** Number of the run. A comment of a later run is not replaced. */
  readonly run: number
  /** Markdown. */
  readonly body: string
  /** Makes the end of the body from the comment of an earlier run, which is empty if there is none. */
  readonly toEnd?: (earlier: string) => string
  /** Whether to update an earlier comment only, because there is nothing to show. */
  readonly isUpdate?: boolean
}

/** The outcome. `stale`: a later run has already written the comment. `omitted`: there was none to update. */
export type Written = 'created' | 'updated' | 'unchanged' | 'stale' | 'omitted'

/**
 * Creates a comment on a pull request, or updates the comment of an earlier run of the job. Parallel jobs have separate
 * comments.
 *
 * @throws UploadError `destination_failed`; CommentForbidden
 */
export async function writeComment(
  forge: ForgeClient,
  { name, run, body, toEnd, isUpdate }: CommentRequest,
  signal: AbortSignal,
): Promise<Written> {
  const comments = openComments(forge, name)
  const [before] = await comments.listOwn(signal)
  const end = toEnd?.(before?.comment.body ?? '') ?? ''
  const text = `${markerOf(name, run)}\n${body}${end}`
  if (before) {
    if (before.run > run) return 'stale'
    if (before.comment.body.trimEnd() === text.trimEnd()) return 'unchanged'
    if (await comments.change(before.comment.id, text, signal)) return 'updated'
    // The comment was deleted in the meantime.
  }
  if (isUpdate) return 'omitted'
  const id = await createOnce(comments, text, signal)
  // A parallel run of the job may have created another comment. The first one is kept.
  const first = (await comments.listOwn(signal)).find(one => one.comment.id !== id)
  if (first === undefined || first.comment.id > id) return 'created'
  if (first.run <= run) await comments.change(first.comment.id, text, signal)
  await comments.remove(id, signal)
  return first.run > run ? 'stale' : 'updated'
}

/** Creates the comment. Before a retry it checks for the comment, because only the response may have been lost. */
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

function markerOf(name: string, run: number): string {
  // Two hyphens would end the HTML comment early.
  return `<!-- upload-server comment ${encodeURIComponent(name).replaceAll('-', '%2D')} run ${run} -->`
}

/** The run that wrote the comment. Undefined if it is not the comment of this job. */
function runOf(body: string, name: string): number | undefined {
  const [begin = ''] = markerOf(name, 0).split(' run ')
  if (!body.startsWith(`${begin} run `)) return undefined
  const [, run] = /^(\d{1,15}) -->/.exec(body.slice(begin.length + ' run '.length)) ?? []
  return run === undefined ? undefined : Number(run)
}

/** The comments of one job on a pull request that the user of the token wrote. */
interface OwnComments {
  /** The oldest first. None if the user of the token is unknown, because others may have copied the marker. */
  listOwn(signal: AbortSignal): Promise<Marked[]>
  /** @returns the id of the comment */
  create(body: string, signal: AbortSignal): Promise<number>
  /** @returns false if the comment does not exist */
  change(id: number, body: string, signal: AbortSignal): Promise<boolean>
  remove(id: number, signal: AbortSignal): Promise<void>
}

interface Marked {
  readonly comment: Comment
  readonly run: number
}

function openComments(forge: ForgeClient, name: string): OwnComments {
  const { api, pullRequest } = forge
  let self: Promise<Author | undefined> | undefined
  /** The author of the comment that this token has just created. */
  let knownAuthor: Author | undefined
  return {
    async listOwn(signal) {
      const found = await listMarked(forge, name, signal)
      if (found.length === 0) return found
      if (knownAuthor === undefined) self ??= findSelf(forge, signal)
      const author = knownAuthor ?? (await self)
      return found
        .filter(({ comment }) => author !== undefined && isBy(author, comment))
        .sort((a, b) => a.comment.id - b.comment.id)
    },
    async create(body, signal) {
      const [url = ''] = api.comments(pullRequest).split('?', 1)
      const reply = await forge.ask('POST', url, { body }, signal)
      const comment = api.read(reply.json())
      if (!comment) throw notAForge(pullRequest)
      knownAuthor = { name: comment.author }
      return comment.id
    },
    async change(id, body, signal) {
      const reply = await forge.ask(api.change, api.comment(pullRequest, id), { body }, signal, [404])
      return reply.status !== 404
    },
    async remove(id, signal) {
      await forge.ask('DELETE', api.comment(pullRequest, id), undefined, signal, [404])
    },
  }
}

async function listMarked(
  { api, pullRequest, ask }: ForgeClient,
  name: string,
  signal: AbortSignal,
): Promise<Marked[]> {
  const { origin } = new URL(pullRequest.api)
  const found: Marked[] = []
  let next: string | undefined = api.comments(pullRequest)
  for (let page = 0; next !== undefined && page < MOST_PAGES; page++) {
    const reply: HttpReply = await ask('GET', next, undefined, signal)
    const list = reply.json()
    if (!Array.isArray(list)) throw notAForge(pullRequest)
    for (const item of list) {
      const comment = api.read(item)
      const run = comment && runOf(comment.body, name)
      if (comment && run !== undefined) found.push({ comment, run })
    }
    next = nextPage(reply, origin)
  }
  return found
}

/** The user of the token. Undefined if the token may not read it. */
async function findSelf(
  { api, pullRequest, ask }: ForgeClient,
  signal: AbortSignal,
): Promise<Author | undefined> {
  const reply = await ask('GET', `${pullRequest.api}/user`, undefined, signal, [401, 403, 404])
  if (reply.status < 400) {
    const { login, username } = membersOf(reply.json())
    return { name: String((pullRequest.forge === 'gitlab' ? username : login) ?? '') }
  }
  if (!api.viewer) return undefined
  const query = { query: '{ viewer { login } }' }
  const response = await ask('POST', api.viewer(pullRequest), query, signal, [400, 401, 403, 404])
  if (response.status >= 400) return undefined
  const { login } = membersOf(membersOf(membersOf(response.json())['data'])['viewer'])
  return typeof login === 'string' ? { name: login.replace(BOT, ''), isBot: true } : undefined
}

/** The author of a comment. */
interface Author {
  readonly name: string
  /** Whether it is an app. The REST API of GitHub appends `[bot]` to its name, and GraphQL may not. */
  readonly isBot?: boolean
}

const BOT = /\[bot\]$/

function isBy({ name, isBot }: Author, comment: Comment): boolean {
  return isBot ? comment.isBot && comment.author.replace(BOT, '') === name : comment.author === name
}

/** The next page (RFC 8288). It must be on the same host, because the token is sent to it. */
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
    'destination_failed',
    `${new URL(api).host} did not respond like the API of a Git host. Check the URL.`,
  )
}
