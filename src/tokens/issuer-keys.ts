import { createRemoteJWKSet, customFetch, type JWKSCacheInput, jwksCache } from 'jose/jwks/remote'
import { messageOf } from '../errors.ts'
import { beginTimeLimit } from '../flow/time-limit.ts'
import { createConnections } from '../http/connections.ts'
import type { Outgoing } from '../http/proxy/outgoing.ts'
import { membersOf } from '../members.ts'
import { isSafeUrl, type KeyPlace } from './presets.ts'
import { type KeySource, KeysUnavailable, parseKeys } from './verifier.ts'

type RemoteKeys = Exclude<KeyPlace, { kind: 'file' }>

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
  place: RemoteKeys,
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

/** Maximum size of a response. Bytes. */
const MOST_BYTES = 1024 * 1024
/** Time limit for all requests of one fetch. */
const TIMEOUT_MS = 5000

/**
 * Fetches the signing keys of an issuer: at most 1 MB in 5 s, without redirects.
 *
 * @returns the JSON of the key set, whose keys have not been validated
 * @throws Error or UploadError, whose message is the reason
 */
export async function fetchKeys(
  place: RemoteKeys,
  outgoing: Outgoing,
  timeoutMs = TIMEOUT_MS,
): Promise<unknown> {
  const { http, close } = createConnections({ outgoing, idleTimeoutMs: timeoutMs })
  const late = () => new Error(`there was no complete response within ${timeoutMs / 1000} s`)
  const limit = beginTimeLimit(timeoutMs, new AbortController().signal, late)
  const get = async (url: string) => {
    const request = { method: 'GET', url, headers: { accept: 'application/json' }, maxReplyBytes: MOST_BYTES }
    const reply = await http.send({ ...request, accept: status => status === 200 }, limit.signal)
    if (reply.bytes.length > MOST_BYTES)
      throw new Error(`${new URL(url).host} returned more than ${MOST_BYTES} bytes`)
    return reply.json()
  }
  try {
    if (place.kind === 'url') return await get(place.url)
    const { issuer } = place
    return await get(
      keysUrlOf(await get(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`), issuer),
    )
  } finally {
    limit.end()
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
