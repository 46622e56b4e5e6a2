import type { Transience } from '../../flow/retry.ts'
import type { Context } from '../context.ts'

/** The values of `--token-from` that are not a program. */
export const TOKEN_PROVIDERS = ['github-actions', 'gitlab', 'buildkite', 'circleci'] as const

export type TokenProvider = (typeof TOKEN_PROVIDERS)[number]

/** Whether the tokens come from the CI provider that runs this job. They may let their holder do more than upload. */
export const isOfJob = (tokenFrom: string | undefined) =>
  tokenFrom === undefined || TOKEN_PROVIDERS.some(name => name === tokenFrom)

/** Maximum length of a token, characters. The server has the same limit. */
const MAX_TOKEN = 16 * 1024

/** Gets signed tokens (JWT) for one audience. */
export interface TokenSource {
  /** Where the tokens come from, for messages. */
  readonly name: string
  /** Whether each call of `fetch` may return another token. */
  readonly isRenewable: boolean
  /** @throws TokenError */
  fetch: (signal: AbortSignal) => Promise<string>
}

/** There is no token. The message is a whole sentence, and contains no token. */
export class TokenError extends Error {
  /** Set if the same request may succeed later. */
  readonly transient: Transience | undefined
  /** Whether the job can't get tokens at all, because a permission, a variable or a program is missing. */
  readonly isAbsent: boolean

  constructor(
    message: string,
    { isTransient = false, isAbsent = false, retryAfterS = undefined as number | undefined } = {},
  ) {
    super(message)
    this.transient = isTransient ? { retryAfterS } : undefined
    this.isAbsent = isAbsent
  }
}

/** The parts of the process that a source of tokens uses. */
export type TokenContext = Pick<Context, 'env' | 'cwd' | 'mask' | 'learn' | 'maskInJobLog'>

/** What every source of tokens needs. */
export interface TokenRequest {
  /** Who the tokens are for. The server compares it with `audience` of its configuration. */
  readonly audience: string
  /** Time limit of one attempt, milliseconds. */
  readonly limitMs: number
}

/**
 * Reads a token, with one line break at its end.
 *
 * @param who what printed or returned it, the subject of the message
 * @throws TokenError
 */
export function readToken(text: string, who: string): string {
  const token = text.replace(/\r?\n$/, '')
  if (token === '') throw new TokenError(`${who} returned no token.`)
  if (token.length > MAX_TOKEN)
    throw new TokenError(`${who} returned more than 16 KiB, which is not a token.`)
  if (/[\r\n]/.test(token)) throw new TokenError(`${who} returned several lines instead of a token.`)
  if (!/^[\x21-\x7e]+$/.test(token))
    throw new TokenError(`${who} returned a text with spaces or special characters, which is not a token.`)
  return token
}

/** Removes what looks like a token from the text of a program or a server. Its first part begins with `{"` in Base64. */
export const hideTokens = (text: string) => text.replace(/eyJ[\w-]+(?:\.[\w-]*)*/g, '[secret]')

/** Whether the URL of a server contains an upload key. */
export const hasKey = ({ searchParams }: URL) => searchParams.has('key') || searchParams.has('secret')
