import { randomBytes } from 'node:crypto'

/** A request body of known length that is sent as it is read. */
export interface RequestBody {
  /** Returns all bytes, once for each attempt. A chunk is valid until the next one is requested. */
  chunks(signal: AbortSignal): AsyncGenerator<Buffer>
  /** Bytes. */
  readonly length: number
  /** Media type. */
  readonly contentType: string
}

export interface FormFile {
  /** Name of the form field. */
  readonly field: string
  readonly fileName: string
  readonly content: RequestBody
}

/** A body that is in memory already. */
export function bodyOf(bytes: Buffer, contentType: string): RequestBody {
  async function* chunks(): AsyncGenerator<Buffer> {
    yield bytes
  }
  return { chunks, length: bytes.length, contentType }
}

/**
 * A `multipart/form-data` body as browsers write it (WHATWG HTML, 4.10.21.8): text fields, then files.
 *
 * @param files at least one
 */
export function makeMultipartBody(
  fields: readonly (readonly [name: string, value: string])[],
  files: readonly FormFile[],
): RequestBody {
  const boundary = `upload-server-${randomBytes(16).toString('hex')}`
  const disposition = (name: string) =>
    `--${boundary}\r\nContent-Disposition: form-data; name="${escapeName(toCrLf(name))}"`
  const texts = fields.map(([name, value]) => `${disposition(name)}\r\n\r\n${toCrLf(value)}\r\n`).join('')
  const pieces = files.flatMap(({ field, fileName, content }, index) => {
    const head = `${disposition(field)}; filename="${escapeName(fileName)}"\r\nContent-Type: ${content.contentType}\r\n\r\n`
    return [Buffer.from((index === 0 ? texts : '\r\n') + head), content]
  })
  const end = Buffer.from(`\r\n--${boundary}--\r\n`)
  async function* chunks(signal: AbortSignal): AsyncGenerator<Buffer> {
    for (const piece of [...pieces, end]) {
      if (Buffer.isBuffer(piece)) yield piece
      else yield* piece.chunks(signal)
    }
  }
  const length = pieces.reduce((sum, piece) => sum + piece.length, end.length)
  return { chunks, length, contentType: `multipart/form-data; boundary=${boundary}` }
}

function escapeName(name: string): string {
  return name.replace(/["\r\n]/g, character => encodeURIComponent(character))
}

function toCrLf(text: string): string {
  return text.replace(/\r\n|\r|\n/g, '\r\n')
}
