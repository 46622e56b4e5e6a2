import { messageOf, UploadError } from '../../errors.ts'
import { beginTimeLimit } from '../../flow/time-limit.ts'
import type { HttpReply, Refusal } from '../../http/client.ts'
import { createConnections } from '../../http/connections.ts'
import { fromEnvironment } from '../../http/proxy/outgoing.ts'
import { membersOf } from '../../members.ts'
import {
  hideTokens,
  readToken,
  type TokenContext,
  TokenError,
  type TokenRequest,
  type TokenSource,
} from './token-source.ts'

/** Maximum size of a response, bytes. */
const MAX_REPLY_BYTES = 64 * 1024

/**
 * Tokens of a GitHub Actions job. The runner sets both variables only if the job has the permission `id-token: write`; a
 * GET request to the URL, with `&audience=` added, returns `{"value": TOKEN}`. Forgejo's runner does the same.
 *
 * Source: docs.github.com, "OpenID Connect reference", "Methods for requesting the OIDC token".
 */
export function openGitHub(
  { audience, limitMs }: TokenRequest,
  { env, mask, learn }: TokenContext,
): TokenSource {
  async function ask(url: URL, bearer: string, outer: AbortSignal): Promise<string> {
    const { http, close } = createConnections({ outgoing: fromEnvironment(env), idleTimeoutMs: limitMs })
    const late = () =>
      new TokenError(`${url.host} returned no token within ${limitMs / 1000} s.`, { isTransient: true })
    const limit = beginTimeLimit(limitMs, outer, late)
    const headers = { accept: 'application/json', authorization: `Bearer ${bearer}` }
    try {
      const reply = await http.send(
        { method: 'GET', url, headers, maxReplyBytes: MAX_REPLY_BYTES, explain: explainRefusal },
        limit.signal,
      )
      const { value } = membersOf(parse(reply.text))
      if (typeof value === 'string') return readToken(value, url.host)
      throw new TokenError(`${url.host} responded with ${reply.status}, but without a token.`)
    } catch (error) {
      outer.throwIfAborted()
      if (!(error instanceof UploadError)) throw error
      const { retryable, retryAfterS } = error
      throw new TokenError(`Could not get a token. ${hideTokens(mask(messageOf(error)))}`, {
        isTransient: retryable,
        retryAfterS,
      })
    } finally {
      limit.end()
      close()
    }
  }

  return {
    name: 'github-actions',
    isRenewable: true,
    async fetch(signal) {
      const { ACTIONS_ID_TOKEN_REQUEST_URL: address = '', ACTIONS_ID_TOKEN_REQUEST_TOKEN: bearer = '' } = env
      if (address === '' || bearer === '')
        throw new TokenError(
          'GitHub gives this job no token. Add "permissions: id-token: write" to the job. A pull request from a fork never gets one.',
          { isAbsent: true },
        )
      if (!URL.canParse(address) || !/^https?:/i.test(address))
        throw new TokenError('ACTIONS_ID_TOKEN_REQUEST_URL is not a URL.', { isAbsent: true })
      const url = new URL(address)
      url.searchParams.set('audience', audience)
      learn([bearer])
      return ask(url, bearer, signal)
    },
  }
}

/** The response may contain a token, so an error must not repeat it. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function explainRefusal({ status, text }: HttpReply): Refusal {
  const isForbidden = status === 401 || status === 403
  return {
    reason: text,
    advice: isForbidden ? 'Check "permissions: id-token: write" of the job.' : undefined,
  }
}
