import { messageOf } from '../../errors.ts'
import { beginTimeLimit } from '../../flow/time-limit.ts'
import { membersOf, parseJson } from '../../members.ts'
import { showMoment } from '../../times.ts'
import { findSource } from './sources.ts'
import { isOfJob, isPlain, type TokenContext, TokenError, type TokenSource } from './token-source.ts'

/** What identifies the client. */
export interface Credentials {
  /** Upload key. Empty: none. */
  readonly key?: string | undefined
  /** A signed token (JWT), or a function that gets one and is called again before that one expires. */
  readonly token?: string | ((signal: AbortSignal) => Promise<string>) | undefined
  /** Value of `--token-from`. Default: without a key or token, the tokens of the CI job, if it has any. */
  readonly tokenFrom?: string | undefined
}

/** The tokens of one server, shared by parallel requests. */
export interface Tokens {
  /** A token that does not expire soon. Undefined if a job that need not have one has none. @throws TokenError */
  get(signal: AbortSignal): Promise<string | undefined>
  /** Another token after the server has rejected `used`. Undefined if there is none. @throws TokenError */
  replace(used: string, signal: AbortSignal): Promise<string | undefined>
  /** Why the server may have rejected a request with this token or without one, as a whole sentence. */
  explain(used: string | undefined): string
}

/** A token is replaced when it expires within this time, milliseconds. */
const MARGIN_MS = 60_000

interface TokenOptions {
  /** For messages. */
  readonly audience: string
  /** Time limit for one token, milliseconds. */
  readonly limitMs: number
  /** Whether uploads go on without a token if the job can't get one. The reason is then told if they are rejected. */
  readonly isOptional: boolean
  /** Called with each new token. */
  learn(token: string): void
  /** Milliseconds since the epoch. */
  now?(): number
}

/**
 * Keeps the token of a source. It is fetched again when it expires within a minute, and after the server has rejected it.
 * Parallel requests share one call of the source.
 */
export function createTokens(
  source: TokenSource,
  { audience, limitMs, isOptional, learn, now = Date.now }: TokenOptions,
): Tokens {
  const { name, isRenewable } = source
  let held: string | undefined
  let fetching: Promise<string> | undefined
  /** Why the job has no token. */
  let absence: string | undefined

  async function fetchNew(outer: AbortSignal): Promise<string> {
    const late = () =>
      new TokenError(`${name} returned no token within ${limitMs / 1000} s.`, {
        transient: { retryAfterS: undefined },
      })
    const limit = beginTimeLimit(limitMs, outer, late)
    try {
      const token = await source.fetch(limit.signal)
      if (token !== held) learn(token)
      held = token
      return token
    } finally {
      limit.end()
    }
  }

  const fetch = (signal: AbortSignal) => {
    fetching ??= fetchNew(signal).finally(() => (fetching = undefined))
    return fetching
  }

  return {
    async get(signal) {
      if (absence !== undefined) return undefined
      if (held !== undefined && (!isRenewable || endOf(held) - now() > MARGIN_MS)) return held
      try {
        return await fetch(signal)
      } catch (error) {
        if (!isOptional || !(error instanceof TokenError) || !error.isAbsent) throw error
        absence = error.message
        return undefined
      }
    },
    async replace(used, signal) {
      if (!isRenewable) return undefined
      return held === undefined || held === used ? fetch(signal) : held
    },
    explain(used) {
      if (used === undefined) return absence ?? ''
      const end = endOf(used)
      if (!isRenewable && end <= now())
        return `The token in ${name} expired at ${showMoment(end)} and can't be renewed. Upload in a job of its own, or use an upload key.`
      return `The server rejected the token of ${name}. Compare "auth.tokens" of the server: "audience" must be "${audience}", and "claims" must match this job.`
    },
  }
}

/** The last time that a Date can represent. */
const LAST_DATE = 8_640_000_000_000_000

/**
 * When a token expires (RFC 7519, section 4.1.4), milliseconds since the epoch. The token is not verified. Infinity if it can't
 * be read: tokens may have other formats.
 */
function endOf(token: string): number {
  const claims = parseJson(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  const end = Number(membersOf(claims)['exp']) * 1000
  return end > 0 && end < LAST_DATE ? end : Infinity
}

/** The tokens that the user asked for; otherwise those of the CI job. @param limitMs time limit for one token */
export function openTokens(
  base: URL,
  { token, tokenFrom }: Credentials,
  context: TokenContext,
  limitMs: number,
): Tokens | undefined {
  const audience = audienceOf(base.href)
  const source = token ? ownSource(token) : findSource(tokenFrom, audience, context)
  if (source === undefined) return undefined
  if (!token && isOfJob(tokenFrom) && isPlain(base))
    source.fetch = async () => {
      throw new TokenError(
        `Refused to send a token of this job to ${base.host} over unencrypted http. Use an https:// URL, or an upload key.`,
        { isAbsent: true },
      )
    }
  const learn = (text: string) => {
    context.learn([text])
    context.maskInJobLog(text)
  }
  return createTokens(source, { audience, limitMs, isOptional: !token && tokenFrom === undefined, learn })
}

/** The token that a program passes, or what gets it. */
function ownSource(token: NonNullable<Credentials['token']>): TokenSource {
  return {
    name: 'the option "token"',
    isRenewable: typeof token === 'function',
    async fetch(signal) {
      try {
        return typeof token === 'function' ? await token(signal) : token
      } catch (error) {
        signal.throwIfAborted()
        throw new TokenError(`The option "token" returned no token: ${messageOf(error)}.`)
      }
    },
  }
}

/**
 * The audience of tokens for a server: its URL without `/upload`, query, user name and password, and without a slash at the
 * end. Scheme and host are in lower case, and the default port is omitted.
 */
export function audienceOf(server: string): string {
  const { origin, pathname } = new URL(server)
  return origin + pathname.replace(/\/upload\/?$/, '').replace(/(?<!\/)\/+$/, '')
}
