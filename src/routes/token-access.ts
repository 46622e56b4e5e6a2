import type { IncomingHttpHeaders } from 'node:http'
import { UploadError } from '../errors.ts'
import { isTokenLike, KEYS_PAUSE_S, type TokenVerifier } from '../tokens/token.ts'
import type { Caller } from '../uploader/input.ts'
import { keysInHeaders } from './credentials.ts'
import type { Permissions } from './permissions.ts'

/** `auth.tokens`: signed tokens that are accepted instead of an upload key. */
export interface TokenAuth {
  readonly entries: readonly TokenEntry[]
  readonly verifier: TokenVerifier
}

interface TokenEntry extends Permissions {
  readonly name: string
}

/** What the tokens of a request prove. */
export interface TokenReading {
  /** Undefined if no token was accepted. */
  readonly accepted?: AcceptedToken
  /** Tokens that were not accepted but are not attempts to guess a secret, as they were sent. */
  readonly genuine: ReadonlySet<string>
  /** Whether a header of a reverse proxy has something other than such a token. */
  readonly hasForged: boolean
  /** Why a token could not be checked. */
  readonly failure?: UploadError
  /** Why the tokens were not accepted, for the log. */
  readonly cause?: Error
}

export interface AcceptedToken extends Required<Pick<Caller, 'name' | 'user' | 'isAddedByOthers'>> {
  /** Which of the entries it fits. */
  readonly index: number
}

/**
 * Verifies the tokens of a request: those in the headers of upload keys, but never those in the query, which ends up in logs,
 * and those in the headers of reverse proxies that sign.
 */
export async function readTokens(
  { entries, verifier }: TokenAuth,
  headers: IncomingHttpHeaders,
): Promise<TokenReading> {
  const sent: [token: string, header: string | undefined][] = [
    ...keysInHeaders(headers).map((value): [string, undefined] => [value, undefined]),
    ...verifier.headers.flatMap(name =>
      [headers[name] ?? []].flat().map((value): [string, string] => [value, name]),
    ),
  ]
  const genuine = new Set<string>()
  const reasons: string[] = []
  let hasForged = false
  let failure: UploadError | undefined
  for (const [token, header] of sent) {
    if (header === undefined && !isTokenLike(token)) continue
    const verdict = await verifier.verify(token, header)
    if (verdict.outcome === 'accepted') {
      const { index, user } = verdict
      const name = `token ${entries[index]?.name}: ${user}`
      return { accepted: { index, name, user, isAddedByOthers: header !== undefined }, genuine, hasForged }
    }
    reasons.push(verdict.reason)
    if (verdict.outcome === 'unavailable') failure ??= unavailable(verdict.reason)
    if (verdict.outcome !== 'forged') genuine.add(token)
    else if (header !== undefined) hasForged = true
  }
  return {
    genuine,
    hasForged,
    ...(failure && { failure }),
    ...(reasons.length > 0 && { cause: new Error(`auth.tokens: ${reasons.join('; ')}`) }),
  }
}

function unavailable(reason: string): UploadError {
  const message =
    'The server cannot check the token at present, because it cannot get its signing key from the issuer. Try again later.'
  return new UploadError('identity_unavailable', message, {
    retryAfterS: KEYS_PAUSE_S,
    cause: new Error(`auth.tokens: ${reason}`),
  })
}
