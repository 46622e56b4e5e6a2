import { isUtf8 } from 'node:buffer'
import type { Request, Response } from 'express'
import { UploadError } from '../errors.ts'
import { baseName, percentDecoded } from '../payload/file-name.ts'
import { type Payload, type Payloads, type PayloadWriter, tooLarge } from '../payload/index.ts'
import type { Spool } from '../payload/spool.ts'
import type { RejectedBody } from '../uploader/input.ts'
import { cutOff, sendContinue, tooLargeBody, watchBody } from './body.ts'
import type { FormBody } from './form.ts'
import { parseList } from './list.ts'

export interface BodyOptions {
  /** What the request calls the file; undefined when it does not say. */
  readonly name: string | undefined
  readonly payloads: Payloads
  readonly spool: Spool
  readonly limits: {
    /** Largest file, bytes. */
    readonly fileSize: number
    readonly files: number
    /** Largest list, bytes. */
    readonly jsonBody: number
    /** How long the body may stall. */
    readonly bodyIdleMs: number
  }
  /** See `parseList`. */
  readonly isReadable: (path: string) => Promise<boolean>
}

const NO_FIELDS: ReadonlyMap<string, string> = new Map()

/** What a list takes, in its own bytes: its text, the parsed strings, the decoded bytes and the response. */
const LIST_COPIES = 4

/** Types under which a file may come without a name. */
const FILE_TYPE = /^\s*(?:(?:image|video|audio)\/|application\/octet-stream\s*(?:;|$))/i

/** Name of a file in `X-File-Name`. Headers come as Latin-1; clients put UTF-8 into this one, percent-encoded or as it is. */
export function headerName(header: string | undefined): string | undefined {
  if (!header) return undefined
  const bytes = Buffer.from(header, 'latin1')
  return percentDecoded(isUtf8(bytes) ? bytes.toString() : header)
}

/** Whether a body that is not a form is a file: it was PUT, the request names it, or its label says so. */
function isLabelledFile(req: Request, name: string | undefined): boolean {
  return req.method === 'PUT' || name !== undefined || FILE_TYPE.test(req.headers['content-type'] ?? '')
}

/**
 * Reads a body that is not a form: one file, or a list. It becomes a payload, so that bodies that arrive slowly take no memory
 * beyond the budget. A label alone decides nothing: what was posted without a name and holds text, or nothing at all, is a list
 * as under any other label.
 *
 * @throws UploadError `invalid_request`, `no_file`, `request_timeout`, `too_large` and `overloaded` for a list; nothing that was
 *   received stays behind. A file that is too large becomes the input's failure.
 */
export async function receiveBody(req: Request, res: Response, options: BodyOptions): Promise<FormBody> {
  const { payloads, spool, limits } = options
  const mayBeFile = isLabelledFile(req, options.name)
  if (mayBeFile && req.headers['content-range'] !== undefined) {
    throw new UploadError(
      'invalid_request',
      'Partial files ("Content-Range") are not supported. Send the whole file.',
    )
  }
  const name = baseName(options.name ?? '')
  const limit = mayBeFile ? limits.fileSize : limits.jsonBody
  // Said before the client is asked for the body, when it waits to be asked.
  const payload =
    Number(req.headers['content-length']) > limit
      ? unread(tooLarge(name, limit))
      : await receive(req, res, payloads.open({ name, spool, limit }), limits.bodyIdleMs)
  if ('error' in payload) {
    if (mayBeFile) return { inputs: [{ kind: 'form', origin: name, payload }], fields: NO_FIELDS }
    throw payload.error.code === 'too_large' ? tooLargeBody(limit) : payload.error
  }
  let release: (() => void) | undefined
  try {
    const isText = payload.size === 0 || payload.contentType === 'text/plain'
    const isNamed = options.name !== undefined || (req.method === 'PUT' && payload.size > 0)
    if (mayBeFile && (isNamed || !isText))
      return { inputs: [{ kind: 'form', origin: name, payload }], fields: NO_FIELDS }
    if (req.method === 'PUT')
      throw new UploadError('no_file', 'The body is empty. Send a file, for example: curl -T picture.png.')
    if (payload.size > limits.jsonBody) throw tooLargeBody(limits.jsonBody)
    release = payloads.take(LIST_COPIES * payload.size)
    const inputs = await parseList(await payload.bytes(), limits.files, options.isReadable)
    await payload.dispose()
    return { inputs, fields: NO_FIELDS, release }
  } catch (error) {
    release?.()
    await payload.dispose()
    throw error
  }
}

/** Takes the body into a payload; what is the file's own fault becomes the result. */
async function receive(
  req: Request,
  res: Response,
  writer: PayloadWriter,
  idleMs: number,
): Promise<Payload | RejectedBody> {
  sendContinue(req, res)
  try {
    await pour(req, writer, idleMs)
    return await writer.finish()
  } catch (error) {
    await writer.abort()
    if (error instanceof UploadError && ['too_large', 'insufficient_storage'].includes(error.code))
      return unread(error)
    throw error
  }
}

const unread = (error: UploadError): RejectedBody => ({ error, sha256: undefined })

function pour(req: Request, writer: PayloadWriter, idleMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (error?: unknown) => {
      stop()
      req.off('data', write).off('end', end).off('close', cut).off('error', cut)
      if (error === undefined) resolve()
      else reject(error)
    }
    const cut = () => end(cutOff())
    const write = (chunk: Buffer) => {
      try {
        const ready = writer.write(chunk)
        if (!ready) return
        req.pause()
        ready.then(() => req.resume(), end)
      } catch (error) {
        end(error)
      }
    }
    const stop = watchBody(req, idleMs, end)
    req.on('data', write).on('end', end).on('close', cut).on('error', cut)
  })
}
