import { randomUUID } from 'node:crypto'
import { UploadError } from '../errors.ts'
import { type PartHeader, parsePartHeader } from './part-header.ts'
import { TextFields } from './text-fields.ts'

/** RFC 2046 allows 70. Longer boundaries of lenient clients are accepted. */
const MAX_BOUNDARY_BYTES = 200
/** Maximum white space after a boundary (RFC 2046: transport padding), bytes. */
const MAX_PADDING_BYTES = 256
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
  maxParts: number
  /** Maximum size of the whole body, bytes. Default: unlimited. A file that is too large is read to its end, which may never come. */
  maxBytes?: number
  /** Names of the text fields that are kept. Default: none. */
  fields?: ReadonlySet<string>
  /** Maximum size of the headers of one part, bytes. Default: 16 KiB. */
  maxHeaderBytes?: number
}

/** `kind` is undefined until enough bytes have arrived. */
type Delimiter = { kind: 'part' | 'close' | undefined; start: number; end: number }

/** Length of the part of a delimiter that is searched first. `indexOf` is fastest with up to 7 bytes, for any file. */
const PREFIX_BYTES = 7
const NOTHING = Buffer.alloc(0)
const [TAB, LF, CR, SPACE, DASH] = [0x09, 0x0a, 0x0d, 0x20, 0x2d]

// A longer boundary makes multer's parser faster within a file, and slower at its start. The random part keeps clients from
// knowing it. The rest repeats a byte that is rare in files, because the parser slows down at each byte of the boundary.
const MENDED_BOUNDARY = randomUUID().padEnd(140, '~')
const MENDED_DELIMITER = `\r\n--${MENDED_BOUNDARY}`
const MENDED_CLOSE = Buffer.from(`${MENDED_DELIMITER}--\r\n`, 'latin1')

/** The headers of every file. The parser needs names, but they are not used. */
const MENDED_HEADER = Buffer.from(
  `${MENDED_DELIMITER}\r\nContent-Disposition:form-data;name=f;filename=f\r\n\r\n`,
  'latin1',
)

/** The members that multer reads of a request, here with a repaired form. */
export const MENDED_HEADERS = {
  'content-type': `multipart/form-data; boundary=${MENDED_BOUNDARY}`,
  'transfer-encoding': 'chunked',
} as const

/**
 * Rewrites a form for multer, whose parser drops parts with unusual headers. It reads the headers itself, passes the files on
 * with plain headers and a boundary that no client can know, and omits text fields. multer keeps the order of the files, which
 * is that of `files`.
 */
export class PartMender {
  /** The headers of the files begun so far, in order. */
  readonly files: PartHeader[] = []
  readonly texts: TextFields
  /** Parts begun so far, text fields included. */
  #parts = 0
  readonly #maxParts: number
  readonly #maxBytes: number
  readonly #maxHeaderBytes: number
  readonly #delimiter: Buffer
  readonly #prefix: Buffer
  readonly #pass: (bytes: Buffer) => void
  #state: 'preamble' | 'header' | 'file' | 'field' | 'epilogue' = 'preamble'
  /** Bytes that have not been parsed yet. */
  #rest: Buffer = NOTHING
  /** The first delimiter of a form has no line break before it. */
  #isFirstLine = true
  #isBodyBegun = false
  #bytes = 0

  /** @param pass gets the chunks of the rewritten form */
  constructor(boundary: string, options: PartMenderOptions, pass: (bytes: Buffer) => void) {
    const { maxParts, maxBytes = Number.POSITIVE_INFINITY, maxHeaderBytes = MAX_HEADER_BYTES } = options
    this.#maxBytes = maxBytes
    this.#maxParts = maxParts
    this.#maxHeaderBytes = maxHeaderBytes
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1')
    this.#prefix = this.#delimiter.subarray(0, PREFIX_BYTES)
    this.#pass = pass
    this.texts = new TextFields(options.fields ?? new Set())
  }

  /**
   * Parses the next bytes of the body, and passes on what is complete before it returns.
   * @throws UploadError `invalid_request` if they can't be part of a form, `too_large` for too many parts or bytes
   */
  write(chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#bytes > this.#maxBytes) throw tooLargeForm()
    this.#rest = this.#read(this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]))
  }

