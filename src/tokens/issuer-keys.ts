import { createRemoteJWKSet, customFetch, type JWKSCacheInput, jwksCache } from 'jose/jwks/remote'
import { messageOf } from '../errors.ts'
import type { Outgoing } from '../http/proxy/outgoing.ts'
import { fetchKeys } from './fetch-keys.ts'
import type { KeyPlace } from './presets.ts'
import { type KeySource, KeysUnavailable, parseKeys } from './verifier.ts'

/** Cached keys are used for that long before they are fetched again. */
const FRESH_MS = 10 * 60_000
/** Minimum time between two fetches, failed ones included. */
const PAUSE_MS = 30_000

/** The keys of one issuer, with the time of their fetch. A reload of the configuration keeps it. */
export type KeyCache = JWKSCacheInput

/**
 * The signing keys of an issuer, fetched when a token needs them.
 *
 * @param warn gets the reason each time the keys can't be fetched
 */
export function openIssuerKeys(
  place: Exclude<KeyPlace, { kind: 'file' }>,
  outgoing: Outgoing,
  cache: KeyCache,
  warn: (reason: string) => void,
): KeySource {
  let failure = { reason: '', at: Number.NEGATIVE_INFINITY }

  async function fetchOnce(): Promise<Response> {
    const waitS = secondsLeft(failure.at)
    if (waitS > 0) throw new KeysUnavailable(failure.reason, waitS)
    try {
      const keys = await fetchKeys(place, outgoing)
      parseKeys(keys) // throws if they are not a key set
      return Response.json(keys)
    } catch (error) {
      failure = { reason: messageOf(error), at: Date.now() }
      warn(failure.reason)
      throw new KeysUnavailable(failure.reason, secondsLeft(failure.at))
    }
  }

  const find = createRemoteJWKSet(new URL(place.kind === 'url' ? place.url : place.issuer), {
    cacheMaxAge: FRESH_MS,
    cooldownDuration: PAUSE_MS,
    [jwksCache]: cache,
    [customFetch]: fetchOnce,
  })
  return { find, waitS: () => (find.coolingDown ? secondsLeft(cache.uat ?? 0) : 0) }
}

/** Until the pause after a fetch ends, rounded up; 0 if it has ended. */
function secondsLeft(fetchedAt: number): number {
  return Math.max(0, Math.ceil((fetchedAt + PAUSE_MS - Date.now()) / 1000))
}
