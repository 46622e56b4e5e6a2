import { type Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { promisify } from 'node:util'
import { type Body, wrongSize } from '../body.ts'
import { onAbort } from '../flow/cancellation.ts'
import { Problem } from '../problem.ts'
import { timeoutError } from './network.ts'
import { percentDecode } from './percent-decode.ts'
import { loginHeaders, type ProxyServer } from './proxy/address.ts'
import { explainReach, ownRefusal } from './proxy/failure.ts'

/** Default maximum size of a response, in bytes. */
const MAX_REPLY_BYTES = 1024 * 1024

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
  readonly url: URL
  readonly method: string
  /** By lower-case names, with `content-length`. Those that every request has are added. */
  readonly headers: Readonly<Record<string, string>>
  /** No text: Node sends headers in the encoding of the text behind them, and they are Latin-1. */
  readonly body?: Buffer | Body | undefined
  /** Maximum size of the response, which is truncated after it. Bytes; default 1 MiB. */
  readonly maxReplyBytes?: number | undefined
  /** Maximum time for the body of the response, after which it is truncated. Milliseconds; default: none. */
  readonly maxReplyMs?: number | undefined
}

export interface RawReply {
  readonly status: number
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  /** Without a byte order mark. */
  readonly text: string
  /** Whether it was longer than what is read, in bytes or in time. */
  readonly isCut: boolean
  /** The bytes that `text` was decoded from, decompressed. */
  readonly bytes: Buffer
}

const COMMON_HEADERS = { accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'upload-server' }

/**
 * Sends one request and reads its response; no redirect is followed. It goes by node:http, since node-fetch alone takes four
 * times as long as a whole put of 100 KB to S3.
 *
 * @throws what the system says of the connection, what breaks the body off, or the reason of `signal`; ProxyFailure
 */
export async function exchange(request: RawRequest, way: Way, signal: AbortSignal): Promise<RawReply> {
  signal.throwIfAborted()
  const { url, maxReplyBytes = MAX_REPLY_BYTES } = request
  const { response, received, isCut } = await sendAndReceive({ ...request, maxReplyBytes }, way, signal)
  const refusal = way.forwarder && ownRefusal(way.forwarder, response)
  if (refusal) throw refusal
  const entries = Object.entries(response.headers).map(([name, value]) => [name, String(value)])
  const headers: Record<string, string> = Object.fromEntries(entries)
  const encoding = headers['content-encoding']?.trim().toLowerCase() || 'identity'
  const isPlain = encoding === 'identity' || received.length === 0
  const bytes = isPlain ? received : await decompress(received, encoding, url.hostname, maxReplyBytes)
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '')
  return { status: response.statusCode ?? 0, headers, text, isCut, bytes }
}

interface Received {
  readonly response: IncomingMessage
  readonly received: Buffer
  readonly isCut: boolean
}

function sendAndReceive(
  { url, method, headers, body, maxReplyBytes, maxReplyMs }: RawRequest & { readonly maxReplyBytes: number },
  { forwarder, idleTimeoutMs, ...way }: Way,
  signal: AbortSignal,
): Promise<Received> {
  return new Promise((resolve, reject) => {
    const { protocol, host, hostname, port, pathname, search } = url
    const all = { host, ...COMMON_HEADERS, ...headers, ...(forwarder && loginHeaders(forwarder)) }
    const request = (protocol === 'https:' ? httpsRequest : httpRequest)({
      ...way,
      method,
      protocol,
      hostname: hostname.replace(/^\[|\]$/g, ''),
      port,
      path: forwarder ? `http://${host}${pathname}${search}` : pathname + search,
      headers: Object.entries(all).flat(),
    })
    const chunks = body === undefined || Buffer.isBuffer(body) ? undefined : body.read(signal)
    const stopListening = onAbort(signal, () => fail(signal.reason))
    let late: NodeJS.Timeout | undefined

    function finish(): void {
      stopListening()
      clearTimeout(late)
      // After an early response, the rest of the body would still be sent.
      if (!request.writableFinished) request.destroy()
      chunks?.return(undefined).catch(() => {})
    }
    function fail(error: unknown): void {
      reject(error)
      request.destroy()
      finish()
    }
    function succeed(response: IncomingMessage, received: readonly Buffer[], isCut = false): void {
      resolve({ response, received: Buffer.concat(received), isCut })
      finish()
      if (isCut) response.destroy()
    }

    // With a forwarding proxy, the connection belongs to the proxy.
    const breakOff = (error: Error) => fail(forwarder ? explainReach(forwarder, error) : error)
    request.on('error', breakOff)
    request.setTimeout(idleTimeoutMs, () => breakOff(timeoutError()))
    // Without this a server that turns to another protocol would be waited for until the time is over.
    request.on('upgrade', (response, socket) => {
      socket.destroy()
      succeed(response, [])
    })
    request.on('response', response => {
      const received: Buffer[] = []
      let size = 0
      if (maxReplyMs !== undefined) late = setTimeout(() => succeed(response, received, true), maxReplyMs)
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
    if (chunks === undefined) request.end(body)
    else sendChunks(request, chunks, (body as Body).size).catch(fail)
  })
}

/**
 * Decompresses a response. No request asks for compression, but some servers and gateways compress anyway. A truncated
 * response is decompressed as far as it goes.
 *
 * @throws Problem
 */
async function decompress(
  bytes: Buffer,
  encoding: string,
  host: string,
  maxOutputLength: number,
): Promise<Buffer> {
  const { brotliDecompress, constants, unzip } = await import('node:zlib')
  const fail = (cause?: unknown): never => {
    const why = `${host} compressed its response (${encoding.slice(0, 20)}), and it could not be decompressed`
    throw new Problem(why, { advice: 'Turn off compression at the server or its proxy.', cause })
  }
  if (encoding === 'br') {
    const options = { finishFlush: constants.BROTLI_OPERATION_FLUSH, maxOutputLength }
    return promisify(brotliDecompress)(bytes, options).catch(fail)
  }
  if (!/^(?:x-)?gzip$|^deflate$/.test(encoding)) return fail()
  return promisify(unzip)(bytes, { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength }).catch(fail)
}

/**
 * Requests a chunk after the previous one was passed to the system.
 *
 * @throws the error of the chunks, or `wrongSize`; an error of the connection is an event of the request
 */
async function sendChunks(
  request: ClientRequest,
  chunks: AsyncGenerator<Buffer>,
  size: number,
): Promise<void> {
  let left = size
  for await (const chunk of chunks) {
    left -= chunk.length
    if (left < 0) break // the rest would be taken for another request
    const isSent = await new Promise<boolean>(resolve => request.write(chunk, error => resolve(!error)))
    if (!isSent) return
  }
  if (left !== 0) throw wrongSize()
  request.end()
}

/** The user name and the password of a URL, as the header for it (RFC 7617). */
export function basicAuthorization({ username, password }: URL): string | undefined {
  if (!username && !password) return undefined
  const credentials = Buffer.concat([percentDecode(username), Buffer.from(':'), percentDecode(password)])
  return `Basic ${credentials.toString('base64')}`
}
