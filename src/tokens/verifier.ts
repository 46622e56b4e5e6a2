import {
  JOSEError,
  JWKSMultipleMatchingKeys,
  JWKSNoMatchingKey,
  JWTClaimValidationFailed,
  JWTExpired,
} from 'jose/errors'
import { createLocalJWKSet } from 'jose/jwks/local'
import { type JWTVerifyGetKey, jwtVerify } from 'jose/jwt/verify'
import { findMisfit, show, userOf } from './claims.ts'
import type { TokenRules } from './presets.ts'
import { readToken, type TokenVerdict, type TokenVerifier } from './token.ts'

/** The signing keys of an issuer. */
export interface KeySource {
  /**
   * Finds the key of a token, and fetches the keys if there is none.
   *
   * @throws KeysUnavailable; JWKSNoMatchingKey
   */
  readonly find: JWTVerifyGetKey
  /** Seconds until the keys are fetched again for a key ID that is unknown. 0: at once. */
  waitS(): number
}

/** Whether a token is right can't be decided at present. `message` is the reason, for the log. */
export class KeysUnavailable extends Error {
  /** Seconds until the keys are fetched again. */
  readonly retryAfterS: number

  constructor(reason: string, retryAfterS: number) {
    super(reason)
    this.name = 'KeysUnavailable'
    this.retryAfterS = retryAfterS
  }
}

/** @throws JWKSInvalid if it is not a key set (RFC 7517, 5) */
export function parseKeys(json: unknown): JWTVerifyGetKey {
  // The cast is safe: jose validates the value.
  return createLocalJWKSet(json as Parameters<typeof createLocalJWKSet>[0])
}

/**
 * Verifies JSON Web Tokens (RFC 7519) by several rules, of which the first that fits wins. Only the keys of the issuer that the
 * rules name are used: those in the header of a token (`jku`, `x5u`, `jwk`) are ignored.
 */
export function createTokenVerifier(
  entries: readonly { readonly rules: TokenRules; readonly keys: KeySource }[],
): TokenVerifier {
  const headers = [...new Set(entries.map(({ rules }) => rules.header).filter(one => one !== undefined))]

  return {
    headers,
    async verify(token, header) {
      const read = readToken(token)
      if (!read) return { outcome: 'forged', reason: 'it is not a signed token' }
      const { alg } = read.header
      const { iss } = read.payload
      // Several rules may share the keys, so the wait is read before the first of them has these fetched.
      const ofIssuer = entries
        .map((entry, index) => ({ ...entry, index, waitS: entry.keys.waitS() }))
        .filter(({ rules }) => rules.header === header && rules.issuers.some(issuer => issuer === iss))
      if (ofIssuer.length === 0) return { outcome: 'unfit', reason: `issuer ${show(iss)} is not configured` }

      const verdicts: TokenVerdict[] = []
      for (const { rules, keys, index, waitS } of ofIssuer) {
        const verdict = rules.algorithms.some(one => one === alg)
          ? await verifyBy(rules, keys.find, token, index, waitS)
          : refuse('forged', rules, `algorithm ${show(alg)} is not allowed`)
        if (verdict.outcome === 'accepted') return verdict
        verdicts.push(verdict)
      }
      return join(verdicts)
    },
  }
}

/** Several refusals as one. A token that one issuer has signed is not forged, and one that can't be checked may be right. */
function join(verdicts: readonly TokenVerdict[]): TokenVerdict {
  const reason = verdicts.map(one => ('reason' in one ? one.reason : '')).join('; ')
  const unavailable = verdicts.find(one => one.outcome === 'unavailable')
  if (unavailable) return { ...unavailable, reason }
  return { outcome: verdicts.some(one => one.outcome === 'unfit') ? 'unfit' : 'forged', reason }
}

function refuse(outcome: 'unfit' | 'forged', { name }: TokenRules, why: string): TokenVerdict {
  return { outcome, reason: `"${name}": ${why}` }
}

function unavailable({ name }: TokenRules, why: string, retryAfterS: number): TokenVerdict {
  return { outcome: 'unavailable', reason: `"${name}": ${why}`, retryAfterS }
}

async function verifyBy(
  rules: TokenRules,
  find: JWTVerifyGetKey,
  token: string,
  index: number,
  waitS: number,
): Promise<TokenVerdict> {
  const { algorithms, audience, issuers, leewayS } = rules
  try {
    const { payload } = await jwtVerify(token, find, {
      algorithms: [...algorithms],
      issuer: [...issuers],
      audience,
      clockTolerance: leewayS,
      requiredClaims: ['exp'],
    })
    const { iat } = payload
    if (typeof iat === 'number' && iat > Date.now() / 1000 + leewayS)
      return refuse('unfit', rules, `claim "iat" is ${show(iat)}, which is in the future`)
    const misfit = findMisfit(payload, rules.claims)
    if (misfit !== undefined) return refuse('unfit', rules, misfit)
    const user = userOf(payload, rules.user)
    if (user !== undefined) return { outcome: 'accepted', index, user }
    return refuse('unfit', rules, `its claims make no user name by the template "${rules.user}"`)
  } catch (error) {
    return explain(error, rules, waitS)
  }
}

function explain(error: unknown, rules: TokenRules, waitS: number): TokenVerdict {
  if (error instanceof KeysUnavailable)
    return unavailable(rules, `its keys can't be fetched: ${error.message}`, error.retryAfterS)
  if (error instanceof JWKSNoMatchingKey)
    return waitS > 0
      ? unavailable(rules, 'its key ID is unknown, and the keys were fetched a moment ago', waitS)
      : refuse('unfit', rules, 'its key ID is unknown')
  if (error instanceof JWKSMultipleMatchingKeys)
    return refuse('unfit', rules, 'several keys of the issuer match its key ID')
  // jose checks the claims after the signature.
  if (error instanceof JWTExpired || error instanceof JWTClaimValidationFailed) {
    const { claim, payload } = error
    const expected = claim === 'aud' ? `, expected ${show(rules.audience)}` : ''
    const isEarly = claim === 'nbf' && error.reason === 'check_failed'
    const when =
      error instanceof JWTExpired ? ', so it has expired' : isEarly ? ', which is in the future' : ''
    return refuse('unfit', rules, `claim "${claim}" is ${show(payload[claim])}${expected}${when}`)
  }
  if (error instanceof JOSEError) return refuse('forged', rules, `${error.code}: ${error.message}`)
  return refuse('unfit', rules, `the key of the issuer can't be used: ${String(error)}`)
}
