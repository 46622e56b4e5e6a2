import type { Agent } from 'node:http'
import { Readable } from 'node:stream'
import type { Response } from 'node-fetch'
import { UploadError } from '../errors.ts'
import { once } from '../flow/once.ts'
import { hideSignatures } from '../mask.ts'
import { ownFile } from '../options.ts'
import * as z from '../packages/zod.ts'
import { createHttpAgents } from './agents.ts'
import { explainNetwork, isNoTls, isUntrusted, networkCodeOf } from './network.ts'

const loadFetch = once(() => import('node-fetch'))

/** Most of an answer that is read, in bytes; few destinations have that much to say. */
const MAX_REPLY_BYTES = 1024 * 1024
/** Of that, what is looked at for a message: pages begin with scripts and styles. In characters. */
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
  /** A stream is made anew for each attempt, needs a `Content-Length` header, and has to end with its signal. */
  readonly body?: string | Buffer | ((signal: AbortSignal) => Readable)
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
  const agents = createHttpAgents({ caFile, insecureTls, idleTimeoutMs })

  async function getAgent(url: URL): Promise<Agent> {
    try {
      return await agents.get(url)
    } catch (error) {
      if (!(error instanceof UploadError)) throw error
      throw new UploadError('delivery_failed', `${deps.name}: ${error.message}.`, { cause: error.cause })
    }
  }

  async function send(request: HttpRequest, signal: AbortSignal): Promise<HttpReply> {
    const url = new URL(request.url)
    const { response, text } = await exchange(request, url, await getAgent(url), signal)
    const accept = request.accept ?? (status => status >= 200 && status < 300)
    const { status } = response
    const reply = {
      status,
      headers: Object.fromEntries(response.headers),
      text,
      json: () => parse(text, url),
    }
    if (!accept(status)) throw statusFailure(response, request.explain?.(reply) ?? text, url)
    return reply
  }

  return {
    send,
    close: agents.close,
  }
}

/** One request and its answer. */
async function exchange(
  request: HttpRequest,
  url: URL,
  agent: Agent,
  signal: AbortSignal,
): Promise<{ response: Response; text: string }> {
  const { method, headers: given, body: content, maxReplyBytes = MAX_REPLY_BYTES } = request
  const { default: fetch, Headers } = await loadFetch()
  // node-fetch 3.3.2 throws beside rejecting when the signal is aborted already (node-fetch#1801).
  signal.throwIfAborted()
  const headers = new Headers({ ...given })
  if (!headers.has('User-Agent')) headers.set('User-Agent', 'upload-server')
  const over = new AbortController()
  const ending = AbortSignal.any([signal, over.signal])
  const body = typeof content === 'function' ? content(ending) : (content ?? null)
  let torn: unknown
  if (body instanceof Readable) body.on('error', error => (torn ??= error))
  try {
    const options = { method, headers, body, redirect: 'manual', agent, signal: signal as never } as const
    const response = await fetch(url, options)
    return { response, text: await readText(response, maxReplyBytes) }
  } catch (error) {
    signal.throwIfAborted()
    // What breaks the body off comes out as a failure of the connection.
    if (torn instanceof UploadError) throw torn
    throw networkFailure(error, url)
  } finally {
    // After an early refusal the rest would go on being sent.
    over.abort()
    if (body instanceof Readable) body.destroy()
  }
}

async function readText(response: Response, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    const bytes = Buffer.from(chunk)
    chunks.push(bytes)
    size += bytes.length
    if (size > maxBytes) break
  }
  return Buffer.concat(chunks).toString('utf8')
}

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

const PASSING_STATUSES = new Set([408, 425, 429, 500, 502, 503, 504, 507, 509, 520, 521, 522, 523, 524])

function statusFailure(response: Response, text: string, url: URL): UploadError {
  const { status } = response
  const where = response.headers.get('location')
  const said = status >= 300 && status < 400 && where ? `to go to ${excerpt(where)}` : excerpt(text)
  const retryAfterS = parseRetryAfter(response.headers.get('retry-after'))
  return new UploadError('delivery_failed', `${url.host} answered ${status}${hintOf(status)}: ${said}`, {
    retryable: PASSING_STATUSES.has(status),
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

/** Seconds, or an HTTP date (RFC 9110, section 10.2.3). */
export function parseRetryAfter(value: string | null): number | undefined {
  if (value === null) return undefined
  if (/^\s*\d+\s*$/.test(value)) return Number(value)
  const time = Date.parse(value)
  return Number.isNaN(time) ? undefined : Math.max(0, Math.ceil((time - Date.now()) / 1000))
}

function networkFailure(error: unknown, url: URL): UploadError {
  const code = networkCodeOf(error)
  const reason = isUntrusted(code)
    ? `its certificate is not trusted (${code}); set caFile when it is your own authority's`
    : isNoTls(code)
      ? `it speaks no TLS that is understood here (${code}); write http if that is meant`
      : (explainNetwork(error) ?? reasonOf(error, url))
  return new UploadError('delivery_failed', `${url.host} can't be reached: ${reason}.`, {
    cause: error,
    retryable: !isUntrusted(code) && !isNoTls(code) && code !== 'ENOTFOUND',
  })
}

/** node-fetch repeats the address in its messages, and some addresses hold a token. */
function reasonOf(error: unknown, url: URL): string {
  return error instanceof Error ? excerpt(error.message.replaceAll(url.href, url.host)) : 'it failed'
}
