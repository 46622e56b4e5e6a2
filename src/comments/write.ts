import { UploadError } from '../errors.ts'
import { retry } from '../flow/retry.ts'
import { createHttpClient, type HttpReply, type HttpRequest } from '../http/client.ts'
import type { Outgoing } from '../http/proxy/outgoing.ts'
import { type Comment, DIALECTS } from './forges.ts'
import type { PullRequest } from './pull-request.ts'

/** Most pages of comments that are read. */
const MOST_PAGES = 100
/** Most that a page of comments may have, bytes: each may have 64 KiB at GitHub, a megabyte at GitLab. */
const PAGE_BYTES = 32 * 1024 * 1024
const RETRIES = { attempts: 4, longestPauseMs: 60_000 }

export interface CommentRequest {
  readonly pullRequest: PullRequest
  readonly token: string
  /** Tells this comment from those of other jobs. */
  readonly name: string
  /** Of two runs, the one with the higher number holds. */
  readonly run: number
  /** Markdown. */
  readonly body: string
  /** Through which proxies the forge is reached. Default: none. */
  readonly outgoing?: Outgoing
}

/** What became of it: `stale` means that a later run has written it already. */
export type Written = 'created' | 'updated' | 'unchanged' | 'stale'

/**
 * Writes a comment at a pull request, or brings the one up to date that an earlier run of the job has written. Jobs side
 * by side each have their own.
 *
 * @throws UploadError `delivery_failed`
 */
export async function writeComment(request: CommentRequest, signal: AbortSignal): Promise<Written> {
  const api = openApi(request)
  const text = `${markOf(request.name, request.run)}\n${request.body}`
  try {
    const [before] = await api.listOwn(signal)
    if (before) {
      if (before.run > request.run) return 'stale'
      if (before.comment.body.trimEnd() === text.trimEnd()) return 'unchanged'
      if (await api.change(before.comment.id, text, signal)) return 'updated'
      // Somebody has removed it meanwhile.
    }
    const id = await createOnce(api, text, signal)
    // Another run of the job may have written one in the same moment: the first of them stays.
    const first = (await api.listOwn(signal)).find(one => one.comment.id !== id)
    if (first === undefined || first.comment.id > id) return 'created'
    if (first.run <= request.run) await api.change(first.comment.id, text, signal)
    await api.remove(id, signal)
    return first.run > request.run ? 'stale' : 'updated'
  } finally {
    api.close()
  }
}

/** When an answer is lost, what was to be written may be there. */
async function createOnce(
  api: ReturnType<typeof openApi>,
  text: string,
  signal: AbortSignal,
): Promise<number> {
  let isAgain = false
  const create = async () => {
    const written = isAgain ? await api.listOwn(signal) : []
    isAgain = true
    const same = written.find(({ comment }) => comment.body.trimEnd() === text.trimEnd())
    return same?.comment.id ?? api.create(text, signal)
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

function openApi({ pullRequest, token, name, outgoing }: CommentRequest) {
  const dialect = DIALECTS[pullRequest.forge]
  const { host, origin } = new URL(pullRequest.api)
  const client = createHttpClient({ insecureTls: false }, { name: host, outgoing, warn: () => {} })

  async function ask(
    method: HttpRequest['method'],
    url: string,
    body: object | undefined,
    signal: AbortSignal,
    accepted: readonly number[] = [],
  ): Promise<HttpReply> {
    const headers = { ...dialect.headers(token), ...(body && { 'content-type': 'application/json' }) }
    const request: HttpRequest = {
      method,
      url,
      headers,
      ...(body && { body: JSON.stringify(body) }),
      accept: status => (status >= 200 && status < 300) || accepted.includes(status),
      maxReplyBytes: PAGE_BYTES,
      explain: reply => explain(reply, token, dialect.needs),
    }
    // What adds something is not sent again without a look at what is there.
    const retries = method === 'POST' ? { attempts: 1 } : RETRIES
    return retry(() => client.send(request, signal), retries, signal)
  }

  /** Undefined for tokens of programs, which have no account. */
  async function findSelf(signal: AbortSignal): Promise<string | undefined> {
    const reply = await ask('GET', `${pullRequest.api}/user`, undefined, signal, [401, 403, 404])
    if (reply.status >= 400) return undefined
    const { login, username } = reply.json() as { login?: unknown; username?: unknown }
    return String((pullRequest.forge === 'gitlab' ? username : login) ?? '')
  }

  let self: Promise<string | undefined> | undefined

  return {
    /** The comments with this name by whoever the token is of, the oldest first. Others may have copied the mark. */
    async listOwn(signal: AbortSignal): Promise<{ comment: Comment; run: number }[]> {
      const found: { comment: Comment; run: number }[] = []
      let next: string | undefined = dialect.comments(pullRequest)
      for (let page = 0; next !== undefined && page < MOST_PAGES; page++) {
        const reply: HttpReply = await ask('GET', next, undefined, signal)
        const list = reply.json()
        if (!Array.isArray(list)) throw noForge(host)
        for (const item of list) {
          const comment = dialect.read(item)
          const run = comment && runOf(comment.body, name)
          if (comment && run !== undefined) found.push({ comment, run })
        }
        next = nextPage(reply, origin)
      }
      if (found.length === 0) return found
      self ??= findSelf(signal)
      const login = await self
      return found
        .filter(({ comment }) => (login === undefined ? comment.isBot : comment.author === login))
        .sort((a, b) => a.comment.id - b.comment.id)
    },
    async create(body: string, signal: AbortSignal): Promise<number> {
      const reply = await ask('POST', dialect.comments(pullRequest).split('?', 1).join(''), { body }, signal)
      const comment = dialect.read(reply.json())
      if (!comment) throw noForge(host)
      return comment.id
    },
    /** @returns false when it is not there */
    async change(id: number, body: string, signal: AbortSignal): Promise<boolean> {
      const reply = await ask(dialect.change, dialect.comment(pullRequest, id), { body }, signal, [404])
      return reply.status !== 404
    },
    async remove(id: number, signal: AbortSignal): Promise<void> {
      await ask('DELETE', dialect.comment(pullRequest, id), undefined, signal, [404])
    },
    close: () => client.close(),
  }
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

function explain({ status, text }: HttpReply, token: string, needs: string): string | undefined {
  const said = text.replaceAll(token, '[secret]')
  return [401, 403, 404].includes(status) ? `For a comment ${needs}. It said: ${said}` : said
}

function noForge(host: string): UploadError {
  return new UploadError(
    'delivery_failed',
    `${host} does not answer as the API of a forge does: check the address.`,
  )
}
