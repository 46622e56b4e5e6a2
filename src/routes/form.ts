import type { Readable, Writable } from 'node:stream'
import type { Request, Response } from 'express'
import multer from 'multer'
import { asUploadError, messageOf, UploadError } from '../errors.ts'
import type { Payload, Payloads, PayloadWriter } from '../payload/index.ts'
import type { Spool } from '../payload/spool.ts'
import type { Input, Unkept } from '../uploader/input.ts'
import { cutOff, watchBody } from './body.ts'
import { tooMany } from './list.ts'
import { MENDED_HEADERS, PartMender, tooLargeForm } from './multipart.ts'
import { FIELDS } from './options.ts'
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

export interface FormBody {
  readonly inputs: readonly Input[]
  /** Text fields that are options of the request. */
  readonly fields: ReadonlyMap<string, string>
}

/** What became of one file part: an input, or nothing for a browser's empty file field. */
type Received = Promise<Payload | Unkept | undefined>

/** Bytes of a form that multer's parser may hold, more than what arrives at once. */
const PARSER_BYTES = 128 * 1024

/** One for all forms: multer passes on what it takes for the request, which is a `Form` here (see there why, and the casts). */
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

/** What the client is told of a file that the server itself could not keep. */
const NOT_KEPT = 'The server could not buffer the file. Its log has the reason.'

/** Before a client that waits to be asked for the body is asked. @throws UploadError `too_large` */
export function assertFits(req: Request, limits: FormLimits): void {
  if (Number(req.headers['content-length']) > mostBytes(limits)) throw tooLargeForm()
}

const asForm = (form: unknown) => form as Form

/**
 * Reads a multipart body: every file part becomes an input, spooled; of text fields the options of requests are kept.
 *
 * @throws UploadError `invalid_request` when it can't be read as a form, `no_file`, `too_large` for too many files,
 *   `request_timeout`; nothing that was received stays behind
 */
export async function readForm(req: Request, res: Response, options: FormOptions): Promise<FormBody> {
  const form = new Form(req, options)
  try {
    await new Promise<void>((resolve, reject) => {
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
  }
}

/**
 * One form on its way: request → `#read` → `PartMender` → multer's parser → `take` → payload.
 *
 * To multer this is the request: what multer asks of one, and no more. Those are `headers`; `on`, by which it hears of failures;
 * the last three members, which it uses when it is done. package.json pins multer for that reason. The real request has
 * headers that multer must not see, and after a failure multer waits for all of its body before it says so. A `Readable` in
 * between took 4 % more processor time for an upload on Node 20, 12 % on Node 24.
 */
class Form {
  readonly headers = MENDED_HEADERS
  readonly #req: Request
  readonly #options: FormOptions
  readonly #mender: PartMender
  readonly #received: { readonly header: PartHeader; readonly payload: Received }[] = []
  readonly #stopWatch: () => void
  /** Files but for those that may be a browser's empty input. */
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

  /** Gives the parser the mended body, no faster than it takes it. */
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

  /** Takes nothing more from the request. */
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

  // What multer calls when it is done: it then drains a request, and this one has nothing left to read.
  readonly readable = false
  unpipe(): void {}
  resume(): void {}
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

/** multer and busboy reject with plain errors for what is the client's doing. */
function unreadable(error: unknown): UploadError {
  const reason = messageOf(error)
  return new UploadError(
    'invalid_request',
    `The body is not a valid form: ${reason}. Send multipart/form-data.`,
    { cause: error },
  )
}
