import type { ErrorRequestHandler, Response } from 'express'
import { UploadError } from '../errors.ts'
import type { Mask } from '../mask.ts'
import type { Failure } from './contract.ts'
import { sendBody } from './reply-format.ts'
import { statusOf } from './status.ts'

/** Characters of a message that are shown. */
const LONGEST = 2000

/** Sets the status and headers of a failure and gives the members its body starts with. */
function fail(res: Response, error: UploadError, message: string): Failure {
  res.status(res.locals.alwaysOk === true ? 200 : statusOf(error.code))
  if (error.code === 'unauthorized') res.set('WWW-Authenticate', 'Bearer')
  if (error.retryAfterS !== undefined) res.set('Retry-After', String(Math.ceil(error.retryAfterS)))
  if (error.code === 'shutting_down' || error.code === 'request_timeout') res.set('Connection', 'close')
  return { success: false, message, msg: message, code: error.code, requestId: res.req.id }
}

/** A message as a client may see it: without secrets, and without an address that it could take for the picture's. */
export function publicMessage(error: Error, mask: Mask): string {
  return shorten(withoutAddresses(mask(error.message)))
}

export function withoutAddresses(text: string): string {
  return text.replace(/https?:\/\//gi, '')
}

/** Clients name things of any length, and messages repeat them: one line of the log must not take megabytes. */
export function shorten(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}… (${text.length} characters)` : text
}

/** Turns whatever was thrown into the JSON of the contract. */
export function createErrorHandler(mask: Mask): ErrorRequestHandler {
  return (thrown, req, res, next) => {
    if (res.headersSent) {
      next(thrown)
      return
    }
    const error = asUploadError(thrown, req.id)
    res.err = error
    res.logged['address'] = req.ip
    const body = fail(res, error, publicMessage(error, mask))
    const status = httpStatus(thrown)
    if (status === 412 || status === 416) res.status(status) // of a file: clients know these by their number
    if (res.locals.isUpload === true) sendBody(res, { ...body, errors: [] })
    else res.json(body)
  }
}

function asUploadError(thrown: unknown, requestId: string): UploadError {
  if (thrown instanceof UploadError && thrown.code !== 'internal_error') return thrown
  const status = httpStatus(thrown)
  if (status === 404) return new UploadError('not_found', 'There is nothing here.', { cause: thrown })
  if (status === 412)
    return new UploadError('invalid_request', 'The file is not the one that the request has in mind (If-…).')
  if (status === 416) return new UploadError('invalid_request', 'The file has no bytes in the wanted range.')
  if (status >= 400 && status < 500) {
    return new UploadError('invalid_request', 'The request cannot be understood.', { cause: thrown })
  }
  return new UploadError(
    'internal_error',
    `Something went wrong inside the server. Its log says what, under request id ${requestId}.`,
    {
      cause: thrown,
    },
  )
}

/** Express marks what the client did wrong, such as a path that can't be decoded. 0: no mark. */
function httpStatus(thrown: unknown): number {
  return thrown instanceof Error && 'status' in thrown ? Number(thrown.status) : 0
}
