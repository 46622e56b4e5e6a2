import { isUtf8 } from 'node:buffer'
import type { Request, Response } from 'express'
import { UploadError } from '../errors.ts'
import { baseName, percentDecoded } from '../payload/file-name.ts'
import { type Payload, type Payloads, type PayloadWriter, tooLarge } from '../payload/index.ts'
import type { Spool } from '../payload/spool.ts'
import type { Input, RejectedBody } from '../uploader/input.ts'
import { cutOff, sendContinue, tooLargeBody, watchBody } from './body.ts'
import type { JsonBodyMemory } from './json-memory.ts'
import { parseList } from './list.ts'

export interface RawOptions {
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
  /** Counts the bytes of what turns out to be a list. */
  readonly memory: JsonBodyMemory
}

/** Types under which a file may come without a name. */
const FILE_TYPE = /^\s*(?:(?:image|video|audio)\/|application\/octet-stream\s*(?:;|$))/i

/** Name of a file in `X-File-Name`. Headers come as Latin-1; clients put UTF-8 into this one, percent-encoded or as it is. */
export function headerName(header: string | undefined): string | undefined {
  if (!header) return undefined
  const bytes = Buffer.from(header, 'latin1')
  return percentDecoded(isUtf8(bytes) ? bytes.toString() : header)
}

/** Whether a body that is no form is a file: it was PUT, the request names it, or its label says so. */
export function isRaw(req: Request, name: string | undefined): boolean {
  return req.method === 'PUT' || name !== undefined || FILE_TYPE.test(req.headers['content-type'] ?? '')
}

/**
 * Reads a body that is one file. A label alone decides nothing: what was posted without a name and holds text, or
 * nothing at all, is a list as under any other label.
 *
 * @throws UploadError `invalid_request`, `no_file`, `request_timeout`; nothing that was received stays behind. A file
 *   that is too large becomes the input's failure.
 */
export async function receiveRaw(
  req: Request,
  res: Response,
  options: RawOptions,
): Promise<readonly Input[]> {
  const { payloads, spool, limits } = options
  if (req.headers['content-range'] !== undefined) {
    throw new UploadError(
      'invalid_request',
      'Partial files ("Content-Range") are not supported. Send the whole file.',
    )
  }
  const name = baseName(options.name ?? '')
  const limit = limits.fileSize
  // Said before the client is asked for the body, when it waits to be asked.
  const payload =
    Number(req.headers['content-length']) > limit
      ? unread(tooLarge(name, limit))
      : await receive(req, res, payloads.open({ name, spool, limit }), limits.bodyIdleMs)
  if ('error' in payload) return [{ kind: 'form', origin: name, payload }]
  try {
    const isText = payload.size === 0 || payload.contentType === 'text/plain'
    const isFile = options.name !== undefined || !isText || (req.method === 'PUT' && payload.size > 0)
    if (isFile) return [{ kind: 'form', origin: name, payload }]
    if (req.method === 'PUT')
      throw new UploadError('no_file', 'The body is empty. Send a file, for example: curl -T picture.png.')
    if (payload.size > limits.jsonBody) throw tooLargeBody(limits.jsonBody)
    options.memory.take(payload.size)
    const inputs = await parseList(await payload.bytes(), limits.files)
    await payload.dispose()
    return inputs
  } catch (error) {
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
