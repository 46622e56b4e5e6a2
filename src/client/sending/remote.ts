import { type ErrorCode, messageOf, UploadError } from '../../errors.ts'
import type { Transience } from '../../flow/retry.ts'
import { createHttpAgents } from '../../http/agents.ts'
import { basicAuthorization, endpointOf, exchange, type RawReply } from '../../http/exchange.ts'
import {
  explainNetwork,
  isNoTls,
  isTransient,
  isTransientStatus,
  isUntrusted,
  networkCodeOf,
  parseRetryAfter,
} from '../../http/network.ts'
import { ProxyFailure } from '../../http/proxy/failure.ts'
import { fromEnvironment } from '../../http/proxy/outgoing.ts'
import type { RequestBody } from '../../http/request-body.ts'
import { decodeSafely } from '../../mask.ts'
import { INTERRUPTION } from '../result.ts'
import { findSource } from '../tokens/find-source.ts'
import { type TokenContext, TokenError } from '../tokens/token-source.ts'
import { audienceOf, createTokens, hasKey, type Token, type Tokens } from '../tokens/tokens.ts'
import { type Credentials, isOfJob, isPlain } from './plain-http.ts'
import { REPLY_LIMITS, ResponseError, readResponse, type UploadResponse } from './upload-response.ts'
import { PATIENCE, type Patience, SilenceError, whileResponsive } from './while-responsive.ts'

/** The outcome of one request. */
export interface RequestOutcome extends UploadResponse {
  /** HTTP status. Undefined if there was no response. */
  readonly status?: number
  /** Set after a transient failure: the same request may succeed later. */
  readonly transient?: Transience
  /** Whether no server listens at the URL, because it has not started yet or the URL is wrong. */
  readonly isAbsent?: boolean
  /** Whether the server accepted the connection and then stopped responding. */
  readonly isSilent?: boolean
  /** Whether it is unknown what the server stored, because its response is not that of an upload server. */
  readonly isUnclear?: boolean
}

export interface RemoteRequest {
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: RequestBody
  /** Number of inputs in it. Infinity if it is not known. */
  readonly count: number
}

/** A client of one running server. */
export interface Remote {
  /** Sends one POST request. Never throws: the outcome describes failures, too. */
  post(request: RemoteRequest, signal: AbortSignal): Promise<RequestOutcome>
}

/**
 * Error codes of transient failures, needed because a server may respond to everything with status 200. `delivery_failed` is
 * not one of them: the server has already retried it.
 */
const TRANSIENT_CODES: ReadonlySet<string> = new Set<ErrorCode>([
  'request_timeout',
  'rate_limited',
  'overloaded',
  'shutting_down',
  'store_unavailable',
  'identity_unavailable',
])
/** Statuses of transient failures, for servers that return no code. A reverse proxy has more: `isTransientStatus`. */
const TRANSIENT_STATUSES = new Set([408, 429, 503])

/**
 * @param server its URL, with or without `/upload`; a user name and password in it are for a reverse proxy (Basic)
 * @param patience how long to wait for a server that sends nothing
 */
