import {
  type ClientRequest,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { HttpWay } from './agents.ts'
import { explainReach, ownRefusal } from './proxy/failure.ts'
import { loginHeaders } from './proxy/tunnel.ts'

/** Most of an answer that is read unless told otherwise, in bytes. */
export const MAX_REPLY_BYTES = 1024 * 1024

/**
 * Each chunk has to be good until the next one is asked for. No strings: Node sends headers in the encoding of the text
 * behind them, and they are Latin-1.
 */
export type Content = Buffer | AsyncGenerator<Buffer>

export interface Exchange {
  /** `https:` or `http:`. */
  readonly protocol: string
  /** Of an IPv6 address without its brackets. */
  readonly hostname: string
  /** Empty: that of the protocol. */
  readonly port: string
  readonly way: HttpWay
  readonly method: string
  /** Path and query. */
  readonly path: string
  /** All of them, `host` and `content-length` included. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Content | undefined
  /** The answer is cut after so many bytes. Default 1 MiB. */
  readonly maxReplyBytes?: number | undefined
}

export interface Reply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** Whether it was longer than what is read. */
  readonly isCut: boolean
  /** What `text` was made of. */
  readonly bytes: Buffer
}

/**
 * Sends one request and reads its answer; no redirect is followed. It goes by node:http, since node-fetch alone takes four
 * times as long as a whole put of 100 KB to S3.
 *
 * @throws what the system says of the connection, what breaks the body off, or the reason of `signal`; ProxyFailure
 */
export function exchange(
  { way, headers, path, body, maxReplyBytes = MAX_REPLY_BYTES, ...options }: Exchange,
  signal: AbortSignal,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const send = options.protocol === 'https:' ? httpsRequest : httpRequest
    const { agent, forwarder } = way
    const request = send({
      ...options,
      agent,
      path: forwarder ? `http://${headers['host']}${path}` : path,
      headers: Object.entries({ ...headers, ...(forwarder && loginHeaders(forwarder)) }).flat(),
    })
    const abort = (): void => fail(signal.reason)
    signal.addEventListener('abort', abort, { once: true })

    function finish(): void {
      signal.removeEventListener('abort', abort)
      // After an early answer the rest would go on being sent.
      if (!request.writableFinished) request.destroy()
      if (isChunks(body)) body.return(undefined).catch(() => {})
    }
    function fail(error: unknown): void {
      reject(error)
      request.destroy()
      finish()
    }

    function succeed(response: IncomingMessage, chunks: readonly Buffer[], isCut = false): void {
      const { statusCode: status = 0, headers } = response
      const refusal = forwarder && ownRefusal(forwarder, response)
      const bytes = Buffer.concat(chunks)
      if (refusal) reject(refusal)
      else resolve({ status, headers, text: bytes.toString('utf8'), isCut, bytes })
      finish()
      if (isCut) response.destroy()
    }

    // The connection is the proxy's, when it is told the server with each request.
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
      response.on('error', breakOff)
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        size += chunk.length
        if (size > maxReplyBytes) succeed(response, chunks, true)
      })
      // OpenStack Swift sends the end of a body behind some of these, which node:http takes for a broken answer.
      if (options.method === 'HEAD') succeed(response, [])
      else response.on('end', () => succeed(response, chunks))
    })
    if (isChunks(body)) sendChunks(request, body, explain).catch(fail)
    else request.end(body)
  })
}

function isChunks(body: Content | undefined): body is AsyncGenerator<Buffer> {
  return body !== undefined && !Buffer.isBuffer(body)
}

/** Asks for a chunk when the one before has been handed to the system. */
async function sendChunks(
  request: ClientRequest,
  chunks: AsyncGenerator<Buffer>,
  explain: (error: Error) => Error,
): Promise<void> {
  for await (const chunk of chunks) {
    await new Promise<void>((resolve, reject) => {
      request.write(chunk, error => (error ? reject(explain(error)) : resolve()))
    })
  }
  request.end()
}

/** Where a URL leads, as an exchange wants it. */
export function endpointOf({
  protocol,
  hostname,
  port,
}: URL): Pick<Exchange, 'protocol' | 'hostname' | 'port'> {
  return { protocol, hostname: hostname.replace(/^\[|\]$/g, ''), port }
}
