import type { Readable } from 'node:stream'
import type { Request, Response } from 'express'
import multer, { type StorageEngine } from 'multer'
import { UploadError } from '../errors.ts'
import type { Input } from '../uploader/input.ts'
import type { Payload, Payloads, PayloadWriter } from '../uploader/payload.ts'
import type { Spool } from '../uploader/spool.ts'
import { cutOff, watchBody } from './body.ts'
import { tooMany } from './list.ts'
import { PartMender } from './multipart.ts'
import type { PartHeader } from './part-header.ts'

/** Text fields that may stand beside the files. */
const MAX_FIELDS = 1000
/** Bytes of a form beside those of its files. */
const OVERHEAD_BYTES = 32 * 1024 * 1024

export interface FormOptions {
  readonly boundary: string
  readonly payloads: Payloads
  readonly spool: Spool
  /** Largest file, bytes. */
  readonly fileSize: number
  /** Most files. */
  readonly files: number
  /** How long the body may stall. */
  readonly bodyIdleMs: number
}

/** What became of one file part: an input, or nothing for a browser's empty file field. */
type Received = Promise<Payload | UploadError | undefined>

/**
 * Reads a multipart body: every file part becomes an input, spooled; text fields are thrown away.
 *
 * @throws UploadError `invalid_request` when it can't be read as a form, `no_file`, `too_large` for too many files,
 *   `request_timeout`; nothing that was received stays behind
 */
export async function readForm(req: Request, res: Response, options: FormOptions): Promise<Input[]> {
  const parts = new PartMender(options.boundary, {
    maxParts: options.files + MAX_FIELDS,
    maxBytes: options.files * options.fileSize + OVERHEAD_BYTES,
  })
  const received = new Map<PartHeader, Received>()
  const engine = createEngine(parts.parts, received, options)
  const stop = feed(req, parts, options.bodyIdleMs)
  try {
    await new Promise<void>((resolve, reject) => {
      // multer takes the mended stream for the request: it reads its headers and its bytes and nothing else.
      multer({ storage: engine }).any()(parts as unknown as Request, res, (error: unknown) => {
        if (error) reject(error instanceof UploadError ? error : unreadable(error))
        else resolve()
      })
    })
    return await toInputs(received, options.files)
  } catch (error) {
    for (const one of received.values()) {
      const payload = await one
      if (payload && !(payload instanceof UploadError)) await payload.dispose()
    }
    throw error
  } finally {
    stop()
  }
}

/** Pipes the request into the mender, and tells the mender when nothing more will come. */
function feed(req: Request, parts: PartMender, idleMs: number): () => void {
  const cut = () => {
    if (!req.complete) parts.destroy(cutOff())
  }
  const stopWatch = watchBody(req, idleMs, error => parts.destroy(error))
  req.once('close', cut).once('error', cut)
  req.pipe(parts)
  return () => {
    stopWatch()
    req.off('close', cut).off('error', cut)
    req.unpipe(parts)
    req.on('error', () => {})
  }
}

function createEngine(
  headers: readonly PartHeader[],
  received: Map<PartHeader, Received>,
  options: FormOptions,
): StorageEngine {
  let files = 0
  return {
    _handleFile(_req, file, done) {
      const header = headers[Number(file.fieldname)]
      if (!header?.isFile) {
        file.stream.resume()
        file.stream.once('end', () => done(null, {}))
        file.stream.once('error', done)
        return
      }
      if (!header.mayBeEmptyInput && ++files > options.files) {
        file.stream.resume()
        done(tooMany(options.files))
        return
      }
      const { payloads, spool, fileSize: limit } = options
      const one = receive(file.stream, payloads.open({ name: header.fileName, spool, limit }), header)
      received.set(header, one)
      void one.then(() => done(null, {}))
    },
    _removeFile: (_req, _file, done) => done(null),
  }
}

/** Writes one part into a payload. What goes wrong becomes the result: the other parts go on. */
async function receive(stream: Readable, writer: PayloadWriter, header: PartHeader): Received {
  let failure: unknown
  let size = 0
  await new Promise<void>(resolve => {
    const failed = (error: unknown) => {
      failure ??= error
      stream.resume()
    }
    stream.on('data', (chunk: Buffer) => {
      if (failure !== undefined) return
      size += chunk.length
      try {
        const ready = writer.write(chunk)
        if (!ready) return
        stream.pause()
        ready.then(() => stream.resume(), failed)
      } catch (error) {
        failed(error)
      }
    })
    stream.once('end', resolve)
    stream.once('error', error => {
      failure ??= error
      resolve()
    })
    stream.once('close', () => {
      if (!stream.readableEnded) failure ??= cutOff()
      resolve()
    })
  })
  try {
    if (failure !== undefined) throw failure
    if (size === 0 && header.mayBeEmptyInput) {
      await writer.abort()
      return undefined
    }
    return await writer.finish()
  } catch (error) {
    await writer.abort()
    return error instanceof UploadError
      ? error
      : new UploadError('internal_error', 'The file could not be kept on the server; its log says why.', {
          cause: error,
        })
  }
}

async function toInputs(received: Map<PartHeader, Received>, most: number): Promise<Input[]> {
  const inputs: Input[] = []
  for (const [header, one] of received) {
    const payload = await one
    if (payload) inputs.push({ kind: 'form', origin: header.fileName, payload })
  }
  if (inputs.length > most) throw tooMany(most)
  if (inputs.length > 0) return inputs
  throw new UploadError(
    'no_file',
    'The form has no file. Send at least one part with a file name, for example: curl -F file=@picture.png.',
  )
}

/** multer and busboy reject with plain errors for what is the client's doing. */
function unreadable(error: unknown): UploadError {
  const reason = error instanceof Error ? error.message : String(error)
  return new UploadError('invalid_request', `The body can't be read as a form: ${reason}.`, { cause: error })
}
