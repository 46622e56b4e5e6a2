import { type ErrorCode, UploadError } from '../../errors.ts'
import type { Transience } from '../../flow/retry.ts'
import { createConnections } from '../../http/connections.ts'
import { basicAuthorization, type RawReply } from '../../http/exchange.ts'
import type { TypedBody } from '../../http/form-body.ts'
import {
  connectionProblem,
  isTransient,
  isTransientStatus,
  networkCodeOf,
  parseRetryAfter,
} from '../../http/network.ts'
import { fromEnvironment } from '../../http/proxy/outgoing.ts'
import { ProxyFailure } from '../../http/proxy/tunnel.ts'
import { decodeSafely } from '../../mask.ts'
import type { Context } from '../context.ts'
import { INTERRUPTION } from '../result.ts'
import { hasKey, isOfJob, isPlain, type TokenContext, TokenError } from '../tokens/token-source.ts'
import { type Credentials, openTokens } from '../tokens/tokens.ts'
import { REPLY_LIMITS, ResponseError, readResponse, type UploadResponse } from './response.ts'

/** The outcome of one request. */
export interface RequestOutcome extends UploadResponse {
  /** The body of a response with status 200 at a `path`. */
  readonly text?: string
  /** HTTP status. Undefined if there was no response. */
  readonly status?: number
  /** Set after a transient failure: the same request may succeed later. */
  readonly transient?: Transience
  /** Whether no server listens at the URL, because it has not started yet or the URL is wrong. */
  readonly isAbsent?: boolean
  /** Whether the server accepted the connection and then stopped responding. */
  readonly isSilent?: boolean
}

export interface ServerRequest {
  /** Path below `/upload`. Default: the upload itself. */
  readonly path?: string
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: TypedBody
}

/**
 * Error codes of transient failures, needed because a server may respond to everything with status 200. `destination_failed` is
 * not one of them: the server has already retried it.
 */
const TRANSIENT_CODES: ReadonlySet<string> = new Set<ErrorCode>([
  'request_timeout',
  'rate_limited',
  'overloaded',
  'shutting_down',
  'database_unavailable',
  'identity_unavailable',
])
/** Statuses of transient failures, for servers that return no code. A reverse proxy has more: `isTransientStatus`. */
const TRANSIENT_STATUSES = new Set([408, 429, 503])

/** A connection of which nothing comes for so long is closed, milliseconds. A server stores a file before it responds. */
const IDLE_MS = 5 * 60_000

/** After so long without a byte, the user is told what is waited for. Milliseconds. */
const SLOW_MS = 30_000

/** Persistent connections to one running server. */
export interface Connection {
  /**
   * Sends one POST request. Never throws: the outcome describes failures, too.
   *
   * @param onSlow called with a sentence when the server takes long to respond
   */
  post(
    request: ServerRequest,
    signal: AbortSignal,
    onSlow?: (message: string) => void,
  ): Promise<RequestOutcome>
  close(): void
}

interface ConnectionOptions {
  /** How long to wait for a token, milliseconds. Default: 30 s. */
  readonly tokenMs?: number
  /** How long to wait for a server that sends nothing, and after which time the user is told; milliseconds. */
  readonly idleMs?: number
  readonly slowMs?: number
}

/** @param server its URL, with or without `/upload`; a user name and password in it are for a reverse proxy (Basic) */
export function openConnection(
  server: string,
  credentials: Credentials,
  context: TokenContext,
  { tokenMs = 30_000, idleMs = IDLE_MS, slowMs = SLOW_MS }: ConnectionOptions = {},
): Connection {
  const base = new URL(server)
  if (!/\/upload\/?$/.test(base.pathname)) base.pathname = `${base.pathname.replace(/\/$/, '')}/upload`
  const { host } = base
  const { key, token, tokenFrom } = credentials
  // Masked together with the user name, because a short password alone may be a word of any response.
  const password = decodeSafely(base.password)
  const pair = password === '' ? [] : [`${decodeSafely(base.username)}:${password}`, base.password]
  context.learn([key ?? '', ...pair.filter(part => part.length >= 8)].filter(secret => secret !== ''))
  const login = basicAuthorization(base)
  const isKnown = key || hasKey(base) || (!token && tokenFrom === undefined && login)
  const tokens = isKnown ? undefined : openTokens(base, credentials, context, tokenMs)
  const slowMessage = `${host} has not responded for ${slowMs / 1000} s. It may be storing the file. The upload is given up after ${idleMs / 60_000} min without a response.`
  const { exchange, close } = createConnections({
    idleTimeoutMs: idleMs,
    outgoing: fromEnvironment(context.env),
  })

  function credentialsOf(token: string | undefined): Record<string, string> {
    if (key) return { 'x-upload-key': Buffer.from(key, 'utf8').toString('latin1') }
    if (token === undefined) return {}
    // `Authorization` may already have the password for a reverse proxy.
    return login ? { 'x-upload-key': token } : { authorization: `Bearer ${token}` }
  }

  /** Sends the request with a token. Redirects are not followed, because another server would then get the upload key. */
  async function send(
    { path, query = {}, headers, body }: ServerRequest,
    token: string | undefined,
    signal: AbortSignal,
    onSlow: (message: string) => void,
  ): Promise<RequestOutcome> {
    const url = new URL(path === undefined ? base : `${base.pathname.replace(/\/$/, '')}/${path}`, base)
    for (const [name, value] of Object.entries(query)) if (value) url.searchParams.set(name, value)
    const all = {
      ...(login && { authorization: login }),
      ...(body && { 'content-type': body.contentType }),
      ...headers,
      ...credentialsOf(token),
    }
    const slow = setTimeout(() => onSlow(slowMessage), slowMs).unref()
    const sent = body && { ...body, read: (signal: AbortSignal) => refreshing(body.read(signal), slow) }
    try {
      const request = { url, method: 'POST', headers: all, body: sent, ...REPLY_LIMITS }
      const reply = await exchange(request, signal)
      if (path !== undefined && reply.status === 200) return { files: [], status: 200, text: reply.text }
      const why = tokens?.explain(token) ?? ''
      return judge(reply, url, token === undefined ? `${KEY_HINT} ${why}`.trim() : why)
    } catch (error) {
      signal.throwIfAborted()
      return toUnreachable(error, host)
    } finally {
      clearTimeout(slow)
    }
  }

  return {
    async post(request, signal, onSlow = () => {}) {
      try {
        const token = await tokens?.get(signal)
        const outcome = await send(request, token, signal, onSlow)
        if (outcome.code !== 'unauthorized' || token === undefined) return outcome
        const other = await tokens?.replace(token, signal)
        return other === undefined ? outcome : await send(request, other, signal, onSlow)
      } catch (error) {
        if (signal.aborted) return failure('interrupted', INTERRUPTION)
        if (!(error instanceof TokenError)) throw error
        const { message, transient } = error
        return failure('no_token', message, transient && { transient })
      }
    },
    close,
  }
}

