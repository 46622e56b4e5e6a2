import { type ErrorCode, messageOf, UploadError } from '../../errors.ts'
import type { Passing } from '../../flow/retry.ts'
import { createHttpAgents } from '../../http/agents.ts'
import { basicAuthorization, endpointOf, exchange, type RawReply } from '../../http/exchange.ts'
import {
  explainNetwork,
  isNoTls,
  isPassing,
  isPassingStatus,
  isUntrusted,
  networkCodeOf,
  parseRetryAfter,
} from '../../http/network.ts'
import { ProxyFailure } from '../../http/proxy/failure.ts'
import { fromEnvironment } from '../../http/proxy/outgoing.ts'
import type { RequestBody } from '../../http/request-body.ts'
import { decodeSafely } from '../../mask.ts'
import type { Context } from '../context.ts'
import { INTERRUPTION } from '../result.ts'
import { PATIENCE, SilenceError, whileStillThere } from './still-there.ts'
import { REPLY_LIMITS, ResponseError, readResponse, type UploadResponse } from './upload-response.ts'

/** What came of one request. */
export interface RequestOutcome extends UploadResponse {
  /** Undefined: there was no answer. */
  readonly status?: number
  /** The same request may succeed later. */
  readonly passing?: Passing
  /** Nobody listens there: it is not started yet, or its address is wrong. */
  readonly isAbsent?: boolean
  /** The server took the request and said nothing any more. */
  readonly isSilent?: boolean
  /** It contradicts itself: what it stored can't be known. */
  readonly isUnclear?: boolean
}

export interface RemoteRequest {
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: RequestBody
  /** Inputs in it; Infinity: not known. */
  readonly count: number
}

/** A running server, as the commands speak to it. */
export interface Remote {
  /** One POST; it fails in its reply only. */
  post(request: RemoteRequest, signal: AbortSignal): Promise<RequestOutcome>
}

/** Refusals that pass, also where every status is 200. A delivery that has failed was tried again by the server. */
const PASSING_CODES: ReadonlySet<string> = new Set<ErrorCode>([
  'request_timeout',
  'rate_limited',
  'overloaded',
  'shutting_down',
  'store_unavailable',
])
/** Their statuses, for servers that name no code. Of a proxy, others pass, too: `isPassingStatus`. */
const REFUSAL_STATUSES = new Set([408, 429, 503])

/**
 * @param server its address, with or without `/upload`; user name and password in it are for a proxy (Basic)
 * @param key upload key
 * @param patience with a server that says nothing
 */
export function openRemote(
  server: string,
  key: string | undefined,
  context: Pick<Context, 'env' | 'learn'>,
  patience = PATIENCE,
): Remote {
  const base = uploadAddress(server)
  // With the user's name: a short password alone may be a word of any answer.
  const password = passwordOf(base)
  const pair = password === '' ? [] : [`${decodeSafely(base.username)}:${password}`, base.password]
  context.learn([key ?? '', ...pair.filter(part => part.length >= 8)].filter(secret => secret !== ''))
  const login = basicAuthorization(base)
  const { host } = base
  const outgoing = fromEnvironment(context.env)
  const agents = createHttpAgents({ insecureTls: false, idleTimeoutMs: patience.idleMs, outgoing })

  /** No redirect is followed: whoever that leads to would get the key. */
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
    const url = new URL(base)
    for (const [name, value] of Object.entries(request.query ?? {}))
      if (value) url.searchParams.set(name, value)
    const keyHeader = key && { 'x-upload-key': Buffer.from(key, 'utf8').toString('latin1') }
    const { body, headers } = { ...request, headers: { ...request.headers, ...keyHeader } }
    try {
      const work = (signal: AbortSignal) => send('POST', url, { body, headers }, signal)
      return judge(await whileStillThere(work, ask, patience, signal), request.count, url)
    } catch (error) {
      if (signal.aborted) return interrupted()
      return error instanceof SilenceError ? silent(host) : unreached(error, host)
    }
  }

  /** Whether the server still answers: the first path that comes to a server of this API, or what stands in front of it. */
  async function ask(signal: AbortSignal): Promise<void> {
    const url = new URL(base)
    url.pathname = url.pathname.replace(/upload\/?$/, 'heartbeat')
    url.search = ''
    await send('GET', url, {}, signal)
  }
  return { post }
}