export function openRemote(
  server: string,
  { key, tokenFrom }: Credentials,
  context: TokenContext,
  patience = PATIENCE,
): Remote {
  const base = uploadUrl(server)
  // Masked together with the user name, because a short password alone may be a word of any response.
  const password = passwordOf(base)
  const pair = password === '' ? [] : [`${decodeSafely(base.username)}:${password}`, base.password]
  context.learn([key ?? '', ...pair.filter(part => part.length >= 8)].filter(secret => secret !== ''))
  const login = basicAuthorization(base)
  const isKnown = key || hasKey(base) || (tokenFrom === undefined && login !== undefined)
  const tokens = isKnown ? undefined : openTokens(base, tokenFrom, context, patience)
  const { host } = base
  const outgoing = fromEnvironment(context.env)
  const agents = createHttpAgents({ insecureTls: false, idleTimeoutMs: patience.idleMs, outgoing })

  /** Redirects are not followed, because another server would then get the upload key. */
  async function send(
    method: string,
    url: URL,
    { headers, body }: Pick<RemoteRequest, 'headers' | 'body'>,
    signal: AbortSignal,
  ): Promise<RawReply> {
    const all = {
      host,
      accept: '*/*',
      'accept-encoding': 'identity',
      'user-agent': 'upload-server',
      ...(login && { authorization: login }),
      ...(body && { 'content-type': body.contentType }),
      ...(method === 'POST' && { 'content-length': String(body?.length ?? 0) }),
      ...headers,
    }
    const way = await agents.get(url)
    const where = { ...endpointOf(url), path: url.pathname + url.search, way }
    const what = { method, headers: all, body: body?.chunks(signal), ...REPLY_LIMITS }
    return exchange({ ...where, ...what }, signal)
  }

  async function post(request: RemoteRequest, signal: AbortSignal): Promise<RequestOutcome> {
    try {
      const first = await tokens?.get(signal)
      const outcome = await attempt(request, first?.token, signal)
      if (outcome.code !== 'unauthorized' || !tokens || !first || first.isNew) return outcome
      const next = await tokens.replace(first.token, signal)
      return next ? await attempt(request, next, signal) : outcome
    } catch (error) {
      if (signal.aborted) return interrupted()
      if (!(error instanceof TokenError)) throw error
      const { message, transient } = error
      return { outcomes: [], message, code: 'no_token', ...(transient && { transient }) }
    }
  }

  async function attempt(
    request: RemoteRequest,
    token: Token | undefined,
    signal: AbortSignal,
  ): Promise<RequestOutcome> {
    const url = new URL(base)
    for (const [name, value] of Object.entries(request.query ?? {}))
      if (value) url.searchParams.set(name, value)
    const { body, headers } = { ...request, headers: { ...request.headers, ...credentialsOf(token) } }
    try {
      const work = (signal: AbortSignal) => send('POST', url, { body, headers }, signal)
      const reply = await whileResponsive(work, ask, patience, signal)
      return judge(reply, request.count, url, hintFor(tokens, token))
    } catch (error) {
      if (signal.aborted) return interrupted()
      return error instanceof SilenceError ? silent(host) : toUnreachable(error, host)
    }
  }

  function credentialsOf(token: Token | undefined): Record<string, string> {
    if (key) return { 'x-upload-key': Buffer.from(key, 'utf8').toString('latin1') }
    if (token === undefined) return {}
    // `Authorization` may already have the password for a reverse proxy.
    return login ? { 'x-upload-key': token.text } : { authorization: `Bearer ${token.text}` }
  }

  /** Checks that the server still responds. A reverse proxy that responds instead of it counts as well. */
  async function ask(signal: AbortSignal): Promise<void> {
    const url = new URL(base)
    url.pathname = url.pathname.replace(/upload\/?$/, 'heartbeat')
    url.search = ''
    await send('GET', url, {}, signal)
  }
  return { post }
}

/** The tokens that the user asked for; otherwise those of the CI job. */
function openTokens(
  base: URL,
  tokenFrom: string | undefined,
  context: TokenContext,
  { tokenMs }: Patience,
): Tokens | undefined {
  const audience = audienceOf(base.href)
  const source = findSource(tokenFrom, { audience, limitMs: tokenMs }, context)
  const refuse = async () => {
    throw new TokenError(
      `Refused to send a token of this job to ${base.host} over unencrypted http. Use an https:// URL, or an upload key.`,
      { isAbsent: true },
    )
  }
  const isRefused = isOfJob(tokenFrom) && isPlain(base)
  return (
    source &&
    createTokens(
      isRefused ? { ...source, fetch: refuse } : source,
      { isAskedFor: tokenFrom !== undefined, audience },
      context,
    )
  )
}

/** What to do if the server rejects a request. */
function hintFor(tokens: Tokens | undefined, token: Token | undefined): string {
  const explanation = tokens?.explain(token) ?? ''
  return token ? explanation : `${KEY_HINT} ${explanation}`.trim()
}

const KEY_HINT = 'Pass the upload key of that server with --key or UPLOAD_SERVER_KEY.'

const silent = (host: string): RequestOutcome => ({
  outcomes: [],
  message: `${host} accepts connections but does not respond: it is overloaded, or another program listens there`,
  code: 'unreachable',
  transient: RETRY_LATER,
  isSilent: true,
})

