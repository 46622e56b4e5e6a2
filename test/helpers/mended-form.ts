import type { Readable, Writable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import type { Response as Reply, Request } from 'express'
import multer from 'multer'
import { expect } from 'vitest'
import { MENDED_TYPE, PartMender, type PartMenderOptions } from '../../src/routes/multipart.ts'
import type { PartHeader } from '../../src/routes/part-header.ts'

/** Runs a form through a mender into the real multer. @returns the header of every file, and the files that multer got */
export async function readMended(
  body: Readable,
  boundary: string,
  options: PartMenderOptions,
): Promise<{
  headers: readonly PartHeader[]
  files: Express.Multer.File[]
  fields: Readonly<Record<string, string>>
}> {
  const mender = new PartMender(boundary, options)
  const headers = { 'content-type': MENDED_TYPE, 'transfer-encoding': 'chunked' }
  const request = Object.assign(body, { headers }) as unknown as Request
  await new Promise<void>((resolve, reject) => {
    const parse = multer({
      storage: {
        _handleFile: (_request: Request, file: Express.Multer.File, done: (...result: unknown[]) => void) =>
          void buffer(file.stream).then(read => done(null, { buffer: read }), done),
        _removeFile: (_request: Request, _file: Express.Multer.File, done: (error: null) => void) =>
          done(null),
      },
      streamHandler: (_request: Request, parser: Writable) =>
        body.pipe(mender.on('error', reject)).pipe(parser),
    } as multer.Options)
    parse.any()(request, {} as Reply, (error: unknown) => (error ? reject(error) : resolve()))
  })
  return { headers: mender.files, files: request.files as Express.Multer.File[], fields: request.body }
}

export interface ReceivedFile {
  fileName: string
  contentType: string
  bytes: Buffer
}

/** Joins what multer got of a form with what the mender knows. */
export async function receive(
  body: Readable,
  boundary: string,
  options: Partial<PartMenderOptions>,
): Promise<ReceivedFile[]> {
  const { headers, files } = await readMended(body, boundary, { maxParts: 100, ...options })
  expect(files).toHaveLength(headers.length)
  return headers.map(({ fileName, contentType }, i) => ({ fileName, contentType, bytes: files[i]!.buffer }))
}
