import type { Writable } from 'node:stream'
import type { Request, Response } from 'express'
import multer from 'multer'
import { messageOf, UploadError } from '../errors.ts'
import type { Input } from '../uploader/input.ts'
import { type BodyOptions, cutOff, type Received, sendContinue, watchBody } from './body.ts'
import { tooMany } from './list.ts'
import { MENDED_TYPE, PartMender, tooLargeForm } from './multipart.ts'
import { FIELDS } from './options.ts'

/** Maximum number of text fields of a form, in addition to the files. */
const MAX_FIELDS = 1000
/** Maximum bytes of a form in addition to those of its files. */
const OVERHEAD_BYTES = 32 * 1024 * 1024
/** Buffer size of multer's parser. Bytes; it is larger than the chunks that arrive. */
const PARSER_BYTES = 128 * 1024

type Part = Extract<Input, { kind: 'form' }>

/**
 * Reads a multipart body: request → `PartMender` → multer's parser → payloads. Every file part becomes an input. Of the text
 * fields, only request options are kept.
 *
 * @throws UploadError `invalid_request` if the body is not a valid form, `no_file`, `too_large` for too many files,
 *   `request_timeout`. Everything that was received is then discarded
 */
export async function readForm(
  req: Request,
  res: Response,
  boundary: string,
  { payloads, spool, limits, underWay }: BodyOptions,
): Promise<Received> {
  const { files: most, fileSize: limit } = limits
  const maxBytes = most * limit + OVERHEAD_BYTES
  if (Number(req.headers['content-length']) > maxBytes) throw tooLargeForm()
  sendContinue(req, res)
  const mender = new PartMender(boundary, { maxParts: most + MAX_FIELDS, maxBytes, fields: FIELDS })
  const parts: Promise<Part | undefined>[] = []
  let files = 0

  /** Receives the next file. */
  async function take(stream: AsyncIterable<Uint8Array>): Promise<Part | undefined> {
    const header = mender.files[parts.length]
    if (!header) throw new Error('multer found a file that PartMender did not find')
    const { fileName: name, mayBeEmptyInput } = header
    if (!mayBeEmptyInput && ++files > most) throw tooMany(most)
    underWay.push(name)
    const payload = await payloads.readPart(stream, { name, spool, limit })
    // The empty file field of a browser.
    if (mayBeEmptyInput && 'size' in payload && payload.size === 0) return undefined
    return { kind: 'form', origin: name, payload }
  }

  let parser: Writable | undefined
  let stopWatch = () => {}
  try {
    await new Promise<void>((resolve, reject) => {
      stopWatch = watchBody(req, limits.bodyIdleMs, reject)
      const parse = multer({
        storage: {
          _handleFile(
            _req: Request,
            { stream }: Express.Multer.File,
            done: (error: null, info: object) => void,
          ) {
            const part = take(stream)
            parts.push(part)
            part.then(() => done(null, {}), reject)
          },
          _removeFile: (_req: Request, _file: Express.Multer.File, done: (error: null) => void) => done(null),
        },
        streamHandler(_req: Request, busboy: Writable) {
          parser = busboy
          req.pipe(mender.on('error', reject)).pipe(busboy)
        },
        highWaterMark: PARSER_BYTES,
        fileHwm: PARSER_BYTES,
      } as multer.Options)
      // The header of the form is rewritten like those of its parts.
      req.headers['content-type'] = MENDED_TYPE
      parse.any()(req, res, (error: unknown) => {
        if (error) reject(req.complete ? unreadable(error) : cutOff())
        else resolve()
      })
    })
    const inputs = (await Promise.all(parts)).filter(part => part !== undefined)
    if (inputs.length > most) throw tooMany(most)
    if (inputs.length === 0) throw noFile()
    return { inputs, fields: Object.entries(req.body ?? {}).map(([name, text]) => [name, String(text)]) }
  } catch (error) {
    req.unpipe(mender)
    mender.destroy()
    parser?.destroy() // This ends the file that is arriving.
    for (const part of await Promise.allSettled(parts))
      if (part.status === 'fulfilled' && part.value) await dispose(part.value)
    throw error
  } finally {
    stopWatch()
  }
}

async function dispose({ payload }: Part): Promise<void> {
  if ('dispose' in payload) await payload.dispose()
}

function noFile(): UploadError {
  return new UploadError(
    'no_file',
    'The form has no file. Send at least one part with a file name, for example: curl -F file=@picture.png.',
  )
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
