import { isUtf8 } from 'node:buffer'
import type { Response } from 'node-fetch'
import { UploadError } from '../../errors.ts'
import { beginTimeLimit } from '../../flow/time-limit.ts'
import type { Lookup } from '../../http/dial.ts'
import { describeHop, discard, explainHost, guardedFetch } from '../../http/guarded-fetch.ts'
import { percentDecode } from '../../http/percent-decode.ts'
import type { Outgoing } from '../../http/proxy/outgoing.ts'
import { isNeverPage } from '../../payload/extensions.ts'
import { splitExtension } from '../../payload/file-name.ts'
import { describeLimit, type Payload } from '../../payload/index.ts'
import type { Caller } from '../input.ts'
import type { Source } from './source.ts'

export interface OpenUrlOptions {
  addresses: Caller['addresses']
  privateHosts?: Caller['privateHosts']
  /** Time limit from the DNS lookup to the last byte of the body. */
  timeoutMs: number
  signal: AbortSignal
  /** Maximum size of the body after decompression, in bytes. */
  maxBytes: number
  /** Resolves hostnames. Default: that of node:dns. */
  lookup?: Lookup
  /** Outbound proxies. Default: none. */
  outgoing?: Outgoing | undefined
}

/**
 * Fetches a URL. The file name is the last path segment of this URL, not of a redirect.
 *
 * @throws UploadError `source_forbidden`, `source_failed` or `too_large`, as does the reading of the body; the signal's
 *   reason once that is aborted
 */
export async function openUrl(url: URL, options: OpenUrlOptions): Promise<Source> {
  const { addresses, privateHosts, timeoutMs, maxBytes, lookup, outgoing } = options
  const late = new Error('the time limit has passed')
  const limit = beginTimeLimit(timeoutMs, options.signal, () => late)
  const { signal } = limit

  /** Which error to report: libraries throw many others after an abort. */
  function translate(cause: unknown, name: string): unknown {
    if (signal.aborted && signal.reason !== late) return signal.reason
    if (signal.aborted) {
      const message = `${name} could not be fetched within ${timeoutMs} ms. Check the URL, or raise sources.url.timeout.`
      return new UploadError('source_failed', message, { cause })
    }
    if (cause instanceof UploadError) return cause
    return explainHost(cause, `${name} could not be read`)
  }

  async function* readBody(response: Response, name: string): AsyncGenerator<Uint8Array> {
    const body = response.body as AsyncIterable<Buffer> | null // no encoding is set: no strings come
    let size = 0
    try {
      for await (const chunk of body ?? []) {
        signal.throwIfAborted()
        size += chunk.length
        if (size > maxBytes) throw tooLarge(name, maxBytes)
        yield chunk
      }
      if (size === 0) throw new UploadError('source_failed', `${name} returned an empty file. Check the URL.`)
    } catch (error) {
      throw translate(error, name)
    } finally {
      limit.end()
    }
  }

  try {
    const response = await guardedFetch(url, { addresses, privateHosts, signal, lookup, outgoing })
    const name = describeHop(url, new URL(response.url))
    checkHead(response, name, maxBytes)
    const fileName = lastSegment(url)
    const check = (payload: Payload) => assertNoPage(payload, fileName, name)
    return { name: fileName, folders: [], body: readBody(response, name), check }
  } catch (error) {
    limit.end()
    throw translate(error, describeHop(url, url))
  }
}

/** Encodings that are decoded, and those that servers name for a body without one. */
const READABLE = /^(?:(?:x-)?gzip|(?:x-)?deflate|br|identity|none|utf-8|aws-chunked)?$/

/** Rejects a response that is not the whole file, or too large, by its status and headers. */
function checkHead(response: Response, name: string, maxBytes: number): void {
  const { status, headers } = response
  const encoding = headers.get('content-encoding') ?? ''
  const isWhole = status === 200 || status === 203
  const isTooLarge = Number(headers.get('content-length')) > maxBytes
  if (isWhole && READABLE.test(encoding) && !isTooLarge) return
  discard(response)
  if (!isWhole)
    throw new UploadError('source_failed', `${name} returned status ${status}: ${explainStatus(status)}.`)
  if (isTooLarge) throw tooLarge(name, maxBytes)
  throw new UploadError(
    'source_failed',
    `${name} has the Content-Encoding "${encoding.replace(/[^\w, -]/g, '_').slice(0, 40)}", which can't be decoded. Send the file itself.`,
  )
}

/** Pages for logins and errors often have the status 200. */
function assertNoPage({ contentType }: Payload, fileName: string, name: string): void {
  if (contentType !== 'text/html' || !isNeverPage(splitExtension(fileName)[1])) return
  throw new UploadError(
    'source_failed',
    `${name} returned a web page instead of a file. It may require a login. Check the URL in a private window.`,
  )
}

function explainStatus(status: number): string {
  if (status === 401 || status === 407) return 'it requires credentials'
  if (status === 403) return 'access denied. It may require a login or a browser'
  if (status === 404 || status === 410) return 'not found. Check the URL'
  if (status === 429) return 'rate limited. Try again later'
  if (status === 206) return 'only a part of the file, which was not requested'
  if (status >= 500) return 'that server failed. Try again later'
  return 'that is not a file. Check the URL'
}

function tooLarge(name: string, maxBytes: number): UploadError {
  return new UploadError('too_large', `${name} is larger than ${describeLimit(maxBytes)}.`)
}

/** The last path segment that is not empty. It is decoded if its bytes are UTF-8. */
function lastSegment(url: URL): string {
  const segment = url.pathname.split('/').findLast(part => part !== '') ?? ''
  const decoded = percentDecode(segment)
  return isUtf8(decoded) ? decoded.toString() : segment
}
