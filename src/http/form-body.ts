import { randomBytes } from 'node:crypto'
import type { Body } from '../body.ts'

/** A body and its media type. */
export interface TypedBody extends Body {
  readonly contentType: string
}

export interface FormFile {
  /** Name of the form field. */
  readonly field: string
  readonly fileName: string
  readonly content: TypedBody
}

/**
 * A `multipart/form-data` body as browsers write it (WHATWG HTML, 4.10.21.8): text fields, then files.
 *
 * @param files at least one
 */
export function formBody(
  fields: readonly (readonly [name: string, value: string])[],
  files: readonly FormFile[],
): TypedBody {
  const boundary = `upload-server-${randomBytes(16).toString('hex')}`
  const disposition = (name: string) =>
    `--${boundary}\r\nContent-Disposition: form-data; name="${escapeName(toCrLf(name))}"`
  const texts = fields.map(([name, value]) => `${disposition(name)}\r\n\r\n${toCrLf(value)}\r\n`).join('')
  const heads = files.map(({ field, fileName, content }, index) => {
    const head = `${disposition(field)}; filename="${escapeName(fileName)}"\r\nContent-Type: ${content.contentType}\r\n\r\n`
    return Buffer.from((index === 0 ? texts : '\r\n') + head)
  })
  const end = Buffer.from(`\r\n--${boundary}--\r\n`)
  const sizes = [...heads.map(({ length }) => length), ...files.map(({ content }) => content.size)]
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    size: sizes.reduce((sum, size) => sum + size, end.length),
    async *read(signal) {
      for (const [index, { content }] of files.entries()) {
        yield heads[index] as Buffer // there is one for each file
        yield* content.read(signal)
      }
      yield end
    },
  }
}

function escapeName(name: string): string {
  return name.replace(/["\r\n]/g, character => encodeURIComponent(character))
}

function toCrLf(text: string): string {
  return text.replace(/\r\n|\r|\n/g, '\r\n')
}
