import type { HttpReply, Refusal } from '../../../http/client.ts'
import { parseRetryAfter } from '../../../http/network.ts'
import { membersOf } from '../../../members.ts'

/** Pause after a rate limit without a time, in seconds, as GitHub recommends. */
const LIMITED_S = 60

const NO_BRANCH =
  /branch.{0,300}(?:not (?:found|exist)|doesn't exist)|no commit found for the ref|when you are on a branch/i
const PROTECTED = /protected|rule violation|pull request|status check|approving review|not allowed to push/i
/** The words of GitHub, of GitLab and Gitea, of Gitea and GitLab, of GitLab, and of GitLab when two commits meet. */
const STALE =
  /"sha" wasn't supplied|already exists|does not match|has changed|changed since|(?:does not|doesn't) exist|refresh and try again/i
/** Maximum number of characters of a response that are searched. */
const MAX_SEARCHED_CHARACTERS = 4096

/** What responses mean, by status and words; the first rule counts. `{repo}` and `{branch}` are names. */
const RULES: readonly [response: RegExp, why: string, advice?: string][] = [
  [/^3/, '"{repo}" has moved', 'Set "repo" and "apiUrl" to its new location.'],
  [/^401/, 'the token is invalid or expired, or lacks a scope', 'Check "token".'],
  // GitHub calls a resource "protected by organization SAML enforcement", which is not a protected branch.
  [
    /\bSAML\b/,
    'the organization of "{repo}" requires single sign-on',
    'Authorize "token" for the organization in the settings of the token.',
  ],
  [
    /\barchived\b/i,
    '"{repo}" is archived and accepts no commits',
    'Unarchive it, or use another repository.',
  ],
  [NO_BRANCH, '"{repo}" has no branch "{branch}"', 'Create it, or correct "branch".'],
  [
    PROTECTED,
    'the branch "{branch}" is protected',
    'Allow the owner of the token to push to it, or use another branch.',
  ],
  [
    /^413|too large|exceed\w{0,3} .{0,300}(?:limit|size)/i,
    'the file is too large',
    'Set "fileSize" to the limit of the server.',
  ],
  [/^403/, 'the token has no permission in "{repo}"', 'Give it write access to the contents.'],
  [
    /^404/,
    '"{repo}" or its branch "{branch}" does not exist, or the token has no access to it',
    'Check "repo", "branch" and "token".',
  ],
  [
    new RegExp(`^409|${STALE.source}`, 'i'),
    'something else changed the branch "{branch}" at the same time',
    'Try again.',
  ],
  [/^/, 'it rejected the request'],
]

/**
 * Returns whether a commit was rejected because the branch or the file has changed: by a concurrent commit, or by an earlier
 * attempt whose response was lost.
 *
 * @param wasThere whether the file existed at the lookup
 */
export function isStale(reply: HttpReply, wasThere: boolean): boolean {
  const words = wordsOf(reply)
  if (reply.status === 409) return !PROTECTED.test(words)
  if (reply.status === 404) return wasThere && !NO_BRANCH.test(words)
  return [400, 422].includes(reply.status) && STALE.test(words) && !NO_BRANCH.test(words)
}

/** Returns whether nothing is at a path: no file, or no commit in the repository yet. A 404 may also concern the branch. */
export function isAbsent(reply: HttpReply): boolean {
  if (reply.status === 404) return !NO_BRANCH.test(wordsOf(reply))
  return reply.status === 409 && /empty/i.test(reply.text)
}

/** Explains an error response of the API. Undefined if it is one of a server or a gateway that has trouble. */
export function explainReply(
  reply: HttpReply,
  { repo, branch }: { readonly repo: string; readonly branch: string },
): Refusal | undefined {
  const { status } = reply
  if (status >= 500 || status === 408 || status === 425) return undefined
  const reason = wordsOf(reply)
  if (isLimited(reply, reason))
    return {
      meaning: 'the rate limit is exceeded',
      reason,
      advice: 'Wait, or upload less often.',
      retryable: true,
      retryAfterS: readPause(reply),
    }
  const [, why = '', advice] = RULES.find(([response]) => response.test(`${status} ${reason}`)) ?? []
  const meaning = why.replace('{repo}', () => repo).replace('{branch}', () => branch)
  return { meaning, reason, advice, retryable: isStale(reply, false) }
}

/** Detects rate limits: 429, or GitHub's 403 with `x-ratelimit-remaining: 0`, `Retry-After` or a matching message. */
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

/** Returns the beginning of the message in a JSON response, or of the whole text if it is not JSON. */
function wordsOf({ text }: HttpReply): string {
  let words: unknown = text
  try {
    const answer = membersOf(JSON.parse(text))
    words = answer['message'] ?? answer['error'] ?? answer['errors'] ?? text
  } catch {
    // It is not JSON.
  }
  return (typeof words === 'string' ? words : JSON.stringify(words)).slice(0, MAX_SEARCHED_CHARACTERS)
}
