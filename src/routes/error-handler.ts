import type { ErrorRequestHandler, Response } from 'express'
import { UploadError } from '../errors.ts'
import type { Mask } from '../mask.ts'
import type { Failure } from './contract.ts'
import { sendBody } from './reply-format.ts'
import { statusOf } from './status.ts'

/** Maximum length of a message, characters. */
const LONGEST = 2000

/** Sets the status and headers of a failure. Returns the first members of its body. */
function fail(res: Response, error: UploadError, message: string): Failure {
  res.status(res.locals.alwaysOk === true ? 200 : statusOf(error.code))
  if (error.code === 'unauthorized') res.set('WWW-Authenticate', 'Bearer')
  if (error.retryAfterS !== undefined) res.set('Retry-After', String(Math.ceil(error.retryAfterS)))
  if (error.code === 'shutting_down' || error.code === 'request_timeout') res.set('Connection', 'close')
  return { success: false, message, msg: message, code: error.code, requestId: res.req.id }
}

/** A message as a client may see it: without secrets, and without a URL that it could take for the link of the image. */
export function publicMessage(error: Error, mask: Mask): string {
  return shorten(withoutAddresses(mask(error.message)))
}

export function withoutAddresses(text: string): string {
  return text.replace(/https?:\/\//gi, '')
}

/** Shortens a message. Messages quote names of any length, and a log line must not take megabytes. */
export function shorten(text: string, most = LONGEST): string {
  return text.length > most ? `${text.slice(0, most)}… (${text.length} characters)` : text
}

/** Converts anything that was thrown into the JSON of the contract. */
export function createErrorHandler(mask: Mask): ErrorRequestHandler {
  return (thrown, req, res, next) => {
    res.logged['address'] = req.ip
    if (res.headersSent) {
      next(thrown)
      return
    }
    const error = toUploadError(thrown, req.id)
    res.err = error
    const body = fail(res, error, publicMessage(error, mask))
    const status = httpStatus(thrown)
    if (status === 412 || status === 416) res.status(status) // of a file: clients know these by their number
    if (res.locals.isUpload === true) sendBody(res, { ...body, errors: [] })
    else res.json(body)
  }
}

function toUploadError(thrown: unknown, requestId: string): UploadError {
  if (thrown instanceof UploadError && thrown.code !== 'internal_error') return thrown
  const status = httpStatus(thrown)
  if (status === 404) return new UploadError('not_found', 'Not found.', { cause: thrown })
  if (status === 412)
    return new UploadError(
      'invalid_request',
      'The file does not match the conditions of the request (If-Match or If-Unmodified-Since).',
    )
  if (status === 416) return new UploadError('invalid_request', 'The requested range is not satisfiable.')
  if (status >= 400 && status < 500) {
    return new UploadError('invalid_request', 'The request is malformed.', { cause: thrown })
  }
  if (thrown instanceof Error && 'code' in thrown && thrown.code === 'ERR_MODULE_NOT_FOUND') {
    const message = `The installation of upload-server is incomplete: a package is missing. Run "npm install" in its folder, or reinstall it. Its log has the name under request ID ${requestId}.`
    return new UploadError('internal_error', message, { cause: thrown })
  }
  return new UploadError(
    'internal_error',
    `Internal error: this is a bug in the server. Its log has the details under request ID ${requestId}.`,
    {
      cause: thrown,
    },
  )
}

/** The status that Express sets on errors of the client, such as a path that can't be decoded, or 0. */
function httpStatus(thrown: unknown): number {
  return thrown instanceof Error && 'status' in thrown ? Number(thrown.status) : 0
}
