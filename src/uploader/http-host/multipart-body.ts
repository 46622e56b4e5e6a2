import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import type { UploadObject } from '../provider.ts'

/** A request body of known length that is sent as it is read. */
export interface StreamedBody {
  readonly stream: Readable
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

function join(head: Buffer, object: UploadObject, tail: Buffer): Pick<StreamedBody, 'stream' | 'length'> {
  let content: Readable | undefined
  async function* chunks(): AsyncGenerator<Uint8Array> {
    if (head.length > 0) yield head
    content = object.stream()
    let left = object.size
    for await (const chunk of content as AsyncIterable<Uint8Array>) {
      left -= chunk.length
      if (left < 0) break
      yield chunk
    }
    // The length has been announced: less leaves the other side waiting, more would be taken for the next request.
    if (left !== 0) throw new Error(`"${object.key}" has not the ${object.size} bytes it should have`)
    if (tail.length > 0) yield tail
  }
  const parts = chunks()
  // Not Readable.from(): it waits for a stalled chunk before it closes.
  const stream = new Readable({
    read() {
      parts.next().then(
        ({ done, value }) => this.push(done ? null : value),
        error => this.destroy(error),
      )
    },
    destroy(error, done) {
      content?.destroy()
      done(error)
    },
  })
  return { stream, length: head.length + object.size + tail.length }
}

function escapeName(name: string): string {
  return name.replace(/["\r\n]/g, character => encodeURIComponent(character))
}

function toCrLf(text: string): string {
  return text.replace(/\r\n|\r|\n/g, '\r\n')
}
