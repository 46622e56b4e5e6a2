import { readFile } from 'node:fs/promises'
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import type { BodyInit, Response } from 'node-fetch'
import { z } from 'zod'
import { systemCode, UploadError } from '../errors.ts'
import { hideSignatures } from '../mask.ts'
import { ownFile } from './options.ts'
import type { ProviderDeps } from './provider.ts'

/** Most of an answer that is read, in bytes; few destinations have that much to say. */
const MAX_REPLY_BYTES = 1024 * 1024
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
  /** Streams need a `Content-Length` header; forms and buffers bring their own. */
  readonly body?: BodyInit
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

/** Makes the client of one destination. Reads the certificate file at the first request. */
export function createHttpClient({ caFile, insecureTls }: HttpOptions, deps: ProviderDeps): HttpClient {
  if (insecureTls) deps.warn(`${deps.name}: insecureTls accepts any certificate; use caFile instead`)
  const plain = new HttpAgent({ keepAlive: true, timeout: IDLE_TIMEOUT_MS })
  let secure: Promise<HttpsAgent> | undefined

  async function makeSecureAgent(): Promise<HttpsAgent> {
    const options = { keepAlive: true, timeout: IDLE_TIMEOUT_MS, rejectUnauthorized: !insecureTls }
    if (caFile === undefined) return new HttpsAgent(options)
    const { createSecureContext, rootCertificates } = await import('node:tls')
    const own = await readFile(caFile, 'utf8').catch((cause: unknown) => {
      secure = undefined
      throw new UploadError('delivery_failed', `${deps.name}: the file that caFile names can't be read.`, {
        cause,
      })
    })
    // Once for all connections: reading the usual certificates takes some 30 ms.
    return new HttpsAgent({
      ...options,
      secureContext: createSecureContext({ ca: [...rootCertificates, own] }),
    })
  }

  async function send(request: HttpRequest, signal: AbortSignal): Promise<HttpReply> {
    // node-fetch 3.3.2 throws beside rejecting when the signal is aborted already (node-fetch#1801).
    signal.throwIfAborted()
    const url = new URL(request.url)
    secure ??= url.protocol === 'https:' ? makeSecureAgent() : undefined
    const { default: fetch, Headers } = await import('node-fetch')
    const { method, body } = request
    const headers = new Headers({ ...request.headers })
    if (!headers.has('User-Agent')) headers.set('User-Agent', 'upload-server')
    let response: Response
    let text: string
    try {
      response = await fetch(url, {
        method,
        headers,
        body: body ?? null,
        redirect: 'manual',
        agent: url.protocol === 'https:' ? await secure : plain,
        signal: signal as never,
      })
      text = await readText(response, request.maxReplyBytes ?? MAX_REPLY_BYTES)
    } catch (error) {
      signal.throwIfAborted()
      throw error instanceof UploadError ? error : networkFailure(error, url)
    }
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
    close() {
      plain.destroy()
      void secure?.then(
        agent => agent.destroy(),
        () => {},
      )
    },
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
  const plain = hideSignatures(text)
    .replace(/<(script|style)[\s\S]*?<\/\1>/gi, ' ')
    .replace(/<[^>]*>/g, ' ')
    .replace(/https?:\/\//gi, '')
    .replace(/\s+/g, ' ')
    .trim()
  if (plain === '') return '(nothing)'
  return plain.length > EXCERPT_CHARACTERS ? `${plain.slice(0, EXCERPT_CHARACTERS)}…` : plain
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
  return ''
}

/** Seconds, or an HTTP date (RFC 9110, section 10.2.3). */
export function parseRetryAfter(value: string | null): number | undefined {
  if (value === null) return undefined
  if (/^\s*\d+\s*$/.test(value)) return Number(value)
  const time = Date.parse(value)
  return Number.isNaN(time) ? undefined : Math.max(0, Math.ceil((time - Date.now()) / 1000))
}

const REASONS: Record<string, string> = {
  ENOTFOUND: 'its name is unknown',
  EAI_AGAIN: 'its name could not be looked up',
  ECONNREFUSED: 'nothing listens there',
  ECONNRESET: 'it closed the connection',
  EPIPE: 'it closed the connection',
  ETIMEDOUT: 'it did not answer in time',
}

function networkFailure(error: unknown, url: URL): UploadError {
  const code = systemCode(error) ?? ''
  const tls = tlsCode(error)
  const reason = tls
    ? `its certificate is refused (${tls}); set caFile when it is your own authority's`
    : (REASONS[code] ?? (code || reasonOf(error, url)))
  return new UploadError('delivery_failed', `${url.host} can't be reached: ${reason}.`, {
    cause: error,
    retryable: tls === undefined && code !== 'ENOTFOUND',
  })
}

/** node-fetch repeats the address in its messages, and some addresses hold a token. */
function reasonOf(error: unknown, url: URL): string {
  return error instanceof Error ? excerpt(error.message.replaceAll(url.href, url.host)) : 'it failed'
}

/** OpenSSL's and Node's codes for refused certificates do not look like system codes. */
function tlsCode(error: unknown): string | undefined {
  for (let e = error, depth = 0; e instanceof Error && depth < 5; e = e.cause, depth++) {
    const code: unknown = 'code' in e ? e.code : undefined
    if (typeof code === 'string' && /CERT|SELF_SIGNED|UNABLE_TO|ALTNAME|^ERR_TLS|^ERR_SSL/.test(code))
      return code
  }
  return undefined
}
