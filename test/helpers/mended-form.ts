import { PassThrough, type Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import type { Response as Reply, Request } from 'express'
import multer, { type StorageEngine } from 'multer'
import { MENDED_HEADERS, PartMender, type PartMenderOptions } from '../../src/routes/multipart.ts'
import type { PartHeader } from '../../src/routes/part-header.ts'

const memory: StorageEngine = {
  _handleFile: (_request, file, done) =>
    void buffer(file.stream).then(read => done(null, { buffer: read }), done),
  _removeFile: (_request, _file, done) => done(null),
}

/** Runs a form through a mender into the real multer. @returns the header of every file, and the files that multer got */
export async function readMended(
  body: Readable,
  boundary: string,
  options: PartMenderOptions,
): Promise<{ headers: readonly PartHeader[]; files: Express.Multer.File[] }> {
  const mended = new PassThrough({ highWaterMark: 64 * 1024 * 1024 })
  const mender = new PartMender(boundary, options, bytes => void mended.write(bytes))
  const attempt = (work: () => void) => () => {
    try {
      work()
    } catch (error) {
      mended.destroy(error as Error)
    }
  }
  body.on('data', (chunk: Buffer) => attempt(() => mender.write(chunk))())
  body.on(
    'end',
    attempt(() => {
      mender.end()
      mended.end()
    }),
  )
  const request = Object.assign(mended, { headers: MENDED_HEADERS }) as unknown as Request
  await new Promise<void>((resolve, reject) => {
    multer({ storage: memory }).any()(request, {} as Reply, (error: unknown) =>
      error ? reject(error) : resolve(),
    )
  })
  return { headers: mender.files, files: request.files as Express.Multer.File[] }
}
