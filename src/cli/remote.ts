import { type ErrorCode, messageOf } from '../errors.ts'
import type { Passing } from '../flow/retry.ts'
import { createFetch } from '../http/fetch.ts'
import {
  explainNetwork,
  isNoTls,
  isPassingStatus,
  isUntrusted,
  networkCodeOf,
  parseRetryAfter,
} from '../http/network.ts'
import { ProxyFailure } from '../http/proxy/failure.ts'
import { fromEnvironment } from '../http/proxy/outgoing.ts'
import { decodeSafely } from '../mask.ts'
import { type Answer, AnswerError, readAnswer } from './answer.ts'
import { INTERRUPTION, type Terminal } from './terminal.ts'

/** What came of one request. */
export interface Reply extends Answer {
  /** Undefined: there was no answer. */
  readonly status?: number
  /** The same request may succeed later. */
  readonly passing?: Passing
  /** Nobody listens there: it is not started yet, or its address is wrong. */
  readonly isAbsent?: boolean
  /** It contradicts itself: what it stored can't be known. */
  readonly isUnclear?: boolean
}

export interface RemoteRequest {
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: FormData | string
  /** Inputs in it; Infinity: not known. */
  readonly count: number
}

/** A running server, as the commands speak to it. */
export interface Remote {
  /** One POST; it fails in its reply only. */
  post(request: RemoteRequest, signal: AbortSignal): Promise<Reply>
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
 */
export function openRemote(server: string, key: string | undefined, terminal: Terminal): Remote {
  const base = uploadAddress(server)
  terminal.learn([key ?? '', passwordOf(base)].filter(secret => secret !== ''))
  const login = takeLogin(base)
  const { host } = base
  const fetch = createFetch(fromEnvironment(terminal.env))

  async function post(request: RemoteRequest, signal: AbortSignal): Promise<Reply> {
    const url = new URL(base)
    for (const [name, value] of Object.entries(request.query ?? {}))
      if (value) url.searchParams.set(name, value)
    const headers = new Headers(request.headers)
    if (login !== undefined) headers.set('Authorization', login)
    if (key) headers.set('X-Upload-Key', Buffer.from(key, 'utf8').toString('latin1'))
    let response: Response
    try {
      const { body = null } = request
      // No redirect is followed: whoever that leads to would get the key.
      response = await fetch(url, { method: 'POST', body, headers, signal })
    } catch (error) {
      return signal.aborted ? interrupted() : unreached(error, host)
    }
    try {
      return await judge(response, request.count, url)
    } catch (error) {
      if (signal.aborted) return interrupted()
      const message = `the answer of ${host} broke off: ${reasonOf(error)}`
      return { outcomes: [], message, code: 'unreachable', status: response.status, passing: LATER }
    }
  }
  return { post }
}

const LATER: Passing = { retryAfterS: undefined }

const interrupted = (): Reply => ({ outcomes: [], message: INTERRUPTION, code: 'interrupted' })

function unreached(error: unknown, host: string): Reply {
  if (error instanceof ProxyFailure) {
    const message = `${host} was not reached: ${error.message}`
    return { outcomes: [], message, code: 'unreachable', ...(error.retryable && { passing: LATER }) }
  }
  const code = networkCodeOf(error)
  if (hasCause(error, 'NotReadableError'))
    return { outcomes: [], message: 'it was changed while it was sent', code: 'source_failed' }
  // Without a code nothing was tried: `fetch` takes no such address.
  const isForGood = code === '' || isNoTls(code) || isUntrusted(code) || code === 'ENOTFOUND'
  return {
    outcomes: [],
    message: `${host} can't be reached: ${reasonOf(error)}`,
    code: 'unreachable',
    isAbsent: code === 'ECONNREFUSED' || code === 'ENOTFOUND',
    ...(!isForGood && { passing: LATER }),
  }
}

function hasCause(error: unknown, name: string): boolean {
  return error instanceof Error && (error.name === name || hasCause(error.cause, name))
}

/** What an answer says, and whether to ask again. */
async function judge(response: Response, count: number, { host, href }: URL): Promise<Reply> {
  const { status, headers } = response
  const to = headers.get('location')
  if (status >= 300 && status < 400 && to !== null && URL.canParse(to, href)) {
    const message = `${host} leads to ${new URL(to, href).origin} (${status}): give that address, if it is yours`
    return { outcomes: [], message, code: 'no_answer', status }
  }
  const retryAfterS = parseRetryAfter(headers.get('retry-after') ?? undefined)
  // A server that says "now" would be asked without a pause.
  const passing = { retryAfterS: retryAfterS || undefined }
  try {
    const answer = await readAnswer(response, count, host)
    const isRefused = answer.outcomes.every(({ url }) => url === undefined) && !answer.finalizationId
    const passes = REFUSAL_STATUSES.has(status) || PASSING_CODES.has(answer.code ?? '')
    const code = answer.code ?? (status === 401 ? 'unauthorized' : undefined)
    return { ...answer, ...(code && { code }), status, ...(isRefused && passes && { passing }) }
  } catch (error) {
    if (!(error instanceof AnswerError)) throw error
    const { message, isForeign } = error
    if (isForeign && (status === 401 || status === 407))
      return {
        outcomes: [],
        message: `${host} answered ${status}: user name and password, or the key, are missing or wrong`,
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
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  return explainNetwork(cause) ?? messageOf(cause)
}

/** @param server its address, with or without `/upload` */
function uploadAddress(server: string): URL {
  const url = new URL(server)
  if (!/\/upload\/?$/.test(url.pathname)) url.pathname = `${url.pathname.replace(/\/$/, '')}/upload`
  return url
}

/** What stands in an address is percent-encoded, unless somebody has typed it as it is. */
const passwordOf = ({ password }: URL) => decodeSafely(password)

/** Takes user name and password out of an address, which `fetch` refuses, as Basic authorization (RFC 7617) for a proxy. */
function takeLogin(url: URL): string | undefined {
  if (url.username === '' && url.password === '') return undefined
  const login = `${decodeSafely(url.username)}:${passwordOf(url)}`
  url.username = ''
  url.password = ''
  return `Basic ${Buffer.from(login).toString('base64')}`
}
