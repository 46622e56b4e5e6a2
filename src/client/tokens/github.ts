import { beginTimeLimit } from '../../flow/time-limit.ts'
import { createHttpAgents } from '../../http/agents.ts'
import { endpointOf, exchange, type RawReply } from '../../http/exchange.ts'
import {
  explainNetwork,
  isTransient,
  isTransientStatus,
  networkCodeOf,
  parseRetryAfter,
} from '../../http/network.ts'
import { ProxyFailure } from '../../http/proxy/failure.ts'
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
/** Maximum length of a message of GitHub that is repeated, characters. */
const MAX_MESSAGE = 300

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
  const agents = createHttpAgents({
    insecureTls: false,
    idleTimeoutMs: limitMs,
    outgoing: fromEnvironment(env),
  })

  async function ask(url: URL, bearer: string, outer: AbortSignal): Promise<RawReply> {
    const late = () =>
      new TokenError(`${url.host} returned no token within ${limitMs / 1000} s.`, { isTransient: true })
    const limit = beginTimeLimit(limitMs, outer, late)
    try {
      return await exchange(
        {
          ...endpointOf(url),
          path: url.pathname + url.search,
          way: await agents.get(url),
          method: 'GET',
          headers: {
            host: url.host,
            accept: 'application/json',
            'user-agent': 'upload-server',
            authorization: `Bearer ${bearer}`,
          },
          body: undefined,
          maxReplyBytes: MAX_REPLY_BYTES,
        },
        limit.signal,
      )
    } catch (error) {
      outer.throwIfAborted()
      throw error instanceof TokenError ? error : unreachable(error, url.host)
    } finally {
      limit.end()
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
      return readReply(await ask(url, bearer, signal), url.host, text => hideTokens(mask(text)))
    },
  }
}

function unreachable(error: unknown, host: string): TokenError {
  if (error instanceof ProxyFailure)
    return new TokenError(`Could not get a token from ${host}: ${error.message}.`, {
      isTransient: error.retryable,
    })
  const code = networkCodeOf(error)
  const reason = explainNetwork(error) ?? (code || 'the connection failed')
  return new TokenError(`Could not get a token from ${host}: ${reason}.`, { isTransient: isTransient(code) })
}

function readReply(
  { status, headers, text, isCut }: RawReply,
  host: string,
  hide: (text: string) => string,
): string {
  const value = membersOf(parse(text))
  if (status >= 200 && status < 300) {
    if (isCut || typeof value['value'] !== 'string')
      throw new TokenError(`${host} responded with ${status}, but without a token.`)
    return readToken(value['value'], host)
  }
  const said = typeof value['message'] === 'string' ? `: ${hide(value['message']).slice(0, MAX_MESSAGE)}` : ''
  const advice = status === 401 || status === 403 ? ' Check "permissions: id-token: write" of the job.' : ''
  throw new TokenError(`${host} responded with ${status} instead of a token${said}.${advice}`, {
    isTransient: isTransientStatus(status),
    retryAfterS: parseRetryAfter(headers['retry-after']) || undefined,
  })
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
