import type { Readable, Writable } from 'node:stream'
import type { Request, Response } from 'express'
import multer from 'multer'
import { asUploadError, messageOf, UploadError } from '../errors.ts'
import type { Payload, Payloads, PayloadWriter } from '../payload/index.ts'
import type { Spool } from '../payload/spool.ts'
import type { Input, RejectedBody } from '../uploader/input.ts'
import { cutOff, watchBody } from './body.ts'
import { tooMany } from './list.ts'
import { MENDED_HEADERS, PartMender, tooLargeForm } from './multipart.ts'
import { FIELDS } from './options.ts'
import type { PartHeader } from './part-header.ts'
import { logFailed } from './reply.ts'

/** Maximum number of text fields of a form, in addition to the files. */
const MAX_FIELDS = 1000
/** Maximum bytes of a form in addition to those of its files. */
const OVERHEAD_BYTES = 32 * 1024 * 1024

export interface FormOptions {
  readonly boundary: string
  readonly payloads: Payloads
  readonly spool: Spool
  /** Maximum size of one file. Bytes. */
  readonly fileSize: number
  /** Maximum number of files. */
  readonly files: number
  /** Idle timeout of the body. Milliseconds. */
  readonly bodyIdleMs: number
}

export interface FormBody {
  readonly inputs: readonly Input[]
  /** Text fields that are options of the request. */
  readonly fields: ReadonlyMap<string, string>
  /** Gives back the memory of a list. */
  readonly release?: () => void
}

/** The input of one file part; undefined for the empty file field of a browser. */
type Received = Promise<Payload | RejectedBody | undefined>

/** Buffer size of multer's parser. Bytes; it is larger than the chunks that arrive. */
const PARSER_BYTES = 128 * 1024

/** One parser serves all forms. multer passes its request to the callbacks, and here that is a `Form`, which explains the casts. */
const parse = multer({
  storage: {
    _handleFile: (form, file, done) => asForm(form).take(file, done),
    _removeFile: (_form, _file, done) => done(null),
  },
  streamHandler: (form: unknown, parser: Writable) => asForm(form).feed(parser),
  highWaterMark: PARSER_BYTES,
  fileHwm: PARSER_BYTES,
} as multer.Options).any()

type FormLimits = Pick<FormOptions, 'files' | 'fileSize'>

const mostBytes = ({ files, fileSize }: FormLimits) => files * fileSize + OVERHEAD_BYTES

/** Error message for a file that the server itself could not buffer. */
const NOT_KEPT = 'The server could not buffer the file. Its log has the reason.'

/** Checks the size before the server sends 100 Continue. @throws UploadError `too_large` */
export function assertFits(req: Request, limits: FormLimits): void {
  if (Number(req.headers['content-length']) > mostBytes(limits)) throw tooLargeForm()
}

/** multer passes on the value that `parse` got, which is a `Form`. */
const asForm = (form: unknown) => form as Form

/**
 * Reads a multipart body. Every file part becomes an input. Of the text fields, only request options are kept.
 *
 * @throws UploadError `invalid_request` if the body is not a valid form, `no_file`, `too_large` for too many files,
 *   `request_timeout`. Everything that was received is then discarded
 */
export async function readForm(req: Request, res: Response, options: FormOptions): Promise<FormBody> {
  const form = new Form(req, options)
  const nameFiles = () => logFailed(res, form.names, res.err ?? cutOff())
  res.prependOnceListener('close', nameFiles) // the log line is written at the same event
  try {
    await new Promise<void>((resolve, reject) => {
      // `Form` has the members of a request that multer uses.
      parse(form as unknown as Request, res, (error: unknown) => {
        if (error) reject(error instanceof UploadError ? error : unreadable(error))
        else resolve()
      })
    })
    return { inputs: await form.toInputs(), fields: form.texts }
  } catch (error) {
    await form.discard()
    throw error
  } finally {
    form.release()
    res.off('close', nameFiles)
  }
}

/**
 * Reads one form: request → `#read` → `PartMender` → multer's parser → `take` → payload.
 *
 * multer gets this object as its request. It has only the members that multer uses: `headers`; `on`, which reports failures;
 * and the last three, which multer uses at the end. Therefore, package.json pins the version of multer. multer must not get the
 * real request, because that has other headers, and because multer would read its whole body before it reports a failure. A
 * `Readable` in between took 4 % more processor time per upload on Node 20, and 12 % more on Node 24.
 */
