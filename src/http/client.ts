import { type ErrorCode, UploadError } from '../errors.ts'
import { createMask } from '../mask.ts'
import { Problem } from '../problem.ts'
import { decodeHeader, excerpt } from './excerpt.ts'
import type { RawReply, RawRequest } from './exchange.ts'
import { type ConnectionAdvice, connectionProblem, isTransientStatus, parseRetryAfter } from './network.ts'

export interface HttpRequest extends RawRequest {
  /** Returns whether a response is a success. Default: status 200 to 299. */
  readonly accept?: (status: number, reply: HttpReply) => boolean
  /** What to do if the server can't be reached. Default: depends on the failure. */
  readonly advice?: ConnectionAdvice
  /** Finds the reason in an error response, and what to do. Default: its text. */
  readonly explain?: (refusal: HttpReply) => Refusal | undefined
}

/** Why a server rejected a request. Defaults depend on the status. */
export interface Refusal {
  /** Meaning of the status. */
  readonly meaning?: string | undefined
  /** Explanation by the server. Shortened; may be empty if there is a meaning. */
  readonly reason: string
  readonly advice?: string | undefined
  readonly code?: ErrorCode
  readonly retryable?: boolean
  /** Seconds. Default: the header `Retry-After`. */
  readonly retryAfterS?: number | undefined
}

export interface HttpReply extends Omit<RawReply, 'isCut'> {
  /** @throws Problem if the response is not JSON */
  json(): unknown
}

export interface HttpClient {
  /** @throws HttpRefusal; another Problem if there is no response, retryable for network failures */
  send(request: HttpRequest, signal: AbortSignal): Promise<HttpReply>
}

/** Creates an HTTP client of connections. */
export function createHttpClient(
  exchange: (request: RawRequest, signal: AbortSignal) => Promise<RawReply>,
): HttpClient {
  return {
    async send(request, signal) {
      const url = new URL(request.url)
      if (url.username !== '' || url.password !== '')
        throw new Problem(
          `${url.host} was not contacted: the URL must not contain a user name or a password`,
          { advice: 'Remove them.' },
        )
      const { isCut: _, ...raw } = await exchange(request, signal).catch(error => {
        signal.throwIfAborted()
        // An UploadError comes from the body or a proxy, anything else from the connection.
        if (error instanceof UploadError) throw error
        throw connectionProblem(error, `${url.host} can't be reached`, request.advice)
      })
      const text = hideSent(raw.text, request.headers)
      const reply: HttpReply = { ...raw, text, json: () => parse(text, url) }
      const isAccepted = request.accept?.(reply.status, reply) ?? (reply.status >= 200 && reply.status < 300)
      if (!isAccepted) throw new HttpRefusal(reply, request.explain?.(reply) ?? { reason: text }, url)
      return reply
    },
  }
}

/** Minimum length of a credential that is masked. Schemes and their parameters have shorter names. */
const SHORTEST_SENT = 16

/** Masks the credentials of a request in its response, because some servers repeat them. Signatures are unknown to other masks. */
function hideSent(text: string, headers: HttpRequest['headers'] = {}): string {
  const [, sent = ''] = Object.entries(headers).find(([name]) => name.toLowerCase() === 'authorization') ?? []
  // The parameters of Digest include the path of the request. `hideSignatures` knows its values.
  if (text === '' || /^digest\s/i.test(sent)) return text
  return createMask(sent.split(/[\s:=,"]+/).filter(word => word.length >= SHORTEST_SENT))(text)
}

function parse(text: string, url: URL): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Problem(`${url.host} returned a response that is not JSON: ${excerpt(text)}`)
  }
}

/** Reasons and advice for statuses in general. */
const STATUSES: Readonly<Record<number, readonly [reason: string, advice?: string]>> = {
  401: ['the credentials are wrong or expired'],
  403: ['the credentials lack permission'],
  404: ['not found'],
  413: ['the file is too large', 'Send a smaller file.'],
  429: ['too many requests'],
}
const REDIRECT = ['a redirect', 'Use the final URL.'] as const
const OTHER_SERVICE = ['not the expected service', 'Check the URL, and any proxy in between.'] as const

/** The problem of a response that is not a success. */
export class HttpRefusal extends Problem {
  readonly #reply: HttpReply

  constructor(reply: HttpReply, refusal: Refusal, { host }: URL) {
    const { status, headers } = reply
    const isRedirect = status >= 300 && status < 400
    const [usual, advice] = STATUSES[status] ?? (isRedirect ? REDIRECT : status < 300 ? OTHER_SERVICE : [])
    const { meaning = usual, reason, retryable = isTransientStatus(status) } = refusal
    const { retryAfterS = parseRetryAfter(headers['retry-after']) } = refusal
    const where = isRedirect && headers['location']
    const said = where ? `redirect to ${excerpt(decodeHeader(where))}` : excerpt(reason)
    const what = `${host} returned ${status}${meaning ? ` (${meaning})` : ''}`
    super(reason === '' && refusal.meaning ? what : `${what}: ${said}`, {
      advice: refusal.advice ?? (refusal.meaning === undefined ? advice : undefined),
      ...(refusal.code && { code: refusal.code }),
      retryable,
      ...(retryAfterS !== undefined && { retryAfterS }),
    })
    this.#reply = reply
  }

  /** Not a property of the object, because the log has those of every error, and a response may repeat credentials. */
  get reply(): HttpReply {
    return this.#reply
  }
}
