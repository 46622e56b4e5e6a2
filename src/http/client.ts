import { UploadError } from '../errors.ts'
import { hideSignatures } from '../mask.ts'
import { ownFile } from '../options.ts'
import * as z from '../packages/zod.ts'
import { createHttpAgents, type HttpWay } from './agents.ts'
import { endpointOf, exchange, type Reply } from './exchange.ts'
import {
  explainNetwork,
  isNoTls,
  isPassingStatus,
  isUntrusted,
  networkCodeOf,
  parseRetryAfter,
} from './network.ts'
import { explainProxy, ProxyFailure } from './proxy/failure.ts'
import type { Outgoing } from './proxy/outgoing.ts'

/** What of an answer is looked at for a message: pages begin with scripts and styles. In characters. */
const EXCERPTED_CHARACTERS = 64 * 1024
/** Most of an answer that goes into a message, in characters. */
const EXCERPT_CHARACTERS = 256
/** A connection on which nothing happens for so long is given up. */
const IDLE_TIMEOUT_MS = 60_000

/** Options of every provider that speaks HTTP; spread them into its `config`. */
export const httpOptions = {
  caFile: ownFile()
    .optional()
    .describe('File with the PEM certificates of an authority to trust beside the usual ones.'),
  insecureTls: z
    .boolean()
    .default(false)
    .describe('Accept any certificate. Anybody on the way can then read and change what is sent.'),
}

export interface HttpOptions {
  readonly caFile?: string | undefined
  readonly insecureTls: boolean
}

export interface HttpRequest {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'PATCH' | 'DELETE' | (string & {})
  readonly url: string | URL
  readonly headers?: Readonly<Record<string, string>>
  /**
   * Chunks are made anew for each attempt, need a `Content-Length` header, and have to end with their signal. Each has to
   * be good until the next one is asked for.
   */
  readonly body?: string | Buffer | ((signal: AbortSignal) => AsyncGenerator<Buffer>)
  /** Statuses that are no failure. Default: 200 to 299. */
  readonly accept?: (status: number) => boolean
  /** The answer is cut after so many bytes. Default 1 MiB. */
  readonly maxReplyBytes?: number
  /** What a refusal says, when that can be told from the rest of it. Default: its text. */
  readonly explain?: (refusal: HttpReply) => string | undefined
}

export interface HttpReply {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  /** What `text` was made of. */
  readonly bytes: Buffer
  /** @throws UploadError `delivery_failed` when the answer is no JSON */
  json(): unknown
}

/** Sends requests of one destination over connections that are kept open. */
export interface HttpClient {
  /** @throws UploadError `delivery_failed`, retryable for statuses and network failures that pass */
  send(request: HttpRequest, signal: AbortSignal): Promise<HttpReply>
  close(): void
}

/** Whose connections they are. */
export interface ClientDeps {
  /** For messages. */
  readonly name: string
  /** Default: past every proxy. */
  readonly outgoing?: Outgoing | undefined
  /** A line for the operator. */
  warn(message: string): void
}

/**
 * Makes the client of one destination.
 *
 * @param idleTimeoutMs a connection on which nothing happens for so long is given up; 0 for never
 */
export function createHttpClient(
  { caFile, insecureTls }: HttpOptions,
  deps: ClientDeps,
  idleTimeoutMs = IDLE_TIMEOUT_MS,
): HttpClient {
  if (insecureTls) deps.warn(`${deps.name}: insecureTls accepts any certificate; use caFile instead`)
  const agents = createHttpAgents({ caFile, insecureTls, idleTimeoutMs, outgoing: deps.outgoing })

  async function findWay(url: URL): Promise<HttpWay> {
    try {
      return await agents.get(url)
    } catch (error) {
      if (!(error instanceof UploadError) || error instanceof ProxyFailure)
        throw explainProxy(error, url.host)
      throw new UploadError('delivery_failed', `${deps.name}: ${error.message}.`, { cause: error.cause })
    }
  }

  async function send(request: HttpRequest, signal: AbortSignal): Promise<HttpReply> {
    const url = new URL(request.url)
    const { status, headers, text, bytes } = await sendOnce(request, url, await findWay(url), signal)
    const accept = request.accept ?? (status => status >= 200 && status < 300)
    const entries = Object.entries(headers).map(([name, value]) => [name, String(value)] as const)
    const reply = { status, headers: Object.fromEntries(entries), text, bytes, json: () => parse(text, url) }
    if (!accept(status)) throw statusFailure(reply, request.explain?.(reply) ?? text, url)
    return reply
  }

  return {
    send,
    close: agents.close,
  }
}

