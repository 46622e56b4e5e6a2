import { randomUUID } from 'node:crypto'
import { Transform, type TransformCallback } from 'node:stream'
import { UploadError } from '../errors.ts'
import { type PartHeader, parsePartHeader } from './part-header.ts'

/** RFC 2046 allows 70. Longer boundaries of lenient clients are accepted. */
const MAX_BOUNDARY_BYTES = 200
/** Maximum length of what follows a boundary and belongs to it: `--`, white space (RFC 2046: transport padding), CRLF. */
const MAX_TAIL_BYTES = 257
const MAX_HEADER_BYTES = 16 * 1024

/** The boundary of a form, or undefined for another type. Throws UploadError `invalid_request` if it is not usable. */
export function readBoundary(contentType: string | undefined): string | undefined {
  if (contentType === undefined || !/^\s*multipart\/form-data\s*(?:;|$)/i.test(contentType)) return undefined
  for (const parameter of contentType.matchAll(/;\s*([\w-]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|([^;]*))/g)) {
    const [, name, quoted, plain = ''] = parameter
    if (name?.toLowerCase() !== 'boundary') continue
    const boundary = (quoted?.replace(/\\(.)/g, '$1') ?? plain).trimEnd()
    if (boundary !== '' && boundary.length <= MAX_BOUNDARY_BYTES) return boundary
    break
  }
  throw new UploadError(
    'invalid_request',
    `The "Content-Type" of the form has no boundary of 1 to ${MAX_BOUNDARY_BYTES} characters. ` +
      'Do not write this header by hand: let the library that makes the form set it.',
  )
}

export interface PartMenderOptions {
  /** Maximum number of parts, including text fields. */
  readonly maxParts: number
  /** Maximum size of the whole body, bytes. Default: unlimited. A file that is too large is read to its end, which may never come. */
  readonly maxBytes?: number
  /** Names of the text fields that are kept. Default: none. */
  readonly fields?: ReadonlySet<string>
}

/** `kind` is undefined until enough bytes have arrived. */
type Delimiter = { kind: 'part' | 'close' | undefined; start: number; end: number }

/** Length of the part of a delimiter that is searched first. `indexOf` is fastest with up to 7 bytes, for any file. */
const PREFIX_BYTES = 7
/** Maximum length kept of a text field. No option is longer. */
const MAX_TEXT_BYTES = 1024
/** Buffer size, larger than the chunks that arrive, so that the request is not paused for each of them. */
const BUFFERED_BYTES = 128 * 1024
const LINE_END = Buffer.from('\r\n')
/** What follows a boundary before another part, and after the last one. */
const PART_TAIL = /^[ \t]*(?=\r\n)/
const CLOSE_TAIL = /^--[ \t]{0,253}[\r\n]/
/** What may become one of these when more bytes arrive. */
const UNSURE_TAIL = /^(?:-|(?:--)?[ \t]*\r?)$/
const BARE_LF = /^(?:--)?[ \t]*\n/

// A longer boundary makes multer's parser faster within a file, and slower at its start. The random part keeps clients from
// knowing it. The rest repeats a byte that is rare in files, because the parser slows down at each byte of the boundary.
const MENDED_BOUNDARY = randomUUID().padEnd(140, '~')
const MENDED_DELIMITER = `\r\n--${MENDED_BOUNDARY}`
const mendedHeader = (disposition: string) =>
  Buffer.from(`${MENDED_DELIMITER}\r\nContent-Disposition:form-data;${disposition}\r\n\r\n`, 'latin1')
/** The header of every file. The parser needs names, but they are not used. */
const FILE_HEADER = mendedHeader('name=f;filename=f')

/** The `Content-Type` of a corrected form. */
export const MENDED_TYPE = `multipart/form-data; boundary=${MENDED_BOUNDARY}`

/**
 * Rewrites a form for multer, whose parser drops parts with unusual headers. It reads the headers itself, and passes files and
 * wanted text fields on with plain headers and a boundary that no client can know. multer keeps the order of the files, which
 * is that of `files`.
 *
 * Fails with UploadError `invalid_request` for what can't be a form, and `too_large` for too many parts or bytes.
 */
export class PartMender extends Transform {
  /** The headers of the files begun so far, in order. */
  readonly files: PartHeader[] = []
  readonly #options: PartMenderOptions
  /** Wanted text fields that have not come yet. Of several with one name, the first counts. */
  readonly #fields: Set<string>
  readonly #delimiter: Buffer
  readonly #prefix: Buffer
  #state: 'preamble' | 'header' | 'body' | 'epilogue' = 'preamble'
  /** Bytes that have not been parsed yet. The first delimiter of a form has no line break before it. */
  #rest: Buffer = LINE_END
  /** Parts begun so far, text fields included. */
  #parts = 0
  /** Bytes of the current part to skip, which are the line break before its body, and to pass on after that. */
  #skip = 0
  #left = 0
  #bytes = 0