const RETRY_LATER: Transience = { retryAfterS: undefined }

const interrupted = (): RequestOutcome => ({ outcomes: [], message: INTERRUPTION, code: 'interrupted' })

function toUnreachable(error: unknown, host: string): RequestOutcome {
  if (error instanceof ProxyFailure) {
    const message = `${host} can't be reached: ${error.message}`
    return { outcomes: [], message, code: 'unreachable', ...(error.retryable && { transient: RETRY_LATER }) }
  }
  if (error instanceof UploadError) return { outcomes: [], message: error.message, code: error.code }
  const code = networkCodeOf(error)
  return {
    outcomes: [],
    message: `${host} can't be reached: ${reasonOf(error)}`,
    code: 'unreachable',
    isAbsent: code === 'ECONNREFUSED' || code === 'ENOTFOUND',
    isSilent: code === 'ETIMEDOUT',
    ...(isTransient(code) && { transient: RETRY_LATER }),
  }
}

/**
 * Reads a response, and decides whether the request may be retried.
 *
 * @param hint what to do if the server rejected the upload key or token
 */
function judge(reply: RawReply, count: number, { host, href }: URL, hint: string): RequestOutcome {
  const { status, headers } = reply
  const to = headers.location
  if (status >= 300 && status < 400 && to !== undefined && URL.canParse(to, href)) {
    const message = `${host} redirects to ${new URL(to, href).origin} (${status}). If that server is yours, pass its URL to --server`
    return { outcomes: [], message, code: 'no_answer', status }
  }
  const retryAfterS = parseRetryAfter(headers['retry-after'])
  // A `Retry-After` of 0 would cause retries without a pause.
  const transient = { retryAfterS: retryAfterS || undefined }
  try {
    const answer = readResponse(reply, count, host)
    const isRefused = answer.outcomes.every(({ url }) => url === undefined) && !answer.finalizationId
    const isTransient = TRANSIENT_STATUSES.has(status) || TRANSIENT_CODES.has(answer.code ?? '')
    const code = answer.code ?? (status === 401 ? 'unauthorized' : undefined)
    const message =
      code === 'unauthorized'
        ? `${answer.message ?? `${host} responded with ${status}.`} ${hint}`
        : answer.message
    return {
      ...answer,
      ...(message && { message }),
      ...(code && { code }),
      status,
      ...(isRefused && isTransient && { transient }),
    }
  } catch (error) {
    if (!(error instanceof ResponseError)) throw error
    const { message, isForeign } = error
    if (isForeign && (status === 401 || status === 407))
      return {
        outcomes: [],
        message: `${host} responded with ${status}: the user name and password, or the upload key, are missing or wrong. If a reverse proxy requires a user name and password, put them into the URL of --server. ${hint}`,
        code: 'unauthorized',
        status,
      }
    if (isForeign && status === 413)
      return {
        outcomes: [],
        message: `the reverse proxy in front of ${host} rejected the request as too large (413). In nginx, increase client_max_body_size`,
        code: 'too_large',
        status,
      }
    if (isForeign && isTransientStatus(status))
      return { outcomes: [], message, code: 'unreachable', status, transient }
    return { outcomes: [], message, code: 'no_answer', status, isUnclear: status !== 413 }
  }
}

function reasonOf(error: unknown): string {
  const code = networkCodeOf(error)
  if (code === 'ECONNREFUSED')
    return 'it refuses connections. Start the server with "upload-server", or check the URL'
  if (isNoTls(code)) return 'it does not use TLS. Begin the URL with http://'
  if (isUntrusted(code))
    return `its certificate is not trusted (${code}). Set NODE_EXTRA_CA_CERTS to a file with its CA certificate`
  return explainNetwork(error) ?? messageOf(error)
}

/** @param server its URL, with or without `/upload` */
function uploadUrl(server: string): URL {
  const url = new URL(server)
  if (!/\/upload\/?$/.test(url.pathname)) url.pathname = `${url.pathname.replace(/\/$/, '')}/upload`
  return url
}

/** Passwords in URLs are percent-encoded, unless somebody typed them unencoded. */
const passwordOf = ({ password }: URL) => decodeSafely(password)