/** One request and its answer. */
async function sendOnce(request: HttpRequest, url: URL, way: HttpWay, signal: AbortSignal): Promise<Reply> {
  const { method, body: content, maxReplyBytes } = request
  if (url.username !== '' || url.password !== '') {
    const message = `${url.host} is not asked: its address must not hold a user name or a password.`
    throw new UploadError('delivery_failed', message)
  }
  signal.throwIfAborted()
  const over = new AbortController()
  const text = typeof content === 'string' ? Buffer.from(content) : content
  const body = typeof text === 'function' ? text(AbortSignal.any([signal, over.signal])) : text
  const path = url.pathname + url.search
  const headers = headersOf(request, url)
  try {
    return await exchange({ ...endpointOf(url), way, method, path, headers, body, maxReplyBytes }, signal)
  } catch (error) {
    signal.throwIfAborted()
    // An UploadError comes from the body itself, anything else from the connection.
    throw error instanceof UploadError ? explainProxy(error, url.host) : networkFailure(error, url)
  } finally {
    // After an early refusal the rest would go on being read.
    over.abort()
  }
}

/** Lower-case, as a name may be given in any way. */
function headersOf({ method, headers = {}, body }: HttpRequest, { host }: URL): Record<string, string> {
  const given = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const)
  const isMeasured = typeof body !== 'function' && (body !== undefined || !WITHOUT_BODY.has(method))
  return {
    ...{ host, accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'upload-server' },
    ...(isMeasured && { 'content-length': String(Buffer.byteLength(body ?? '')) }),
    ...Object.fromEntries(given),
  }
}

/** Methods whose requests have no body unless they say so (RFC 9110, section 8.6). */
const WITHOUT_BODY: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE'])

function parse(text: string, url: URL): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new UploadError(
      'delivery_failed',
      `${url.host} answered something that is no JSON: ${excerpt(text)}`,
    )
  }
}

/** The beginning of an answer as one line, without markup, addresses and what it repeats of our credentials. */
export function excerpt(text: string): string {
  const plain = hideSignatures(text.slice(0, EXCERPTED_CHARACTERS))
    .replace(/<(script|style)[\s\S]*?(?:<\/\1>|$)/gi, ' ')
    .replace(/<[^<>]*>/g, ' ')
    .replace(/https?:\/\//gi, '')
    .replace(/\s+/g, ' ')
    .trim()
  if (plain === '') return '(nothing)'
  return plain.length > EXCERPT_CHARACTERS ? `${cutShort(plain)}…` : plain
}

/** Ends with a whole word: the beginning of a secret is nothing that a mask would know. */
function cutShort(text: string): string {
  const head = text.slice(0, EXCERPT_CHARACTERS)
  const words = head.replace(/(?<!\S)\S*$/, '')
  return words.length > EXCERPT_CHARACTERS / 2 ? words.trimEnd() : head.replace(/(?<![^"',;])[^"',;]*$/, '')
}

function statusFailure({ status, headers }: HttpReply, text: string, url: URL): UploadError {
  const where = headers['location']
  const said = status >= 300 && status < 400 && where ? `to go to ${excerpt(where)}` : excerpt(text)
  const retryAfterS = parseRetryAfter(headers['retry-after'])
  return new UploadError('delivery_failed', `${url.host} answered ${status}${hintOf(status)}: ${said}`, {
    retryable: isPassingStatus(status),
    ...(retryAfterS !== undefined && { retryAfterS }),
  })
}

function hintOf(status: number): string {
  if (status === 401) return ' (the credentials are wrong or expired)'
  if (status === 403) return ' (the credentials do not allow it)'
  if (status === 404) return ' (what the configuration names is not there)'
  if (status === 413) return ' (the file is too large for it)'
  if (status === 429) return ' (too many requests)'
  if (status >= 300 && status < 400) return ' (a redirect: give the final address)'
  if (status < 300) return ' (no service of this kind answers so: check its address)'
  return ''
}

function networkFailure(error: unknown, url: URL): UploadError {
  const code = networkCodeOf(error)
  const reason = isUntrusted(code)
    ? `its certificate is not trusted (${code}); set caFile when it is your own authority's`
    : isNoTls(code)
      ? `it speaks no TLS that is understood here (${code}); write http if that is meant`
      : (explainNetwork(error) ?? (error instanceof Error ? excerpt(error.message) : 'it failed'))
  return new UploadError('delivery_failed', `${url.host} can't be reached: ${reason}.`, {
    cause: error,
    retryable: !isUntrusted(code) && !isNoTls(code) && code !== 'ENOTFOUND',
  })
}