const KEY_HINT = 'Give the upload key of that server by --key or UPLOAD_SERVER_KEY.'

const silent = (host: string): RequestOutcome => ({
  outcomes: [],
  message: `${host} accepts connections but does not answer: it is overloaded, or another program listens there`,
  code: 'unreachable',
  passing: LATER,
  isSilent: true,
})

const LATER: Passing = { retryAfterS: undefined }

const interrupted = (): RequestOutcome => ({ outcomes: [], message: INTERRUPTION, code: 'interrupted' })

function unreached(error: unknown, host: string): RequestOutcome {
  if (error instanceof ProxyFailure) {
    const message = `${host} was not reached: ${error.message}`
    return { outcomes: [], message, code: 'unreachable', ...(error.retryable && { passing: LATER }) }
  }
  if (error instanceof UploadError) return { outcomes: [], message: error.message, code: error.code }
  const code = networkCodeOf(error)
  return {
    outcomes: [],
    message: `${host} can't be reached: ${reasonOf(error)}`,
    code: 'unreachable',
    isAbsent: code === 'ECONNREFUSED' || code === 'ENOTFOUND',
    isSilent: code === 'ETIMEDOUT',
    ...(isPassing(code) && { passing: LATER }),
  }
}

/** What an answer says, and whether to ask again. */
function judge(reply: RawReply, count: number, { host, href }: URL): RequestOutcome {
  const { status, headers } = reply
  const to = headers.location
  if (status >= 300 && status < 400 && to !== undefined && URL.canParse(to, href)) {
    const message = `${host} leads to ${new URL(to, href).origin} (${status}): give that address, if it is yours`
    return { outcomes: [], message, code: 'no_answer', status }
  }
  const retryAfterS = parseRetryAfter(headers['retry-after'])
  // A server that says "now" would be asked without a pause.
  const passing = { retryAfterS: retryAfterS || undefined }
  try {
    const answer = readResponse(reply, count, host)
    const isRefused = answer.outcomes.every(({ url }) => url === undefined) && !answer.finalizationId
    const passes = REFUSAL_STATUSES.has(status) || PASSING_CODES.has(answer.code ?? '')
    const code = answer.code ?? (status === 401 ? 'unauthorized' : undefined)
    const message =
      code === 'unauthorized'
        ? `${answer.message ?? `${host} answered ${status}.`} ${KEY_HINT}`
        : answer.message
    return {
      ...answer,
      ...(message && { message }),
      ...(code && { code }),
      status,
      ...(isRefused && passes && { passing }),
    }
  } catch (error) {
    if (!(error instanceof ResponseError)) throw error
    const { message, isForeign } = error
    if (isForeign && (status === 401 || status === 407))
      return {
        outcomes: [],
        message: `${host} answered ${status}: user name and password, or the upload key, are missing or wrong. Those of a proxy stand in the URL of --server. ${KEY_HINT}`,
        code: 'unauthorized',
        status,
      }
    if (isForeign && status === 413)
      return {
        outcomes: [],
        message: `what stands in front of ${host} takes nothing as large as this (413). nginx says how much in client_max_body_size`,
        code: 'too_large',
        status,
      }
    if (isForeign && isPassingStatus(status))
      return { outcomes: [], message, code: 'unreachable', status, passing }
    return { outcomes: [], message, code: 'no_answer', status, isUnclear: status !== 413 }
  }
}

function reasonOf(error: unknown): string {
  const code = networkCodeOf(error)
  if (code === 'ECONNREFUSED') return 'nothing listens there. Is the server running? upload-server starts it'
  if (isNoTls(code)) return 'it speaks no TLS. Its address begins with http://'
  if (isUntrusted(code))
    return `its certificate is not trusted (${code}). NODE_EXTRA_CA_CERTS names further ones`
  return explainNetwork(error) ?? messageOf(error)
}

/** @param server its address, with or without `/upload` */
function uploadAddress(server: string): URL {
  const url = new URL(server)
  if (!/\/upload\/?$/.test(url.pathname)) url.pathname = `${url.pathname.replace(/\/$/, '')}/upload`
  return url
}

/** What stands in an address is percent-encoded, unless somebody has typed it as it is. */
const passwordOf = ({ password }: URL) => decodeSafely(password)
