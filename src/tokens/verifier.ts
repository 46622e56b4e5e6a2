import {
  JOSEError,
  JWKSMultipleMatchingKeys,
  JWKSNoMatchingKey,
  JWTClaimValidationFailed,
  JWTExpired,
} from 'jose/errors'
import { createLocalJWKSet } from 'jose/jwks/local'
import { jwtVerify } from 'jose/jwt/verify'
import type { Members } from '../members.ts'
import { findMisfit, show, userOf } from './claims.ts'
import { KeysUnavailable } from './key-cache.ts'
import type { TokenRules } from './presets.ts'
import { readToken, type TokenVerdict, type TokenVerifier } from './token.ts'

/** The signing keys of an issuer, validated. */
export type KeySet = ReturnType<typeof createLocalJWKSet>

/** Where a verifier gets the keys of an issuer. */
export interface KeySource {
  /** @throws KeysUnavailable */
  current(): Promise<KeySet>
  /** Newer keys than those; undefined if there are none. */
  newerThan(known: KeySet): Promise<KeySet | undefined>
}

/** @throws JWKSInvalid if it is not a key set (RFC 7517, 5) */
export function parseKeys(json: unknown): KeySet {
  // The cast is safe: jose validates the value.
  return createLocalJWKSet(json as Parameters<typeof createLocalJWKSet>[0])
}

/**
 * Verifies JSON Web Tokens (RFC 7519) by several rules, of which the first that fits wins. Only the keys of the issuer that the
 * rules name are used: those in the header of a token (`jku`, `x5u`, `jwk`) are ignored.
 *
 * @param now the time, milliseconds since the epoch
 */
export function createTokenVerifier(
  entries: readonly { readonly rules: TokenRules; readonly keys: KeySource }[],
  now: () => number = Date.now,
): TokenVerifier {
  const headers = [...new Set(entries.map(({ rules }) => rules.header).filter(one => one !== undefined))]

  return {
    headers,
    async verify(token, header) {
      const read = readToken(token)
      if (!read) return { outcome: 'forged', reason: 'it is not a signed token' }
      const { alg } = read.header
      const { iss } = read.payload
      const ofIssuer = [...entries.entries()].filter(
        ([, { rules }]) => rules.header === header && rules.issuers.some(issuer => issuer === iss),
      )
      if (ofIssuer.length === 0) return { outcome: 'unfit', reason: `issuer ${show(iss)} is not configured` }

      const verdicts: TokenVerdict[] = []
      for (const [index, { rules, keys }] of ofIssuer) {
        const verdict = rules.algorithms.some(one => one === alg)
          ? await verifyBy(rules, keys, token, index, now())
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

async function verifyBy(
  rules: TokenRules,
  source: KeySource,
  token: string,
  index: number,
  nowMs: number,
): Promise<TokenVerdict> {
  const { algorithms, audience, issuers, leewayS } = rules
  const check = async (keys: KeySet): Promise<Members> => {
    const { payload } = await jwtVerify(token, keys, {
      algorithms: [...algorithms],
      issuer: [...issuers],
      audience,
      clockTolerance: leewayS,
      currentDate: new Date(nowMs),
      requiredClaims: ['exp'],
    })
    return payload
  }
  try {
    const payload = await checkWithNewest(source, check)
    const { iat } = payload
    if (typeof iat === 'number' && iat > nowMs / 1000 + leewayS)
      return refuse('unfit', rules, `claim "iat" is ${show(iat)}, which is in the future`)
    const misfit = findMisfit(payload, rules.claims)
    if (misfit !== undefined) return refuse('unfit', rules, misfit)
    const user = userOf(payload, rules.user)
    if (user !== undefined) return { outcome: 'accepted', index, user }
    return refuse('unfit', rules, `its claims make no user name by the template "${rules.user}"`)
  } catch (error) {
    return explain(error, rules)
  }
}

/** Checks a token with the known keys, then with newer ones if its key is not among these. */
async function checkWithNewest(
  source: KeySource,
  check: (keys: KeySet) => Promise<Members>,
): Promise<Members> {
  const known = await source.current()
  try {
    return await check(known)
  } catch (error) {
    const newer = error instanceof JWKSNoMatchingKey ? await source.newerThan(known) : undefined
    if (!newer) throw error
    return check(newer)
  }
}

function explain(error: unknown, rules: TokenRules): TokenVerdict {
  if (error instanceof KeysUnavailable) {
    const reason = `"${rules.name}": its keys can't be fetched: ${error.message}`
    return { outcome: 'unavailable', reason, retryAfterS: error.retryAfterS }
  }
  if (error instanceof JWKSNoMatchingKey) return refuse('unfit', rules, 'its key ID is unknown')
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
