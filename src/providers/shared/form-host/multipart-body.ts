import { randomBytes } from 'node:crypto'
import type { UploadObject } from '../../contract.ts'
import { lendBody } from '../body.ts'

/** A request body of known length that is sent as it is read. */
export interface StreamedBody {
  chunks(signal: AbortSignal): AsyncGenerator<Buffer>
  /** Bytes. */
  readonly length: number
  readonly contentType: string
}

export interface FormFile {
  /** Name of the form field. */
  readonly field: string
  readonly fileName: string
}

/** A `multipart/form-data` body as browsers write it (WHATWG HTML, 4.10.21.8): text fields, then the file. */
export function makeMultipartBody(
  object: UploadObject,
  fields: readonly (readonly [name: string, value: string])[],
  { field, fileName }: FormFile,
): StreamedBody {
  const boundary = `upload-server-${randomBytes(16).toString('hex')}`
  const head = [
    ...fields.map(
      ([name, value]) =>
        `--${boundary}\r\nContent-Disposition: form-data; name="${escapeName(toCrLf(name))}"\r\n\r\n${toCrLf(value)}\r\n`,
    ),
    `--${boundary}\r\nContent-Disposition: form-data; name="${escapeName(toCrLf(field))}"; `,
    `filename="${escapeName(fileName)}"\r\nContent-Type: ${object.contentType}\r\n\r\n`,
  ].join('')
  const contentType = `multipart/form-data; boundary=${boundary}`
  return { ...join(Buffer.from(head), object, Buffer.from(`\r\n--${boundary}--\r\n`)), contentType }
}

/** The bytes of the object and nothing else. */
export function makeRawBody(object: UploadObject): StreamedBody {
  return { ...join(Buffer.alloc(0), object, Buffer.alloc(0)), contentType: object.contentType }
}

function join(head: Buffer, object: UploadObject, tail: Buffer): Pick<StreamedBody, 'chunks' | 'length'> {
  async function* chunks(signal: AbortSignal): AsyncGenerator<Buffer> {
    if (head.length > 0) yield head
    yield* lendBody(object, signal)
    if (tail.length > 0) yield tail
  }
  return { chunks, length: head.length + object.size + tail.length }
}

function escapeName(name: string): string {
  return name.replace(/["\r\n]/g, character => encodeURIComponent(character))
}

function toCrLf(text: string): string {
  return text.replace(/\r\n|\r|\n/g, '\r\n')
}
