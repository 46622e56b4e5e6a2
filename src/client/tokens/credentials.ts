import { messageOf } from '../../errors.ts'
import { isLoopback } from '../../http/proxy/no-proxy.ts'
import { findSource } from './find-source.ts'
import { isOfJob, type TokenContext, TokenError, type TokenSource } from './token-source.ts'
import { audienceOf, createTokens, type Tokens } from './tokens.ts'

/** What identifies the client. */
export interface Credentials {
  /** Upload key. Empty: none. */
  readonly key?: string | undefined
  /** A signed token (JWT), or a function that gets one and is called again before that one expires. */
  readonly token?: string | ((signal: AbortSignal) => Promise<string>) | undefined
  /** Value of `--token-from`. Default: without a key or token, the tokens of the CI job, if it has any. */
  readonly tokenFrom?: string | undefined
}

/** The tokens of a job that may have none: uploads then go on without a token, and the reason is told if they are rejected. */
export interface ClientTokens extends Omit<Tokens, 'get'> {
  get(signal: AbortSignal): Promise<string | undefined>
  /** Why the job has no token, as a whole sentence. */
  absence?: string
}

/** The tokens that the user asked for; otherwise those of the CI job. */
export function openTokens(
  base: URL,
  { token, tokenFrom }: Credentials,
  context: TokenContext,
  limitMs: number,
): ClientTokens | undefined {
  const audience = audienceOf(base.href)
  const source = token ? ownSource(token) : findSource(tokenFrom, { audience, limitMs }, context)
  if (source === undefined) return undefined
  if (!token && isOfJob(tokenFrom) && isPlain(base))
    source.fetch = async () => {
      throw new TokenError(
        `Refused to send a token of this job to ${base.host} over unencrypted http. Use an https:// URL, or an upload key.`,
        { isAbsent: true },
      )
    }
  const tokens = createTokens(source, audience, text => {
    context.learn([text])
    context.maskInJobLog(text)
  })
  const isAskedFor = Boolean(token) || tokenFrom !== undefined
  const optional: ClientTokens = {
    ...tokens,
    async get(signal) {
      if (optional.absence !== undefined) return undefined
      try {
        return await tokens.get(signal)
      } catch (error) {
        if (isAskedFor || !(error instanceof TokenError) || !error.isAbsent) throw error
        optional.absence = error.message
        return undefined
      }
    },
  }
  return optional
}

/** The token that a program passes, or what gets it. */
function ownSource(token: NonNullable<Credentials['token']>): TokenSource {
  const isRenewable = typeof token === 'function'
  return {
    name: 'the option "token"',
    isRenewable,
    async fetch(signal) {
      try {
        return isRenewable ? await token(signal) : token
      } catch (error) {
        signal.throwIfAborted()
        throw new TokenError(`The option "token" returned no token: ${messageOf(error)}.`)
      }
    },
  }
}

/** Whether requests to a URL are not encrypted on their way to another machine. */
export const isPlain = ({ protocol, hostname }: URL) =>
  protocol === 'http:' && !isLoopback(hostname.replace(/^\[|\]$/g, ''))
