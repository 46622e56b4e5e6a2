import type { IncomingMessage, ServerResponse } from 'node:http'
import { stdSerializers } from 'pino'
import { type HttpLogger, pinoHttp } from 'pino-http'
import { UploadError } from '../errors.ts'
import type { Logger } from '../log.ts'
import { hideSignatures, type Mask } from '../mask.ts'
import { shorten, statusOf } from './error-handler.ts'
import { requestIdOf } from './request-id.ts'

/** What a route adds to the line of its request; it lies in `res.locals.log`. */
export type LogFields = Record<string, unknown>

/** Gives every request an id and, at its end, one line in the log, without the query and without headers. */
export function createRequestLog(logger: Logger, mask: Mask): HttpLogger<IncomingMessage, ServerResponse> {
  return pinoHttp<IncomingMessage, ServerResponse>({
    logger,
    genReqId: (req, res) => {
      const id = requestIdOf(req, mask)
      res.setHeader('X-Request-Id', id)
      return id
    },
    customLogLevel: (req, res, error) => {
      // With `compat.alwaysOk` the status of a failure is 200.
      const status = res.err instanceof UploadError ? statusOf(res.err.code) : res.statusCode
      if (status >= 500 || (error && status < 400)) return 'error'
      if (status >= 400) return 'warn'
      // Health checks and scrapers come every few seconds and say nothing as long as they succeed.
      return ['/heartbeat', '/metrics'].includes(pathOf(req)) ? 'debug' : 'info'
    },
    serializers: {
      req: (req: IncomingMessage) => ({ method: req.method, path: pathOf(req) }),
      res: (res: ServerResponse) => ({ status: res.headersSent ? res.statusCode : null }),
      err: describeError,
    },
    wrapSerializers: false,
    quietReqLogger: true,
    customAttributeKeys: { reqId: 'id', responseTime: 'ms' },
    customProps: (_req, res) => fieldsOf(res),
    customSuccessMessage: (_req, res) => (res.writableFinished ? 'answered' : 'client went away'),
    customErrorMessage: (_req, res) => (res.writableFinished ? 'failed' : 'client went away'),
  })
}

function fieldsOf(res: ServerResponse): LogFields {
  const locals: unknown = 'locals' in res ? res.locals : undefined
  const fields: unknown =
    typeof locals === 'object' && locals !== null && 'log' in locals ? locals.log : undefined
  return typeof fields === 'object' && fields !== null ? { ...fields } : {}
}

/** The query is left out: keys stand in it. */
function pathOf(req: IncomingMessage): string {
  return (req.url ?? '').replace(/[?#].*$/s, '')
}

/** Expected failures need no stack of ours; what caused them does. */
function describeError(error: unknown): unknown {
  if (!(error instanceof UploadError)) return tidyTexts(stdSerializers.err(error as Error))
  const cause = error.cause instanceof Error && { cause: tidyTexts(stdSerializers.err(error.cause)) }
  return tidyTexts({ code: error.code, message: error.message, ...cause })
}

function tidyTexts(fields: object): object {
  const entries = Object.entries(fields)
  // Some destinations repeat our request, and with it its signature, in what becomes the cause.
  const clean = (value: unknown) => (typeof value === 'string' ? shorten(hideSignatures(value)) : value)
  return Object.fromEntries(entries.map(([name, value]) => [name, clean(value)]))
}
