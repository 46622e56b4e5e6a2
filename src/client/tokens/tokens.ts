import { membersOf } from '../../members.ts'
import { type TokenContext, TokenError, type TokenSource } from './token-source.ts'

/** A token is renewed this long before it expires, milliseconds, or earlier in its life: a fifth of it. */
const MARGIN_MS = 60_000
const MARGIN_PART = 0.2

export interface Token {
  readonly text: string
  /** When it expires, by the clock of its issuer. Milliseconds since the epoch; undefined if it can't be read. */
  readonly expiresAt: number | undefined
}

/** The tokens of one server, shared by parallel requests. */
export interface Tokens {
  /**
   * A token that does not expire soon. Undefined if the source was not asked for and has none.
   *
   * @throws TokenError
   */
  get(signal: AbortSignal): Promise<{ readonly token: Token; readonly isNew: boolean } | undefined>
  /**
   * A token after the server has rejected `used`. Undefined if there is no other one.
   *
   * @throws TokenError
   */
  replace(used: Token, signal: AbortSignal): Promise<Token | undefined>
  /** Why the server may have rejected a request with this token, or without one, as whole sentences. */
  explain(used: Token | undefined): string
}

/** Two clocks, milliseconds: the system's, since the epoch, and a monotonic one. */
export interface Clocks {
  wall(): number
  steady(): number
}

const CLOCKS: Clocks = { wall: () => Date.now(), steady: () => performance.now() }

interface Held extends Token {
  /** By the monotonic clock. */
  readonly renewAt: number
  readonly endsAt: number
}

/**
 * Keeps the token of a source and replaces it before it expires. Parallel requests share one call of the source.
 *
 * @param isAskedFor whether the user named the source. Otherwise uploads go on without a token if the job can't get one
 * @param audience for messages
 */
export function createTokens(
  source: TokenSource,
  { isAskedFor, audience }: { readonly isAskedFor: boolean; readonly audience: string },
  { learn, maskInJobLog }: Pick<TokenContext, 'learn' | 'maskInJobLog'>,
  clocks: Clocks = CLOCKS,
): Tokens {
  let held: Held | undefined
  let fetching: Promise<Held> | undefined
  /** Why the job has no token. */
  let absence: string | undefined

  async function fetchNew(signal: AbortSignal): Promise<Held> {
    const text = await source.fetch(signal)
    if (text !== held?.text) {
      learn([text])
      maskInJobLog(text)
    }
    held = { text, ...timesOf(text, clocks) }
    return held
  }

  const renew = (signal: AbortSignal) => {
    fetching ??= fetchNew(signal).finally(() => (fetching = undefined))
    return fetching
  }

  return {
    async get(signal) {
      if (absence !== undefined) return undefined
      const isFixed = held !== undefined && !source.isRenewable
      if (held && (isFixed || clocks.steady() < held.renewAt)) return { token: held, isNew: false }
      try {
        return { token: await renew(signal), isNew: true }
      } catch (error) {
        if (!(error instanceof TokenError)) throw error
        // The next request tries again.
        if (held && clocks.steady() < held.endsAt) return { token: held, isNew: false }
        if (isAskedFor || !error.isAbsent) throw error
        absence = error.message
        return undefined
      }
    },
    async replace(used, signal) {
      if (!source.isRenewable) return undefined
      if (held && held.text !== used.text) return held
      return renew(signal)
    },
    explain(used) {
      if (used === undefined) return absence ?? ''
      const { expiresAt } = used
      if (!source.isRenewable && expiresAt !== undefined && expiresAt <= clocks.wall())
        return `The token in ${source.name} expired at ${new Date(expiresAt).toISOString()} and can't be renewed. Upload in a job of its own, or use an upload key.`
      return `The server rejected the token of ${source.name}. Compare "auth.tokens" of the server: "audience" must be "${audience}", and "claims" must match this job.`
    },
  }
}

/** Reads the times of a token (RFC 7519, section 4.1) without verifying it. Tokens in other formats have none. */
function timesOf(text: string, { wall, steady }: Clocks): Pick<Held, 'expiresAt' | 'renewAt' | 'endsAt'> {
  const { exp, iat } = claimsOf(text)
  if (exp === undefined) return { expiresAt: undefined, renewAt: Infinity, endsAt: Infinity }
  const left = exp - wall()
  const life = iat !== undefined && iat < exp ? exp - iat : Math.max(left, 0)
  // A new token that has expired, or was issued in the future, means that the clock of this machine is wrong.
  const leftMs = left > 0 && left < life ? left : life
  const margin = Math.min(MARGIN_MS, life * MARGIN_PART)
  const endsAt = steady() + leftMs
  return { expiresAt: exp, renewAt: endsAt - margin, endsAt }
}

/** Milliseconds since the epoch. */
function claimsOf(text: string): { exp?: number; iat?: number } {
  try {
    const claims = membersOf(JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString()))
    const read = (value: unknown) => (isTime(value) ? value * 1000 : undefined)
    const [exp, iat] = [read(claims['exp']), read(claims['iat'])]
    return { ...(exp !== undefined && { exp }), ...(iat !== undefined && { iat }) }
  } catch {
    return {}
  }
}

/** Seconds since the epoch that a Date can represent. */
const isTime = (value: unknown): value is number =>
  typeof value === 'number' && value > 0 && value < 8_640_000_000_000

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

/** Whether the URL of a server contains an upload key. */
export const hasKey = ({ searchParams }: URL) => searchParams.has('key') || searchParams.has('secret')
