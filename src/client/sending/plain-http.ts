import { isLoopback } from '../../http/proxy/no-proxy.ts'
import type { Context } from '../context.ts'
import { TOKEN_PROVIDERS } from '../tokens/token-source.ts'
import { hasKey } from '../tokens/tokens.ts'

/** What identifies the client. */
export interface Credentials {
  /** Upload key. Empty: none. */
  readonly key?: string | undefined
  /** Value of `--token-from`. Undefined: without a key, the tokens of the CI job, if it has any. */
  readonly tokenFrom?: string | undefined
}

/** Whether requests to a URL are not encrypted on their way to another machine. */
export const isPlain = ({ protocol, hostname }: URL) =>
  protocol === 'http:' && !isLoopback(hostname.replace(/^\[|\]$/g, ''))

/** Whether the tokens come from the CI provider that runs this job. They may let their holder do more than upload. */
export const isOfJob = (tokenFrom: string | undefined) =>
  tokenFrom === undefined || TOKEN_PROVIDERS.some(name => name === tokenFrom)

/** Warns that an upload key, token or password is sent to another machine without encryption. */
export function warnOfPlainHttp(
  server: string,
  { key, tokenFrom }: Credentials,
  { note }: Pick<Context, 'note'>,
): void {
  const url = new URL(server)
  const what =
    (key || hasKey(url) ? 'the upload key' : undefined) ??
    (isOfJob(tokenFrom) ? undefined : 'the token') ??
    (url.password === '' ? undefined : 'the password')
  if (what !== undefined && isPlain(url))
    note(`Warning: ${what} is sent to ${url.host} over unencrypted http. Use an https:// URL.`)
}
