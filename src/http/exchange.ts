import { type Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { brotliDecompressSync, unzipSync } from 'node:zlib'
import { type Body, readExactly } from '../body.ts'
import { onAbort } from '../flow/cancellation.ts'
import { Problem } from '../problem.ts'
import { excerpt } from './excerpt.ts'
import { timeoutError } from './network.ts'
import { percentDecode } from './percent-decode.ts'
import { loginHeaders, type ProxyServer } from './proxy/address.ts'
import { targetOf } from './proxy/outgoing.ts'
import { explainProxy, ownRefusal } from './proxy/tunnel.ts'

/** How a request reaches its server. */
export interface Way {
  readonly agent: Agent
  /** Maximum time in which nothing is sent or received. Milliseconds; 0 for none. */
  readonly idleTimeoutMs: number
  /** The proxy that the agent connects to, if it forwards plain HTTP: the request then contains the whole URL. */
  readonly forwarder?: ProxyServer | undefined
  /** Unix socket to connect to instead of host and port. */
  readonly socketPath?: string
}

export interface RawRequest {
  readonly url: string | URL
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'PATCH' | 'DELETE' | (string & {})
  readonly headers?: Readonly<Record<string, string>>
  /** Its length is sent as `Content-Length`. */
  readonly body?: string | Buffer | Body | undefined
  /** Maximum size of the response, which is truncated after it. Bytes; default 1 MiB. */
  readonly maxReplyBytes?: number
}

export interface RawReply {
  readonly status: number
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  /** Without a byte order mark. */
  readonly text: string
  /** Whether it was longer than what is read. */
  readonly isCut: boolean
  /** The bytes that `text` was decoded from, decompressed. */
  readonly bytes: Buffer
}

/**
 * Sends one request and reads its response; no redirect is followed. It goes by node:http, since node-fetch alone takes four
 * times as long as a whole put of 100 KB to S3.
 *
 * @throws what the system says of the connection, what breaks the body off, or the reason of `signal`; ProxyFailure
 */
export async function exchange(request: RawRequest, way: Way, signal: AbortSignal): Promise<RawReply> {
  signal.throwIfAborted()
  const url = new URL(request.url)
  const { maxReplyBytes = 1024 * 1024 } = request
  const { response, received, isCut } = await sendAndReceive(request, url, way, maxReplyBytes, signal)
  const refusal = way.forwarder && ownRefusal(way.forwarder, url.host, response)
  if (refusal) throw refusal
  const entries = Object.entries(response.headers).map(([name, value]) => [name, String(value)])
  const headers: Record<string, string> = Object.fromEntries(entries)
  const encoding = (headers['content-encoding'] ?? '').trim().toLowerCase()
  const bytes = decompress(received, encoding, url, maxReplyBytes)
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '')
  return { status: response.statusCode ?? 0, headers, text, isCut, bytes }
}

/** Methods whose requests have no body by default (RFC 9110, section 8.6). */
const WITHOUT_BODY: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE'])

/** The headers of a request, with those that every request has. */
function headersOf({ method, headers = {}, body }: RawRequest, { host }: URL): Record<string, string> {
  const given = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const)
  const length = typeof body === 'object' && 'size' in body ? body.size : Buffer.byteLength(body ?? '')
  const isMeasured = body !== undefined || !WITHOUT_BODY.has(method)
  const usual = { host, accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'upload-server' }
  return { ...usual, ...(isMeasured && { 'content-length': String(length) }), ...Object.fromEntries(given) }
}

interface Received {
  readonly response: IncomingMessage
  readonly received: Buffer
  readonly isCut: boolean
}

