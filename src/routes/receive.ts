import { isUtf8 } from 'node:buffer'
import { PassThrough } from 'node:stream'
import type { Request, Response } from 'express'
import { readAll } from '../body.ts'
import { UploadError } from '../errors.ts'
import { createCanceller } from '../flow/cancellation.ts'
import { baseName, percentDecoded } from '../payload/file-name.ts'
import { type Payload, tooLarge } from '../payload/index.ts'
import { type BodyOptions, cutOff, type Received, sendContinue, watchBody } from './body.ts'
import { readForm } from './form.ts'
import { parseList } from './list.ts'
import { readBoundary } from './multipart.ts'

interface ReceiveOptions extends BodyOptions {
  /** What the URL of the request calls the file. Undefined if it does not say. */
  readonly name: string | undefined
}

/** More than the chunks that arrive, so that the request is not paused for each of them. */
const BUFFERED_BYTES = 128 * 1024

/** What a list takes, in its own bytes: its text, the parsed strings, the decoded bytes and the response. */
const LIST_COPIES = 4

/** Types under which a file may come without a name. */
const FILE_TYPE = /^\s*(?:(?:image|video|audio)\/|application\/octet-stream\s*(?:;|$))/i

/** Name of a file in `X-File-Name`. Headers come as Latin-1; clients put UTF-8 into this one, percent-encoded or as it is. */
function headerName(header: string | undefined): string | undefined {
  if (!header) return undefined
  const bytes = Buffer.from(header, 'latin1')
  return percentDecoded(isUtf8(bytes) ? bytes.toString() : header)
}

/**
 * Reads the body of an upload: a form, a file, or a list.
 *
 * @throws UploadError `invalid_request`, `no_file`, `request_timeout`, `too_large`, and `overloaded` for a list. Nothing that was
 *   received stays behind. A file that is too large becomes the input's failure
 */
export async function receive(req: Request, res: Response, options: ReceiveOptions): Promise<Received> {
  const encoding = req.headers['content-encoding']
  if (encoding && encoding.toLowerCase() !== 'identity') {
    throw new UploadError(
      'invalid_request',
      `The Content-Encoding "${encoding}" is not supported. Send the body uncompressed.`,
    )
  }
  const boundary = readBoundary(req.headers['content-type'])
  return boundary === undefined ? receiveOne(req, res, options) : readForm(req, res, boundary, options)
}

/**
 * Reads a body that is not a form: one file, or a list. It becomes a payload first, so that bodies that arrive slowly take no
 * memory beyond the budget. A label alone decides nothing: what was posted without a name and holds text, or nothing at all, is
 * a list under any label.
 */
async function receiveOne(req: Request, res: Response, options: ReceiveOptions): Promise<Received> {
  const { payloads, limits } = options
  const isPut = req.method === 'PUT'
  const given = options.name ?? headerName(req.get('x-file-name'))
  const mayBeFile = isPut || given !== undefined || FILE_TYPE.test(req.headers['content-type'] ?? '')
  if (mayBeFile && req.headers['content-range'] !== undefined) {
    throw new UploadError(
      'invalid_request',
      'Partial files ("Content-Range") are not supported. Send the whole file.',
    )
  }
  const name = baseName(given ?? '')
  let payload: Payload
  try {
    const limit = mayBeFile ? limits.fileSize : limits.jsonBody
    payload = await readPayload(req, res, name, limit, { ...options, bodyIdleMs: limits.bodyIdleMs })
  } catch (error) {
    if (!(error instanceof UploadError)) throw error
    if (error.code === 'too_large' && !mayBeFile) throw tooLargeList(limits.jsonBody)
    if (!mayBeFile || !['too_large', 'insufficient_storage'].includes(error.code)) throw error
    return { inputs: [{ kind: 'form', origin: name, payload: { error, sha256: undefined } }] }
  }
  const isText = payload.size === 0 || payload.contentType === 'text/plain'
  const isNamed = given !== undefined || (isPut && payload.size > 0)
  if (mayBeFile && (isNamed || !isText)) return { inputs: [{ kind: 'form', origin: name, payload }] }
  let release: (() => void) | undefined
  try {
    if (isPut)
      throw new UploadError('no_file', 'The body is empty. Send a file, for example: curl -T picture.png.')
    if (payload.size > limits.jsonBody) throw tooLargeList(limits.jsonBody)
    release = payloads.take(LIST_COPIES * payload.size)
    return {
      inputs: parseList(await readAll(payload, createCanceller().signal), limits.files),
      release,
    }
  } catch (error) {
    release?.()
    throw error
  } finally {
    await payload.dispose()
  }
}

/**
 * Reads a JSON body.
 *
 * @param limit bytes
 * @param check rejects a body that would take too much memory when it is parsed
 * @throws UploadError `invalid_request`, `too_large`, `request_timeout`, `overloaded`
 */
export async function readJson(
  req: Request,
  res: Response,
  options: Pick<BodyOptions, 'payloads' | 'spool'> & { readonly bodyIdleMs: number },
  limit: number,
  check: (body: Buffer) => void,
): Promise<unknown> {
  const { payloads } = options
  const payload = await readPayload(req, res, 'body', limit, options)
  const release = payloads.take(LIST_COPIES * payload.size)
  try {
    const bytes = await readAll(payload, createCanceller().signal)
    check(bytes)
    return JSON.parse(bytes.toString('utf8'))
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw new UploadError('invalid_request', 'The body is not valid JSON.')
  } finally {
    release()
    await payload.dispose()
  }
}

/** @throws UploadError as `Payloads.read`, `request_timeout`, and `invalid_request` if the connection breaks */
async function readPayload(
  req: Request,
  res: Response,
  name: string,
  limit: number,
  { payloads, spool, bodyIdleMs }: Pick<BodyOptions, 'payloads' | 'spool'> & { readonly bodyIdleMs: number },
): Promise<Payload> {
  // Before the client is asked for the body.
  if (Number(req.headers['content-length']) > limit) throw tooLarge(name, limit)
  sendContinue(req, res)
  // The request itself must not be destroyed, because it gets a response.
  const body = new PassThrough({ highWaterMark: BUFFERED_BYTES })
  const stopWatch = watchBody(req, bodyIdleMs, error => body.destroy(error))
  req.once('close', () => {
    if (!req.complete) body.destroy(cutOff())
  })
  try {
    return await payloads.read(req.pipe(body), { name, spool, limit })
  } finally {
    stopWatch()
    req.unpipe(body)
  }
}

/** The error of a JSON body over `limits.jsonBody`. */
function tooLargeList(limit: number): UploadError {
  return new UploadError(
    'too_large',
    `The JSON body is larger than ${limit} bytes (limits.jsonBody). Send the files in a form instead.`,
  )
}