class Form {
  readonly headers = MENDED_HEADERS
  readonly #req: Request
  readonly #options: FormOptions
  readonly #mender: PartMender
  readonly #received: { readonly header: PartHeader; readonly payload: Received }[] = []
  readonly #stopWatch: () => void
  /** Number of files, without those that may be the empty file field of a browser. */
  #files = 0
  #parser: Writable | undefined
  #tellMulter: (error: unknown) => void = () => {}

  constructor(req: Request, options: FormOptions) {
    const { boundary, files, bodyIdleMs } = options
    const limits = {
      maxParts: files + MAX_FIELDS,
      maxBytes: mostBytes(options),
      fields: FIELDS,
    }
    this.#req = req
    this.#options = options
    this.#mender = new PartMender(boundary, limits, bytes => void this.#parser?.write(bytes))
    this.#stopWatch = watchBody(req, bodyIdleMs, this.#fail)
  }

  /** Pipes the repaired body into the parser, with backpressure. */
  feed(parser: Writable): void {
    this.#parser = parser
    this.#req.on('data', this.#read).on('end', this.#end).on('close', this.#cut)
  }

  readonly #read = (chunk: Buffer) => {
    try {
      this.#mender.write(chunk)
    } catch (error) {
      this.#fail(error)
      return
    }
    if (!this.#parser?.writableNeedDrain) return
    this.#req.pause()
    this.#parser.once('drain', () => this.#req.resume())
  }

  readonly #end = () => {
    try {
      this.#mender.end()
      this.#parser?.end()
    } catch (error) {
      this.#fail(error)
    }
  }

  readonly #cut = () => {
    if (!this.#req.complete) this.#fail(cutOff())
  }

  readonly #fail = (error: unknown) => {
    this.release()
    this.#tellMulter(error)
  }

  /** Stops reading the request. */
  release(): void {
    this.#stopWatch()
    if (this.#req.readableEnded) return
    this.#req.off('data', this.#read).off('end', this.#end).off('close', this.#cut)
  }

  /** Receives the next file. */
  take(file: Express.Multer.File, done: (error: unknown, info?: object) => void): void {
    const { payloads, spool, fileSize: limit, files } = this.#options
    const header = this.#mender.files[this.#received.length]
    if (header === undefined) throw new Error('multer found a file that PartMender did not find')
    if (!header.mayBeEmptyInput && ++this.#files > files) {
      file.stream.resume()
      done(tooMany(files))
      return
    }
    const payload = receive(file.stream, payloads.open({ name: header.fileName, spool, limit }), header)
    this.#received.push({ header, payload })
    void payload.then(() => done(null, {}))
  }

  /** Names of the files that have begun to arrive. */
  get names(): string[] {
    return this.#mender.files.map(({ fileName }) => fileName)
  }

  get texts(): ReadonlyMap<string, string> {
    return this.#mender.texts.values
  }

  async toInputs(): Promise<Input[]> {
    const { files: most } = this.#options
    const inputs: Input[] = []
    for (const { header, payload: coming } of this.#received) {
      const payload = await coming
      if (payload) inputs.push({ kind: 'form', origin: header.fileName, payload })
    }
    if (inputs.length > most) throw tooMany(most)
    if (inputs.length > 0) return inputs
    throw new UploadError(
      'no_file',
      'The form has no file. Send at least one part with a file name, for example: curl -F file=@picture.png.',
    )
  }

  async discard(): Promise<void> {
    for (const { payload: coming } of this.#received) {
      const payload = await coming
      if (payload && 'dispose' in payload) await payload.dispose()
    }
  }

  on(event: string, listener: (error: unknown) => void): void {
    if (event === 'error') this.#tellMulter = listener
  }

  // At the end, multer drains its request with these members. Nothing is left to read here.
  readonly readable = false
  unpipe(): void {}
  resume(): void {}
}

/** Writes one part into a payload. An error becomes the result, so that the other parts are still read. */
async function receive(stream: Readable, writer: PayloadWriter, header: PartHeader): Received {
  let failure: unknown
  let size = 0
  await new Promise<void>(resolve => {
    const failed = (error: unknown) => {
      failure ??= error
      stream.resume()
    }
    stream.on('data', (chunk: Buffer) => {
      if (failure !== undefined) {
        writer.skip(chunk)
        return
      }
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
    stream.on('close', () => {
      if (!stream.readableEnded) failure ??= stream.errored ?? cutOff()
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
    return { error: asUploadError(error, NOT_KEPT), sha256: writer.sha256() }
  }
}

/** multer and busboy reject with plain errors if the client sent an invalid form. */
function unreadable(error: unknown): UploadError {
  const reason = messageOf(error)
  return new UploadError(
    'invalid_request',
    `The body is not a valid form: ${reason}. Send multipart/form-data.`,
    { cause: error },
  )
}