  /** @throws UploadError `invalid_request` if the form is incomplete */
  end(): void {
    if (this.#state === 'epilogue' && this.#rest.length < this.#delimiter.length) return
    // Some clients omit the line break after the last delimiter.
    this.write(Buffer.from('\r\n'))
    if (this.#state !== 'epilogue') throw incomplete(this.#state === 'preamble')
  }

  #read(data: Buffer): Buffer {
    for (let from = 0; ; ) {
      if (this.#state === 'header') {
        const body = this.#readHeader(data, from)
        if (body === undefined) return data.subarray(from)
        from = body
      }
      const { kind, start, end } = this.#findDelimiter(data, from)
      if (this.#state === 'file') this.#passBody(data, from, start)
      else if (this.#state === 'field') this.texts.write(data.subarray(from, start))
      if (kind === undefined) return data.subarray(start)
      this.#passDelimiter(kind)
      from = end
    }
  }

  /** The headers between a delimiter and the body. Undefined while they are incomplete. */
  #readHeader(data: Buffer, from: number): number | undefined {
    const block = data.subarray(from, from + this.#maxHeaderBytes + '\r\n\r\n\r\n'.length)
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
      `The header of part ${this.#parts + 1} of the form is larger than ${this.#maxHeaderBytes} bytes.`,
    )
  }

  #beginPart(header: PartHeader): void {
    if (this.#parts++ === this.#maxParts) {
      throw new UploadError(
        'too_large',
        `The form has more than ${this.#maxParts} parts. Send fewer at once, or raise "limits.files".`,
      )
    }
    this.#isBodyBegun = false
    this.#state = header.isFile ? 'file' : 'field'
    if (!header.isFile) {
      this.texts.begin(header.field)
      return
    }
    this.files.push(header)
    this.#pass(MENDED_HEADER)
  }

  #passBody(data: Buffer, from: number, to: number): void {
    if (from === to) return
    // The first two bytes are the line break before the body.
    const start = this.#isBodyBegun ? from : from + 2
    this.#isBodyBegun = true
    if (start < to) this.#pass(data.subarray(start, to))
  }

  #passDelimiter(kind: 'part' | 'close'): void {
    if (this.#state === 'epilogue') {
      if (kind === 'close') return
      throw new UploadError('invalid_request', 'The form has data after its closing boundary.')
    }
    if (kind === 'close') this.#pass(MENDED_CLOSE)
    this.#state = kind === 'close' ? 'epilogue' : 'header'
  }

  /** The first delimiter at or after `from`. */
  #findDelimiter(data: Buffer, from: number): Delimiter {
    if (this.#isFirstLine) {
      const found = this.#readDelimiter(data, -2)
      this.#isFirstLine = found !== undefined && found.kind === undefined
      if (found) return found
    }
    let start = data.indexOf(this.#prefix, from)
    for (; start !== -1; start = data.indexOf(this.#prefix, start + 1)) {
      const found = this.#readDelimiter(data, start)
      if (found) return found
    }
    start = data.indexOf(CR, Math.max(from, data.length - this.#prefix.length + 1))
    for (; start !== -1; start = data.indexOf(CR, start + 1)) {
      const found = this.#readDelimiter(data, start)
      if (found) return found
    }
    return { kind: undefined, start: data.length, end: data.length }
  }

  /**
   * Identifies what begins at `start`, if it can be a delimiter. A line that only begins like one is data (RFC 2046 section 5.1.1).
   * @param start -2 for a line without a line break before it
   */
  #readDelimiter(data: Buffer, start: number): Delimiter | undefined {
    const before = Math.max(0, start)
    const end = start + this.#delimiter.length
    const skipped = before - start
    const known = Math.min(end, data.length)
    if (this.#delimiter.compare(data, before, known, skipped, skipped + known - before) !== 0)
      return undefined
    const unsure: Delimiter = { kind: undefined, start: before, end: before }
    if (known < end) return unsure

    const limit = end + MAX_PADDING_BYTES
    const isClose = data[end] === DASH && data[end + 1] === DASH
    let at = isClose ? end + 2 : end
    while (at < limit && (data[at] === SPACE || data[at] === TAB)) at++
    if (at === limit) return undefined
    if (at === data.length) return unsure
    if (start === -2 && data[at] === LF) throw withoutCr()
    if (isClose)
      return data[at] === CR || data[at] === LF ? { kind: 'close', start: before, end: end + 2 } : undefined
    if (at + 1 === data.length)
      return data[at] === CR || (data[at] === DASH && at === end) ? unsure : undefined
    return data[at] === CR && data[at + 1] === LF && at + 1 < limit
      ? { kind: 'part', start: before, end: at }
      : undefined
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
