import { membersOf } from '../../members.ts'
import { showMoment } from '../../times.ts'
import type { TokenSource } from './token-source.ts'

/** A token is replaced when it expires within this time, milliseconds. */
const MARGIN_MS = 60_000

/** The tokens of one server, shared by parallel requests. */
export interface Tokens {
  /** A token that does not expire soon. @throws TokenError */
  get(signal: AbortSignal): Promise<string>
  /** Another token after the server has rejected `used`. Undefined if there is none. @throws TokenError */
  replace(used: string, signal: AbortSignal): Promise<string | undefined>
  /** Why the server may have rejected a request with this token, as a whole sentence. */
  explain(used: string): string
}

/**
 * Keeps the token of a source. It is fetched again when it expires within a minute, and after the server has rejected it.
 * Parallel requests share one call of the source.
 *
 * @param audience for messages
 * @param learn called with each new token
 * @param now milliseconds since the epoch
 */
export function createTokens(
  source: TokenSource,
  audience: string,
  learn: (token: string) => void,
  now: () => number = Date.now,
): Tokens {
  let held: string | undefined
  let fetching: Promise<string> | undefined

  async function fetchNew(signal: AbortSignal): Promise<string> {
    const token = await source.fetch(signal)
    if (token !== held) learn(token)
    held = token
    return token
  }

  const fetch = (signal: AbortSignal) => {
    fetching ??= fetchNew(signal).finally(() => (fetching = undefined))
    return fetching
  }

  return {
    async get(signal) {
      const isGood = held !== undefined && (!source.isRenewable || endOf(held) - now() > MARGIN_MS)
      return held !== undefined && isGood ? held : fetch(signal)
    },
    async replace(used, signal) {
      if (!source.isRenewable) return undefined
      return held === undefined || held === used ? fetch(signal) : held
    },
    explain(used) {
      const end = endOf(used)
      if (!source.isRenewable && end <= now())
        return `The token in ${source.name} expired at ${showMoment(end)} and can't be renewed. Upload in a job of its own, or use an upload key.`
      return `The server rejected the token of ${source.name}. Compare "auth.tokens" of the server: "audience" must be "${audience}", and "claims" must match this job.`
    },
  }
}

/**
 * When a token expires (RFC 7519, section 4.1.4), milliseconds since the epoch. The token is not verified. Infinity if it can't
 * be read: tokens may have other formats.
 */
function endOf(token: string): number {
  try {
    const claims = membersOf(JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()))
    const end = Number(claims['exp']) * 1000
    return end > 0 && end < LAST_DATE ? end : Infinity
  } catch {
    return Infinity
  }
}

/** The last time that a Date can represent. */
const LAST_DATE = 8_640_000_000_000_000

/**
 * The audience of tokens for a server: its URL without `/upload`, query, user name and password, and without a slash at the
 * end. Scheme and host are in lower case, and the default port is omitted.
 */
export function audienceOf(server: string): string {
  const { origin, pathname } = new URL(server)
  let path = pathname.replace(/\/upload\/?$/, '')
  while (path.endsWith('/')) path = path.slice(0, -1)
  return origin + path
}
