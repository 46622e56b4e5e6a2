import { JWKSNoMatchingKey } from 'jose/errors'
import { createLocalJWKSet } from 'jose/jwks/local'
import { createRemoteJWKSet, customFetch, type FetchImplementation } from 'jose/jwks/remote'
import type { JWTVerifyGetKey } from 'jose/jwt/verify'
import { messageOf } from '../errors.ts'
import { createConnections } from '../http/connections.ts'
import type { Outgoing } from '../http/proxy/outgoing.ts'
import { membersOf } from '../members.ts'
import { isSafeUrl, type KeyPlace, readKeyFile } from './presets.ts'
import { KEYS_PAUSE_S } from './token.ts'
import { KeysUnavailable } from './verifier.ts'

/** @throws JWKSInvalid if it is not a key set (RFC 7517, 5) */
function parseKeys(json: unknown): JWTVerifyGetKey {
  // The cast is safe: jose validates the value.
  return createLocalJWKSet(json as Parameters<typeof createLocalJWKSet>[0])
}

/**
 * The signing keys of an issuer. Those at a URL are fetched when a token needs them. The defaults of jose hold: keys are cached
 * for 10 minutes, an unknown key ID causes a fetch at most every 30 s, and a fetch may take 5 s.
 *
 * @param warn gets the reason each time the keys can't be fetched
 * @throws Error if the file with the keys can't be read
 */
export function openIssuerKeys(
  place: KeyPlace,
  outgoing: Outgoing,
  warn: (reason: string) => void,
): JWTVerifyGetKey {
  if (place.kind === 'file') return parseKeys(readKeyFile(place.at))
  let failure = { reason: '', until: 0 }

  const fetchOnce: FetchImplementation = async (_, { signal }) => {
    if (Date.now() >= failure.until) {
      try {
        const keys = await fetchKeys(place, outgoing, signal)
        parseKeys(keys)
        return Response.json(keys)
      } catch (error) {
        const reason = signal.aborted ? 'there was no complete response within 5 s' : messageOf(error)
        failure = { reason, until: Date.now() + KEYS_PAUSE_S * 1000 }
        warn(reason)
      }
    }
    throw new KeysUnavailable(`its keys can't be fetched: ${failure.reason}`)
  }

  const find = createRemoteJWKSet(new URL(place.at), { [customFetch]: fetchOnce })
  return async (header, token) => {
    const wereJustFetched = find.coolingDown
    try {
      return await find(header, token)
    } catch (error) {
      if (!(error instanceof JWKSNoMatchingKey && wereJustFetched)) throw error
      throw new KeysUnavailable('its key ID is unknown, and the keys were fetched a moment ago')
    }
  }
}

/**
 * Fetches the signing keys of an issuer: at most 1 MiB, without redirects.
 *
 * @returns the JSON of the key set, whose keys have not been validated
 * @throws Error, whose message is the reason; the reason of the signal
 */
export async function fetchKeys(
  { kind, at }: KeyPlace,
  outgoing: Outgoing,
  signal: AbortSignal,
): Promise<unknown> {
  const { http, close } = createConnections({ outgoing })
  const get = async (url: string) => {
    const request = { method: 'GET', url, headers: { accept: 'application/json' } }
    return (await http.send({ ...request, accept: status => status === 200 }, signal)).json()
  }
  try {
    if (kind === 'url') return await get(at)
    const document = await get(`${at.replace(/\/$/, '')}/.well-known/openid-configuration`)
    return await get(keysUrlOf(document, at))
  } finally {
    close()
  }
}

/** The URL of the keys in a discovery document (OpenID Connect Discovery 1.0, 4.3: its issuer must be the same). */
function keysUrlOf(document: unknown, issuer: string): string {
  const { issuer: named, jwks_uri: url } = membersOf(document)
  if (named !== issuer) throw new Error(`the discovery document of ${issuer} is of another issuer`)
  if (typeof url !== 'string' || !isSafeUrl(url) || new URL(url).protocol !== new URL(issuer).protocol)
    throw new Error(`the discovery document of ${issuer} has no jwks_uri with https`)
  return url
}
