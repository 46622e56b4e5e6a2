import type { Transience } from '../../flow/retry.ts'
import { isLoopback } from '../../http/proxy/no-proxy.ts'
import type { Context } from '../context.ts'

/** The values of `--token-from` that are not a program. */
export const TOKEN_PROVIDERS = ['github-actions', 'gitlab', 'buildkite', 'circleci'] as const

/** Whether the tokens come from the CI provider that runs this job. They may let their holder do more than upload. */
export const isOfJob = (tokenFrom: string | undefined) =>
  tokenFrom === undefined || TOKEN_PROVIDERS.some(name => name === tokenFrom)

/** Gets signed tokens (JWT) for one audience. */
export interface TokenSource {
  /** Where the tokens come from, for messages. */
  readonly name: string
  /** Whether each call of `fetch` may return another token. */
  readonly isRenewable: boolean
  /** @throws TokenError, or the reason of the signal */
  fetch: (signal: AbortSignal) => Promise<string>
}

/** There is no token. The message is a whole sentence, and contains no token. */
export class TokenError extends Error {
  /** Set if the same request may succeed later. */
  readonly transient: Transience | undefined
  /** Whether the job can't get tokens at all, because a permission, a variable or a program is missing. */
  readonly isAbsent: boolean

  constructor(message: string, more: { transient?: Transience | undefined; isAbsent?: boolean } = {}) {
    super(message)
    this.transient = more.transient
    this.isAbsent = more.isAbsent ?? false
  }
}

/** The parts of the process that a source of tokens uses. */
export type TokenContext = Pick<Context, 'env' | 'cwd' | 'mask' | 'learn' | 'maskInJobLog'>

/** Whether the URL of a server contains an upload key. */
export const hasKey = ({ searchParams }: URL) => searchParams.has('key') || searchParams.has('secret')

/** Whether requests to a URL are not encrypted on their way to another machine. */
export const isPlain = ({ protocol, hostname }: URL) =>
  protocol === 'http:' && !isLoopback(hostname.replace(/^\[|\]$/g, ''))
