import type { IncomingMessage, ServerResponse } from 'node:http'
import { stdSerializers } from 'pino'
import { UploadError } from '../errors.ts'
import type { Logger } from '../log.ts'
import { hideSignatures, type Mask } from '../mask.ts'
import { shorten } from './error-handler.ts'
import { isProbe } from './heartbeat.ts'
import { requestIdOf } from './request-id.ts'
import { statusOf } from './status.ts'
import { pathnameOf } from './target.ts'

declare module 'http' {
  interface IncomingMessage {
    /** The id of the request. */
    id: string
  }
  interface ServerResponse {
    /** Why the request failed, for its line in the log. */
    err?: Error
    /** What else stands in that line. */
    logged: Record<string, unknown>
  }
}

/** What a route adds to the line of its request. */
export function addToLog(res: ServerResponse, fields: Record<string, unknown>): void {
  Object.assign(res.logged, fields)
}

/** Gives every request an id and, at its end, one line in the log, without the query and without headers. */
export function createRequestLog(
  logger: Logger,
  mask: Mask,
): (req: IncomingMessage, res: ServerResponse) => void {
  const log = logger.child({}, { serializers: { err: describeError } })
  return (req, res) => {
    const { method } = req
    const path = pathnameOf(req.url ?? '') // keys stand in the query
    const began = Date.now()
    const id = requestIdOf(req, mask)
    req.id = id
    res.setHeader('X-Request-Id', id)
    res.logged = {}
    let broken: Error | undefined
    res.on('error', error => {
      broken ??= error
    })
    res.on('close', () => {
      const err = broken ?? res.err
      // With `compat.alwaysOk` the status of a failure is 200.
      const status = res.err instanceof UploadError ? statusOf(res.err.code) : res.statusCode
      const failed = err !== undefined || status >= 500
      log[levelOf(status, broken !== undefined, path)](
        {
          requestId: id,
          req: { method, path },
          ...res.logged,
          res: { status: res.headersSent ? res.statusCode : null },
          err,
          ms: Date.now() - began,
        },
        !res.writableFinished ? 'client disconnected' : failed ? 'request failed' : 'response sent',
      )
    })
  }
}

function levelOf(status: number, isBroken: boolean, path: string): 'error' | 'warn' | 'info' | 'debug' {
  if (status >= 500 || (isBroken && status < 400)) return 'error'
  if (status >= 400) return 'warn'
  // Health checks and scrapers come every few seconds and say nothing as long as they succeed.
  return isProbe(path) || path === '/metrics' ? 'debug' : 'info'
}

/** Expected failures need no stack of ours; what caused them does. Their message is what the client is told. */
function describeError(error: unknown): unknown {
  if (!(error instanceof UploadError)) return tidyTexts(stdSerializers.err(error as Error)) // which gives anything else as it is
  const cause = error.cause instanceof Error && { cause: tidyTexts(stdSerializers.err(error.cause)) }
  return { code: error.code, message: shorten(error.message), ...cause }
}

function tidyTexts(fields: object): object {
  const entries = Object.entries(fields)
  // Some destinations repeat our request, and with it its signature, in what becomes the cause.
  const clean = (value: unknown) => (typeof value === 'string' ? hideSignatures(shorten(value)) : value)
  return Object.fromEntries(entries.map(([name, value]) => [name, clean(value)]))
}