  constructor(boundary: string, options: PartMenderOptions) {
    super({ highWaterMark: BUFFERED_BYTES })
    this.#options = options
    this.#fields = new Set(options.fields)
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1')
    this.#prefix = this.#delimiter.subarray(0, PREFIX_BYTES)
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    try {
      this.#bytes += chunk.length
      if (this.#bytes > (this.#options.maxBytes ?? Infinity)) throw tooLargeForm()
      this.#rest = this.#read(this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]))
    } catch (error) {
      done(error as Error)
      return
    }
    done()
  }

  override _flush(done: TransformCallback): void {
    if (this.#state === 'epilogue') {
      done()
      return
    }
    // Some clients omit the line break after the last delimiter.
    this._transform(LINE_END, 'latin1', error => {
      const isComplete = this.#state === 'epilogue'
      done(error ?? (isComplete ? null : incomplete(this.#state === 'preamble')))
    })
  }

  /** @returns what can't be parsed yet */
  #read(data: Buffer): Buffer {
    for (let from = 0; ; ) {
      if (this.#state === 'header') {
        const body = this.#readHeader(data, from)
        if (body === undefined) return data.subarray(from)
        from = body
      }
      const { kind, start, end } = this.#findDelimiter(data, from)
      if (this.#state === 'body') {
        const begin = Math.min(from + this.#skip, start)
        const body = data.subarray(begin, Math.min(begin + this.#left, start))
        this.#skip -= begin - from
        this.#left -= body.length
        if (body.length > 0) this.push(body)
      }
      if (kind === undefined) return data.subarray(start)
      if (this.#state === 'epilogue' && kind === 'part')
        throw new UploadError('invalid_request', 'The form has data after its closing boundary.')
      if (this.#state !== 'epilogue' && kind === 'close') this.push(`${MENDED_DELIMITER}--\r\n`, 'latin1')
      this.#state = kind === 'close' ? 'epilogue' : 'header'
      from = end
    }
  }

  /** The headers between a delimiter and the body. Undefined while they are incomplete. */
  #readHeader(data: Buffer, from: number): number | undefined {
    const block = data.subarray(from, from + MAX_HEADER_BYTES + '\r\n\r\n\r\n'.length)
    const blankLine = block.indexOf('\r\n\r\n')
    // A part can end within its headers, so the next delimiter must be found there.
    const next = this.#findDelimiter(block, 0)
    const isCut = next.kind !== undefined && (blankLine === -1 || next.end <= blankLine)
    const end = isCut ? next.start : blankLine
    if (end !== -1) {
      if (block.subarray(0, end).includes('\n\n')) throw withoutCr()
      this.#beginPart(parsePartHeader(block.subarray(2, end)))
      return from + (isCut ? end : end + 2)
    }
    if (from + block.length === data.length) return undefined
    throw new UploadError(
      'invalid_request',
      `The header of part ${this.#parts + 1} of the form is larger than ${MAX_HEADER_BYTES} bytes.`,
    )
  }

  #beginPart(header: PartHeader): void {
    const { maxParts } = this.#options
    if (this.#parts++ === maxParts) {
      throw new UploadError(
        'too_large',
        `The form has more than ${maxParts} parts. Send fewer at once, or raise "limits.files".`,
      )
    }
    this.#state = 'body'
    this.#skip = LINE_END.length
    this.#left = header.isFile ? Infinity : this.#fields.delete(header.field) ? MAX_TEXT_BYTES : 0
    if (header.isFile) this.files.push(header)
    if (this.#left > 0) this.push(header.isFile ? FILE_HEADER : mendedHeader(`name=${header.field}`))
  }

  /** The first delimiter at or after `from`. */
  #findDelimiter(data: Buffer, from: number): Delimiter {
    // Where too few bytes are left for the prefix, a line break may be the beginning of one.
    const tail = data.length - PREFIX_BYTES + 1
    for (let start = from; ; start++) {
      const whole = data.indexOf(this.#prefix, start)
      start = whole === -1 ? data.indexOf('\r', Math.max(start, tail)) : whole
      if (start === -1) return { kind: undefined, start: data.length, end: data.length }
      const found = this.#readDelimiter(data, start)
      if (found) return found
    }
  }

  /** Identifies what begins at `start`, if it can be a delimiter. A line that only begins like one is data. */
  #readDelimiter(data: Buffer, start: number): Delimiter | undefined {
    const end = start + this.#delimiter.length
    const known = Math.min(end, data.length)
    if (this.#delimiter.compare(data, start, known, 0, known - start) !== 0) return undefined
    const tail = data.toString('latin1', end, end + MAX_TAIL_BYTES)
    if (this.#state === 'preamble' && BARE_LF.test(tail)) throw withoutCr()
    if (CLOSE_TAIL.test(tail)) return { kind: 'close', start, end: end + 2 }
    const [padding] = PART_TAIL.exec(tail) ?? []
    if (padding !== undefined) return { kind: 'part', start, end: end + padding.length }
    const isWhole = end + tail.length < data.length
    return isWhole || !UNSURE_TAIL.test(tail) ? undefined : { kind: undefined, start, end: start }
  }
}

function incomplete(isEmpty: boolean): UploadError {
  const message = isEmpty
    ? 'The body is not a form: it does not contain the boundary of its "Content-Type".'
    : 'The form was cut off: its closing boundary is missing. Send it again.'
  return new UploadError('invalid_request', message)
}

/** The error for a form that was written by hand, or converted by a tool for text. */
function withoutCr(): UploadError {
  return new UploadError(
    'invalid_request',
    'The lines of the form end with LF instead of CRLF. Let a library make the form, or write "\\r\\n" after each line.',
  )
}

/** The error for a form whose files can't all be within the limits. */
export function tooLargeForm(): UploadError {
  return new UploadError(
    'too_large',
    'The form is larger than one request may be (limits.files, limits.fileSize). Send fewer files at once.',
  )
}
