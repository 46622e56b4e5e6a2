import {
  type ClientRequest,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from 'node:http'
import { request as httpsRequest } from 'node:https'
import { promisify } from 'node:util'
import { type Body, wrongSize } from '../body.ts'
import { onAbort } from '../flow/cancellation.ts'
import { Problem } from '../problem.ts'
import type { HttpWay } from './agents.ts'
import { percentDecode } from './percent-decode.ts'
import { loginHeaders } from './proxy/address.ts'
import { explainReach, ownRefusal } from './proxy/failure.ts'

/** Default maximum size of a response, in bytes. */
export const MAX_REPLY_BYTES = 1024 * 1024

export interface Exchange {
  readonly url: URL
  /** Unix socket to connect to instead of host and port. */
  readonly socketPath?: string | undefined
  readonly way: HttpWay
  readonly method: string
  /** By lower-case names, with `content-length`. Those that every request has are added. */
  readonly headers: Readonly<Record<string, string>>
  /** No text: Node sends headers in the encoding of the text behind them, and they are Latin-1. */
  readonly body: Buffer | Body | undefined
  /** Maximum size of the response, which is truncated after it. Bytes; default 1 MiB. */
  readonly maxReplyBytes?: number | undefined
  /** Maximum time for the body of the response, after which it is truncated. Milliseconds; default: none. */
  readonly maxReplyMs?: number | undefined
}

export interface RawReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
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
export function exchange(
  { url, way, headers, body, maxReplyBytes = MAX_REPLY_BYTES, maxReplyMs, ...options }: Exchange,
  signal: AbortSignal,
): Promise<RawReply> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const { protocol, host, hostname, port, pathname, search } = url
    const send = protocol === 'https:' ? httpsRequest : httpRequest
    const { agent, forwarder } = way
    const all = { host, ...COMMON_HEADERS, ...headers, ...(forwarder && loginHeaders(forwarder)) }
    const request = send({
      ...options,
      protocol,
      hostname: hostname.replace(/^\[|\]$/g, ''),
      port,
      agent,
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

    async function readReply(
      status: number,
      headers: IncomingHttpHeaders,
      received: Buffer,
      isCut: boolean,
    ): Promise<RawReply> {
      const encoding = headers['content-encoding']?.trim().toLowerCase() || 'identity'
      const isPlain = encoding === 'identity' || received.length === 0
      const bytes = isPlain ? received : await decompress(received, encoding, url.hostname, maxReplyBytes)
      return { status, headers, text: bytes.toString('utf8').replace(/^\uFEFF/, ''), isCut, bytes }
    }

    function succeed(response: IncomingMessage, chunks: readonly Buffer[], isCut = false): void {
      const { statusCode: status = 0, headers } = response
      const refusal = forwarder && ownRefusal(forwarder, response)
      if (refusal) reject(refusal)
      else resolve(readReply(status, headers, Buffer.concat(chunks), isCut))
      finish()
      if (isCut) response.destroy()
    }

    // With a forwarding proxy, the connection belongs to the proxy.
    const explain = (error: Error) => (forwarder ? explainReach(forwarder, error) : error)
    const breakOff = (error: Error) => fail(explain(error))
    request.on('error', breakOff)
    // Without this a server that turns to another protocol would be waited for until the time is over.
    request.on('upgrade', (response, socket) => {
      socket.destroy()
      succeed(response, [])
    })
    request.on('response', response => {
      const chunks: Buffer[] = []
      let size = 0
      if (maxReplyMs !== undefined) late = setTimeout(() => succeed(response, chunks, true), maxReplyMs)
      response.on('error', breakOff)
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        size += chunk.length
        if (size > maxReplyBytes) succeed(response, chunks, true)
      })
      // OpenStack Swift sends the end of a body after some of these, which node:http reports as a broken response.
      if (options.method === 'HEAD') succeed(response, [])
      else response.on('end', () => succeed(response, chunks))
    })
    if (chunks === undefined) request.end(body)
    else sendChunks(request, chunks, (body as Body).size).catch(fail)
  })
}

/**
 * Decompresses a response. No request asks for compression, but some servers and gateways compress anyway.
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
  // A truncated response is decompressed as far as it goes.
  const { BROTLI_OPERATION_FLUSH, Z_SYNC_FLUSH } = constants
  let cause: unknown
  try {
    if (encoding === 'br')
      return await promisify(brotliDecompress)(bytes, {
        finishFlush: BROTLI_OPERATION_FLUSH,
        maxOutputLength,
      })
    if (/^(?:x-)?gzip$|^deflate$/.test(encoding))
      return await promisify(unzip)(bytes, { finishFlush: Z_SYNC_FLUSH, maxOutputLength })
  } catch (error) {
    cause = error
  }
  throw new Problem(
    `${host} compressed its response (${encoding.slice(0, 20)}), and it could not be decompressed`,
    { advice: 'Turn off compression at the server or its proxy.', cause },
  )
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
