import { UploadError } from '../../../errors.ts'
import { excerpt, type HttpReply } from '../../../http/client.ts'
import { parseRetryAfter } from '../../../http/network.ts'

/** Where requests go, for messages. */
export interface Remote {
  readonly host: string
  readonly repo: string
  readonly branch: string
  readonly token: string
}

/** GitHub asks to wait a minute when it does not say for how long. */
const LIMITED_S = 60

const NO_BRANCH =
  /branch.{0,300}(?:not (?:found|exist)|doesn't exist)|no commit found for the ref|when you are on a branch/i
const PROTECTED = /protected|rule violation|pull request|status check|approving review|not allowed to push/i
const TOO_LARGE = /too large|exceed\w{0,3} .{0,300}(?:limit|size)/i
const STALE = [
  /"sha" wasn't supplied/i, // GitHub
  /already exists|文件.{0,30}已.{0,30}存在/i, // GitLab, Gitea, Gitee
  /does not match|has changed|changed since/i, // Gitea, GitLab
  /(?:does not|doesn't) exist|sha is missing/i, // GitLab, Gitee
  /refresh and try again/i, // GitLab, when two commits meet
]
/** What an answer says at its beginning is looked at, in characters. */
const MOST_WORDS = 4096

/**
 * Whether a commit was refused because the branch or the file is no longer as it was seen before: by another commit in
 * the same moment, or by an earlier attempt whose answer was lost.
 *
 * @param wasThere whether the file was there when it was looked for
 */
export function isStale(reply: HttpReply, wasThere: boolean): boolean {
  const words = wordsOf(reply)
  if (reply.status === 409) return !PROTECTED.test(words)
  if (reply.status === 404) return wasThere && !NO_BRANCH.test(words)
  return [400, 422].includes(reply.status) && speaksOfStale(words) && !NO_BRANCH.test(words)
}

/** Whether a 404 speaks of the branch and not of a file in it. */
export function lacksBranch(reply: HttpReply): boolean {
  return reply.status === 404 && NO_BRANCH.test(wordsOf(reply))
}

/** The error behind an answer that is no success, with what to do about it. */
export function explainReply(reply: HttpReply, doing: string, remote: Remote): UploadError {
  const words = wordsOf(reply)
  const said = words === '' ? '' : ` It said: ${excerpt(words.replaceAll(remote.token, '[secret]'))}`
  const message = (hint: string) => `${remote.host} answered ${reply.status} to ${doing}: ${hint}.${said}`
  if (isLimited(reply, words)) {
    const retryAfterS = readPause(reply)
    return new UploadError('delivery_failed', message('it takes no more requests now'), {
      retryable: true,
      retryAfterS,
    })
  }
  const retryable = isStale(reply, false)
  return new UploadError('delivery_failed', message(hintOf(reply.status, words, remote)), { retryable })
}

/** The error behind an answer whose status is a success, but that does not say what a forge says then. */
export function noForge(reply: HttpReply, doing: string, { host, token }: Remote): UploadError {
  const said = excerpt(reply.text.replaceAll(token, '[secret]'))
  return new UploadError(
    'delivery_failed',
    `${host} answered ${reply.status} to ${doing}, but not as its API does: check "apiUrl", and what stands between. It said: ${said}`,
  )
}

function hintOf(status: number, words: string, { repo, branch }: Remote): string {
  if (status >= 300 && status < 400) return `"${repo}" has moved; set "repo" and "apiUrl" to where it is now`
  if (status === 401) return 'the token is wrong, has expired or lacks a scope'
  if (NO_BRANCH.test(words)) return `"${repo}" has no branch "${branch}"; make it, or correct "branch"`
  if (PROTECTED.test(words))
    return `the branch "${branch}" is protected; let the token's owner push to it, or use another branch`
  if (status === 413 || TOO_LARGE.test(words))
    return 'the file is too large for it; set "maxBytes" to its limit'
  if (status === 403) return `the token may not do that in "${repo}"; it needs write access to its contents`
  if (status === 404)
    return `"${repo}" or its branch "${branch}" is not there, or the token may not see it or write to it`
  if (speaksOfStale(words) || status === 409)
    return `something else changes the branch "${branch}" at the same time`
  return 'it refused'
}

/** Limits on requests: 429, and GitHub's 403 with `x-ratelimit-remaining: 0`, `Retry-After` or words to that effect. */
function isLimited({ status, headers }: HttpReply, words: string): boolean {
  if (status !== 403) return status === 429
  return (
    headers['x-ratelimit-remaining'] === '0' || 'retry-after' in headers || /rate limit|abuse/i.test(words)
  )
}

function readPause({ headers }: HttpReply): number {
  const pause = parseRetryAfter(headers['retry-after'])
  if (pause !== undefined) return pause
  const isSpent = headers['x-ratelimit-remaining'] === '0' || headers['ratelimit-remaining'] === '0'
  const reset = Number(headers['x-ratelimit-reset'] ?? headers['ratelimit-reset'])
  return isSpent && reset > 0 ? Math.max(0, Math.ceil(reset - Date.now() / 1000)) : LIMITED_S
}

function speaksOfStale(words: string): boolean {
  return STALE.some(pattern => pattern.test(words))
}

/** What the answer says in its JSON, or all of it when it is none; its beginning. */
function wordsOf({ text }: HttpReply): string {
  return allWordsOf(text).slice(0, MOST_WORDS)
}

function allWordsOf(text: string): string {
  try {
    const answer: unknown = JSON.parse(text)
    if (typeof answer !== 'object' || answer === null) return text
    const { message, messages, error, errors } = answer as Record<string, unknown>
    const words = message ?? messages ?? error ?? errors ?? answer
    return typeof words === 'string' ? words : JSON.stringify(words)
  } catch {
    return text
  }
}