/** The same chunks. Each one restarts the timer. */
async function* refreshing(chunks: AsyncGenerator<Buffer>, timer: NodeJS.Timeout): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    timer.refresh()
    yield chunk
  }
}

/** Warns that an upload key, token or password is sent to another machine without encryption. */
export function warnOfPlainHttp(
  server: string,
  { key, token, tokenFrom }: Credentials,
  { note }: Pick<Context, 'note'>,
): void {
  const url = new URL(server)
  const what =
    (key || hasKey(url) ? 'the upload key' : undefined) ??
    (token || !isOfJob(tokenFrom) ? 'the token' : undefined) ??
    (url.password === '' ? undefined : 'the password')
  if (what !== undefined && isPlain(url))
    note(`Warning: ${what} is sent to ${url.host} over unencrypted http. Use an https:// URL.`)
}

const KEY_HINT = 'Pass the upload key of that server with --key or UPLOAD_SERVER_KEY.'

const failure = (code: string, message: string, more: Partial<RequestOutcome> = {}): RequestOutcome => ({
  files: [],
  message,
  code,
  ...more,
})

const SERVER_ADVICE = {
  ECONNREFUSED: 'Start the server with "upload-server", or check the URL.',
  tls: 'If it does not use TLS, begin the URL with http://.',
  certificate: 'Set NODE_EXTRA_CA_CERTS to a file with its CA certificate.',
}

function toUnreachable(error: unknown, host: string): RequestOutcome {
  const away = `${host} can't be reached`
  const later = { transient: { retryAfterS: undefined } }
  if (error instanceof ProxyFailure)
    return failure('unreachable', `${away}: ${error.message}`, error.retryable ? later : {})
  if (error instanceof UploadError) return failure(error.code, error.message)
  const code = networkCodeOf(error)
  const { why, advice, message } = connectionProblem(error, away, SERVER_ADVICE)
  return failure('unreachable', advice === undefined ? why : message, {
    isAbsent: code === 'ECONNREFUSED' || code === 'ENOTFOUND',
    isSilent: code === 'ETIMEDOUT',
    ...(isTransient(error) && later),
  })
}

/**
 * Reads a response, and decides whether the request may be retried.
 *
 * @param hint what to do if the server rejected the upload key or token
 */
function judge(reply: RawReply, { host, href }: URL, hint: string): RequestOutcome {
  const { status, headers } = reply
  const to = headers['location']
  if (status >= 300 && status < 400 && to !== undefined && URL.canParse(to, href)) {
    const message = `${host} redirects to ${new URL(to, href).origin} (${status}). If that server is yours, pass its URL to --server`
    return failure('no_answer', message, { status })
  }
  // A `Retry-After` of 0 would cause retries without a pause.
  const transient = { retryAfterS: parseRetryAfter(headers['retry-after']) || undefined }
  try {
    const answer = readResponse(reply, host)
    const { files, message, code = status === 401 ? 'unauthorized' : undefined, finalizationId } = answer
    const isRefused = files.length === 0 && finalizationId === undefined
    const isTransient = isRefused && (TRANSIENT_STATUSES.has(status) || TRANSIENT_CODES.has(code ?? ''))
    return {
      ...answer,
      status,
      ...(code && { code }),
      ...(code === 'unauthorized' && {
        message: `${message ?? `${host} responded with ${status}.`} ${hint}`,
      }),
      ...(isTransient && { transient }),
    }
  } catch (error) {
    if (!(error instanceof ResponseError)) throw error
    const { message, isForeign } = error
    if (isForeign && (status === 401 || status === 407)) {
      const missing = `${host} responded with ${status}: the user name and password, or the upload key, are missing or wrong. If a reverse proxy requires a user name and password, put them into the URL of --server. ${hint}`
      return failure('unauthorized', missing, { status })
    }
    if (isForeign && status === 413) {
      const large = `the reverse proxy in front of ${host} rejected the request as too large (413). In nginx, increase client_max_body_size`
      return failure('too_large', large, { status })
    }
    if (isForeign && isTransientStatus(status)) return failure('unreachable', message, { status, transient })
    return failure('no_answer', message, { status })
  }
}
