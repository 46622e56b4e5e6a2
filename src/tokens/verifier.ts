import {
  JOSEError,
  JWKSMultipleMatchingKeys,
  JWKSNoMatchingKey,
  JWTClaimValidationFailed,
  JWTExpired,
} from 'jose/errors'
import { decodeJwt } from 'jose/jwt/decode'
import { type JWTVerifyGetKey, jwtVerify } from 'jose/jwt/verify'
import type { Members } from '../members.ts'
import { describeMisfit, findMisfit, show, userOf } from './claims.ts'
import type { TokenRules } from './presets.ts'
import { isTokenLike, type TokenRefusal, type TokenVerdict, type TokenVerifier } from './token.ts'

/** The keys of an issuer are not known, so whether a token is right can't be decided. `message` is the reason, for the log. */
export class KeysUnavailable extends Error {}

/**
 * Verifies JSON Web Tokens (RFC 7519) by several rules, of which the first that fits wins. Only the keys of the issuer that the
 * rules name are used: those in the header of a token (`jku`, `x5u`, `jwk`) are ignored.
 *
 * @param entries `keys` finds the key of a token, and throws KeysUnavailable or a JOSEError. Entries may share it
 */
export function createTokenVerifier(
  entries: readonly { readonly rules: TokenRules; readonly keys: JWTVerifyGetKey }[],
): TokenVerifier {
  return {
    headers: [...new Set(entries.flatMap(({ rules }) => rules.header ?? []))],
    async verify(token, header) {
      const claims = isTokenLike(token) ? decode(token) : undefined
      if (!claims) return { outcome: 'forged', reason: 'it is not a signed token' }
      const { iss } = claims
      const findOnce = shareKeys()
      const refusals: TokenRefusal[] = []
      for (const [index, { rules, keys }] of entries.entries()) {
        if (rules.header !== header || !rules.issuers.some(issuer => issuer === iss)) continue
        const verdict = await verifyBy(rules, findOnce(keys), token)
        if (typeof verdict === 'string') return { outcome: 'accepted', index, user: verdict }
        refusals.push({ ...verdict, reason: `"${rules.name}": ${verdict.reason}` })
      }
      return join(refusals) ?? { outcome: 'unfit', reason: `issuer ${show(iss)} is not configured` }
    },
  }
}

/** The claims of a token, whose signature has not been checked. Undefined for any other text. */
function decode(token: string): Members | undefined {
  try {
    return decodeJwt(token)
  } catch {
    return undefined
  }
}

/** Looks for the key of one token once, because a second look says only that the keys were fetched a moment ago. */
function shareKeys(): (keys: JWTVerifyGetKey) => JWTVerifyGetKey {
  const found = new Map<JWTVerifyGetKey, ReturnType<JWTVerifyGetKey>>()
  return keys =>
    (...token) => {
      const key = found.get(keys) ?? keys(...token)
      found.set(keys, key)
      return key
    }
}

/** Several refusals as one. A token that one issuer has signed is not forged, and one that can't be checked may be right. */
function join(refusals: readonly TokenRefusal[]): TokenVerdict | undefined {
  const outcomes = ['unavailable', 'unfit', 'forged'] as const
  const outcome = outcomes.find(one => refusals.some(refusal => refusal.outcome === one))
  return outcome && { outcome, reason: refusals.map(({ reason }) => reason).join('; ') }
}

const unfit = (reason: string): TokenRefusal => ({ outcome: 'unfit', reason })

/** @returns the name of the user, or why the token is not accepted */
async function verifyBy(
  rules: TokenRules,
  find: JWTVerifyGetKey,
  token: string,
): Promise<string | TokenRefusal> {
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
      return unfit(describeMisfit('iat', iat, 'a time in the past'))
    const misfit = findMisfit(payload, rules.claims)
    if (misfit !== undefined) return unfit(misfit)
    const noUser = unfit(`its claims make no user name by the template "${rules.user}"`)
    return userOf(payload, rules.user) ?? noUser
  } catch (error) {
    return explain(error, audience)
  }
}

function explain(error: unknown, audience: string): TokenRefusal {
  if (error instanceof KeysUnavailable) return { outcome: 'unavailable', reason: error.message }
  if (error instanceof JWKSNoMatchingKey) return unfit('its key ID is unknown')
  if (error instanceof JWKSMultipleMatchingKeys) return unfit('several keys of the issuer match its key ID')
  // jose checks the claims after the signature.
  if (error instanceof JWTExpired || error instanceof JWTClaimValidationFailed) {
    const { claim, payload } = error
    const expected = { aud: show(audience), exp: 'a time in the future', nbf: 'a time in the past' }
    return unfit(describeMisfit(claim, payload[claim], expected[claim as keyof typeof expected]))
  }
  if (error instanceof JOSEError) return { outcome: 'forged', reason: `${error.code}: ${error.message}` }
  return unfit(`the key of the issuer can't be used: ${String(error)}`)
}
