import { UploadError } from '../../errors.ts'
import { retry } from '../../flow/retry.ts'
import { beginTimeLimit } from '../../flow/time-limit.ts'
import type { HttpReply, HttpRequest, Refusal } from '../../http/client.ts'
import { createConnections } from '../../http/connections.ts'
import type { Outgoing } from '../../http/proxy/outgoing.ts'
import { FORGE_APIS, type ForgeApi } from './forges.ts'
import type { PullRequest } from './pull-request.ts'

/** Maximum size of a page of comments, bytes. A comment may have 64 KiB on GitHub and 1 MiB on GitLab. */
const PAGE_BYTES = 32 * 1024 * 1024
export const RETRIES = { attempts: 4, longestPauseMs: 60_000 }
/** Idle timeout, time limit of one response, and time limit of all retries of a request, milliseconds. */
const [SILENT_MS, RESPONSE_MS, AGAIN_MS] = [15_000, 60_000, 60_000]

export interface ForgeAccess {
  readonly pullRequest: PullRequest
  readonly token: string
  /** The outbound proxies. Default: none. */
  readonly outgoing?: Outgoing
}

/** The token has no permission to write the comment. */
export class CommentForbidden extends UploadError {}

/** The API of the Git host of one pull request. */
export interface ForgeClient {
  readonly pullRequest: PullRequest
  readonly api: ForgeApi
  /**
   * Sends a request and retries transient failures. POST is not retried, because it could create a second comment: the
   * caller first checks whether the comment exists.
   *
   * @param body sent as JSON
   * @param accepted statuses that are not failures, in addition to 200 to 299
   * @throws UploadError `destination_failed`; CommentForbidden for 403
   */
  ask(
    method: HttpRequest['method'],
    url: string,
    body: object | undefined,
    signal: AbortSignal,
    accepted?: readonly number[],
  ): Promise<HttpReply>
  close(): void
}

/** Sends the token with each request. */
export function openForge({ pullRequest, token, outgoing }: ForgeAccess): ForgeClient {
  const api = FORGE_APIS[pullRequest.forge]
  const { host } = new URL(pullRequest.api)
  const { http, close } = createConnections({ outgoing, idleTimeoutMs: SILENT_MS })

  async function send(request: HttpRequest, signal: AbortSignal): Promise<HttpReply> {
    const late = () =>
      new UploadError('destination_failed', `${host} did not respond within ${RESPONSE_MS / 1000} s.`)
    const limit = beginTimeLimit(RESPONSE_MS, signal, late)
    try {
      return await http.send(request, limit.signal)
    } finally {
      limit.end()
    }
  }

  return {
    pullRequest,
    api,
    async ask(method, url, body, signal, accepted = []) {
      let status: number | undefined
      const request: HttpRequest = {
        method,
        url,
        headers: { ...api.headers(token), ...(body && { 'content-type': 'application/json' }) },
        ...(body && { body: JSON.stringify(body) }),
        accept: status => (status >= 200 && status < 300) || accepted.includes(status),
        maxReplyBytes: PAGE_BYTES,
        explain: reply => {
          status = reply.status
          return explain(reply, token, api.needs)
        },
      }
      const end = performance.now() + AGAIN_MS
      const retries =
        method === 'POST' ? { attempts: 1 } : { ...RETRIES, leftMs: () => end - performance.now() }
      const attempt = async () => {
        try {
          return await send(request, signal)
        } catch (error) {
          if (status !== 403 || !(error instanceof UploadError)) throw error
          const { code, message, retryAfterS } = error
          // GitHub's secondary rate limit.
          if (retryAfterS !== undefined)
            throw new UploadError(code, message, { retryable: true, retryAfterS, cause: error })
          throw new CommentForbidden(code, message, { cause: error })
        }
      }
      return retry(attempt, retries, signal)
    },
    close,
  }
}

function explain({ status, text }: HttpReply, token: string, needs: string): Refusal {
  const said = text.replaceAll(token, '[secret]')
  const reason = [401, 403, 404].includes(status)
    ? `To write a comment, ${needs}. The response was: ${said}`
    : said
  return { reason }
}
