import type { FileHandle } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Request, Response } from 'express'
import { UploadError } from '../errors.ts'
import { sniffFile } from '../payload/sniff.ts'
import type { Destination } from '../uploader/destinations.ts'

const YEAR_MS = 365 * 24 * 60 * 60 * 1000
const HOUR_MS = 60 * 60 * 1000

/** Headers that a failure must not have: a cache would keep it for a year. */
const OF_THE_FILE = ['Content-Type', 'Content-Disposition', 'Cache-Control', 'ETag', 'Last-Modified']

/** Media types a browser may display, because they can't run scripts. */
const INLINE = /^(?:image\/(?!svg)|video\/|audio\/|text\/(?!html)|application\/(?:pdf|json))/
/** Media types that a page of the server itself could run as a script. They are served as text. */
const SCRIPT = /javascript/

/**
 * GET /files/<configName>/<key>: serves the files of a `local` destination with `serve`. The media type is detected from the
 * bytes, and the headers prevent scripts in the server's origin.
 *
 * @param idleMs milliseconds without progress after which the connection is closed
 */
export function createFilesRoute(
  destinations: readonly Destination[],
  idleMs: number,
): (req: Request<{ name: string; key: string[] }>, res: Response) => Promise<void> {
  return async (req, res) => {
    const { name, key } = req.params
    const destination = destinations.find(one => one.name === name && one.target.locate)
    const clean = key.every(segment => segment !== '' && !segment.startsWith('.') && !/[/\\\0]/.test(segment))
    const file = clean ? await destination?.target.locate?.(key.join('/')) : undefined
    if (!destination || file === undefined) throw new UploadError('not_found', 'File not found.')
    try {
      const { contentType, etag, size } = await inspectFile(file.handle, basename(file.real))
      spanLongSuffix(req, size)
      setHeaders(res, basename(file.real), contentType)
      res.set('ETag', etag)
      res.setTimeout(idleMs, () => res.destroy())
      await send(res, file.path, destination.isContentKey)
    } finally {
      await file.close()
    }
  }
}

/** A suffix range longer than the file is the whole file (RFC 9110 section 14.1.2). Express rejects it. */
function spanLongSuffix(req: Pick<Request, 'headers'>, size: bigint): void {
  const [, length] = /^bytes=-(\d+)$/.exec(req.headers.range ?? '') ?? []
  if (length !== undefined && size > 0n && BigInt(length) > size) req.headers.range = 'bytes=0-'
}

function setHeaders(res: Response, fileName: string, contentType: string): void {
  if (!INLINE.test(contentType)) res.attachment(fileName)
  const shown = SCRIPT.test(contentType) ? 'text/plain' : contentType
  res.set('Content-Type', shown.startsWith('text/') ? `${shown}; charset=utf-8` : shown)
  res.set('X-Content-Type-Options', 'nosniff')
  res.set('Content-Security-Policy', "sandbox; default-src 'none'")
  res.set('Cross-Origin-Resource-Policy', 'cross-origin')
}

/** Express handles ranges, conditional requests and HEAD. */
function send(res: Response, path: string, immutable: boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    // The provider has checked the path. Directories above the stored files may begin with a dot.
    const options = { dotfiles: 'allow', maxAge: immutable ? YEAR_MS : HOUR_MS, immutable } as const
    res.sendFile(path, options, error => {
      if (!error || res.headersSent) {
        resolve()
        return
      }
      for (const name of OF_THE_FILE) res.removeHeader(name)
      reject(error)
    })
  })
}

/** The media type, and an ETag that changes with the bytes: files are replaced, never modified. */
async function inspectFile(handle: FileHandle, name: string) {
  const { ino, size, mtimeNs } = await handle.stat({ bigint: true })
  const etag = `"${[ino, size, mtimeNs].map(part => part.toString(36)).join('-')}"`
  return { ...(await sniffFile(handle, name)), etag, size }
}
