import { isUtf8 } from 'node:buffer'
import type { Body } from '../body.ts'
import { UploadError } from '../errors.ts'
import { hideSignatures } from '../mask.ts'
import { createHttpAgents, type HttpAgents, type HttpSettings } from './agents.ts'
import { endpointOf, exchange, type RawReply } from './exchange.ts'
import {
  explainNetwork,
  isNoTls,
  isTransientStatus,
  isUntrusted,
  networkCodeOf,
  parseRetryAfter,
} from './network.ts'
import { explainProxy } from './proxy/failure.ts'

/** Length of a response that is searched for a message, in characters. Pages begin with scripts and styles. */
const EXCERPTED_CHARACTERS = 64 * 1024
/** Maximum length of a response in an error message, in characters. */
const EXCERPT_CHARACTERS = 256

export interface HttpRequest {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'PATCH' | 'DELETE' | (string & {})
  readonly url: string | URL
  readonly headers?: Readonly<Record<string, string>>
  /** Its length is sent as `Content-Length`. */
  readonly body?: string | Buffer | Body | undefined
  /** Returns whether a status is a success. Default: 200 to 299. */
  readonly accept?: (status: number) => boolean
  /** Maximum size of the response, which is truncated after it. Bytes; default 1 MiB. */
  readonly maxReplyBytes?: number
  /** Extracts the reason from an error response. Default: its text. */
  readonly explain?: (refusal: HttpReply) => string | undefined
}

export interface HttpReply {
  readonly status: number
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  /** The bytes that `text` was decoded from. */
  readonly bytes: Buffer
  /** @throws UploadError `destination_failed` if the response is not JSON */
  json(): unknown
}

/** Sends requests over persistent connections. */
export interface HttpClient {
  /** @throws UploadError `destination_failed`, retryable for transient statuses and network failures */
  send(request: HttpRequest, signal: AbortSignal): Promise<HttpReply>
}

/** Creates an HTTP client. Who creates it must close it. */
export function createHttpClient(settings: HttpSettings): HttpClient & { close(): void } {
  const agents = createHttpAgents(settings)

  async function send(request: HttpRequest, signal: AbortSignal): Promise<HttpReply> {
    const url = new URL(request.url)
    const { status, headers, bytes, ...reply } = await sendOnce(request, url, agents, signal)
    const text = hideSent(reply.text, request.headers)
    const accept = request.accept ?? (status => status >= 200 && status < 300)
    const entries = Object.entries(headers).map(([name, value]) => [name, String(value)] as const)
    const read = { status, headers: Object.fromEntries(entries), text, bytes, json: () => parse(text, url) }
    if (!accept(status)) throw statusFailure(read, request.explain?.(read) ?? text, url)
    return read
  }

  return {
    send,
    close: agents.close,
  }
}

/** Sends one request and reads its response. */
async function sendOnce(
  request: HttpRequest,
  url: URL,
  agents: HttpAgents,
  signal: AbortSignal,
): Promise<RawReply> {
  const { method, body: content, maxReplyBytes } = request
  if (url.username !== '' || url.password !== '') {
    const message = `${url.host} was not contacted: the URL must not contain a user name or a password. Remove them.`
    throw new UploadError('destination_failed', message)
  }
  signal.throwIfAborted()
  const body = typeof content === 'string' ? Buffer.from(content) : content
  const path = url.pathname + url.search
  const headers = headersOf(request, url)
  try {
    const way = await agents.get(url)
    return await exchange({ ...endpointOf(url), way, method, path, headers, body, maxReplyBytes }, signal)
  } catch (error) {
    signal.throwIfAborted()
    // An UploadError comes from the body or a proxy, anything else from the connection.
    throw error instanceof UploadError ? explainProxy(error, url.host) : networkFailure(error, url)
  }
}