function sendAndReceive(
  raw: RawRequest,
  url: URL,
  { forwarder, idleTimeoutMs, ...way }: Way,
  maxReplyBytes: number,
  signal: AbortSignal,
): Promise<Received> {
  const { method, body } = raw
  const path = url.pathname + url.search
  // tinyproxy closes a connection after each response that it forwards, without announcing it.
  const ofProxy = forwarder && { connection: 'close', ...loginHeaders(forwarder) }
  return new Promise((resolve, reject) => {
    const request = httpRequest({
      ...way,
      ...targetOf(url),
      method,
      path: forwarder ? `http://${url.host}${path}` : path,
      headers: Object.entries({ ...headersOf(raw, url), ...ofProxy }).flat(),
    })
    if (forwarder) request.shouldKeepAlive = false
    const chunks = typeof body === 'object' && 'size' in body ? readExactly(body, signal) : undefined
    const stopListening = onAbort(signal, () => fail(signal.reason))

    function end(isBroken: boolean): void {
      stopListening()
      // After an early response, the rest of the body would still be sent.
      if (isBroken || !request.writableFinished) request.destroy()
      chunks?.return(undefined).catch(() => {})
    }
    function fail(error: unknown): void {
      reject(error)
      end(true)
    }
    function succeed(response: IncomingMessage, received: readonly Buffer[], isCut = false): void {
      resolve({ response, received: Buffer.concat(received), isCut })
      end(isCut)
    }

    // With a forwarding proxy, the connection belongs to the proxy.
    const breakOff = (error: Error) => fail(forwarder ? explainProxy(forwarder, error) : error)
    request.on('error', breakOff)
    request.setTimeout(idleTimeoutMs, () => breakOff(timeoutError()))
    // A connection is closed without an error when the server turns to another protocol (101).
    request.on('close', () => breakOff(Object.assign(new Error('closed'), { code: 'ECONNRESET' })))
    request.on('response', response => {
      const received: Buffer[] = []
      let size = 0
      response.on('error', breakOff)
      response.on('data', (chunk: Buffer) => {
        received.push(chunk)
        size += chunk.length
        if (size > maxReplyBytes) succeed(response, received, true)
      })
      // OpenStack Swift sends the end of a body after some of these, which node:http reports as a broken response.
      if (method === 'HEAD') succeed(response, [])
      else response.on('end', () => succeed(response, received))
    })
    // Not as text: Node sends headers, which are Latin-1, in the encoding of a text behind them.
    if (chunks === undefined) request.end(typeof body === 'string' ? Buffer.from(body) : body)
    else sendChunks(request, chunks).catch(fail)
  })
}

/** Requests a chunk after the previous one was passed to the system. An error of the connection is an event of the request. */
async function sendChunks(request: ClientRequest, chunks: AsyncGenerator<Buffer>): Promise<void> {
  for await (const chunk of chunks) {
    const isSent = await new Promise<boolean>(resolve => request.write(chunk, error => resolve(!error)))
    if (!isSent) return
  }
  request.end()
}

const DECODERS = new Map([
  ['gzip', unzipSync],
  ['x-gzip', unzipSync],
  ['deflate', unzipSync],
  ['br', brotliDecompressSync],
])

/**
 * Decompresses a response. No request asks for compression, but some servers and gateways compress anyway.
 *
 * @throws Problem
 */
function decompress(bytes: Buffer, encoding: string, { hostname }: URL, maxOutputLength: number): Buffer {
  if (bytes.length === 0 || ['', 'identity'].includes(encoding)) return bytes
  try {
    const decode = DECODERS.get(encoding)
    if (decode === undefined) throw new Error('the compression is unknown')
    return decode(bytes, { maxOutputLength })
  } catch (cause) {
    const why = `${hostname} compressed its response (${excerpt(encoding)}), and it could not be decompressed`
    throw new Problem(why, { advice: 'Turn off compression at the server or its proxy.', cause })
  }
}

/** The user name and the password of a URL, as the header for it (RFC 7617). */
export function basicAuthorization({ username, password }: URL): string | undefined {
  if (!username && !password) return undefined
  const credentials = Buffer.concat([percentDecode(username), Buffer.from(':'), percentDecode(password)])
  return `Basic ${credentials.toString('base64')}`
}