/** Makes header names lower-case, because callers may write them in any case. */
function headersOf({ method, headers = {}, body }: HttpRequest, { host }: URL): Record<string, string> {
  const given = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const)
  const length = typeof body === 'object' && 'size' in body ? body.size : Buffer.byteLength(body ?? '')
  const isMeasured = body !== undefined || !WITHOUT_BODY.has(method)
  return {
    host,
    accept: '*/*',
    'accept-encoding': 'identity',
    'user-agent': 'upload-server',
    ...(isMeasured && { 'content-length': String(length) }),
    ...Object.fromEntries(given),
  }
}

/** Minimum length of a credential that is masked. Schemes and their parameters have shorter names. */
const SHORTEST_SENT = 16

/** Masks the credentials of a request in its response, because some servers repeat them. Signatures are unknown to other masks. */
function hideSent(text: string, headers: HttpRequest['headers'] = {}): string {
  const [, sent = ''] = Object.entries(headers).find(([name]) => name.toLowerCase() === 'authorization') ?? []
  // The parameters of Digest include the path of the request. `hideSignatures` knows its values.
  if (/^digest\s/i.test(sent)) return text
  const credentials = sent.replace(/^\S+\s+/, '').split(/[\s:=,"]+/)
  return credentials
    .filter(word => word.length >= SHORTEST_SENT)
    .reduce((hidden, word) => hidden.replaceAll(word, '[secret]'), text)
}

/** Decodes a header of a response. Node reads Latin-1, but servers that send other characters usually write UTF-8. */
export function decodeHeader(value: string): string {
  const bytes = Buffer.from(value, 'latin1')
  return isUtf8(bytes) ? bytes.toString() : value
}

/** Methods whose requests have no body by default (RFC 9110, section 8.6). */
const WITHOUT_BODY: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE'])

function parse(text: string, url: URL): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new UploadError(
      'destination_failed',
      `${url.host} returned a response that is not JSON: ${excerpt(text)}`,
    )
  }
}

/** Returns the beginning of a response as one line, without markup, URL schemes and signatures of our credentials. */
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

/** Truncates at the end of a word, because a mask does not recognize the beginning of a secret. */
function cutShort(text: string): string {
  const head = text.slice(0, EXCERPT_CHARACTERS)
  const words = head.replace(/(?<!\S)\S*$/, '')
  return words.length > EXCERPT_CHARACTERS / 2 ? words.trimEnd() : head.replace(/(?<![^"',;])[^"',;]*$/, '')
}

function statusFailure({ status, headers }: HttpReply, text: string, url: URL): UploadError {
  const where = headers['location']
  const said =
    status >= 300 && status < 400 && where ? `redirect to ${excerpt(decodeHeader(where))}` : excerpt(text)
  const retryAfterS = parseRetryAfter(headers['retry-after'])
  return new UploadError('destination_failed', `${url.host} returned ${status}${hintOf(status)}: ${said}`, {
    retryable: isTransientStatus(status),
    ...(retryAfterS !== undefined && { retryAfterS }),
  })
}

function hintOf(status: number): string {
  if (status === 401) return ' (the credentials are wrong or expired)'
  if (status === 403) return ' (the credentials lack permission)'
  if (status === 404) return ' (not found: check the configuration)'
  if (status === 413) return ' (the file is too large)'
  if (status === 429) return ' (too many requests)'
  if (status >= 300 && status < 400) return ' (a redirect: use the final URL)'
  if (status < 300) return ' (not the expected service: check its URL)'
  return ''
}

function networkFailure(error: unknown, url: URL): UploadError {
  const code = networkCodeOf(error)
  const reason = isUntrusted(code)
    ? `its certificate is not trusted (${code}); set caFile if it is issued by your own CA`
    : isNoTls(code)
      ? `the TLS handshake failed (${code}); use http instead of https if the server does not use TLS`
      : (explainNetwork(error) ?? (error instanceof Error ? excerpt(error.message) : 'the request failed'))
  return new UploadError('destination_failed', `${url.host} can't be reached: ${reason}.`, {
    cause: error,
    retryable: !isUntrusted(code) && !isNoTls(code) && code !== 'ENOTFOUND',
  })
}
