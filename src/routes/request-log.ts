import type { IncomingMessage, ServerResponse } from 'node:http'
import { stdSerializers } from 'pino'
import { UploadError } from '../errors.ts'
import type { Logger } from '../log.ts'
import { hideSignatures, type Mask } from '../mask.ts'
import { shorten } from './error-handler.ts'
import { requestIdOf } from './request-id.ts'
import { statusOf } from './status.ts'
import { pathnameOf } from './target.ts'

declare module 'http' {
  interface IncomingMessage {
    /** The request ID. */
    id: string
  }
  interface ServerResponse {
    /** Why the request failed, for its log line. */
    err?: Error
    /** Further fields of the log line. */
    logged: Record<string, unknown>
  }
}

/** Adds fields to the log line of a request. */
export function addToLog(res: ServerResponse, fields: Record<string, unknown>): void {
  Object.assign(res.logged, fields)
}

/** Assigns every request an ID and writes one log line at its end, without the query and the headers, which hold secrets. */
export function createRequestLog(
  logger: Logger,
  mask: Mask,
): (req: IncomingMessage, res: ServerResponse) => void {
  const log = logger.child({}, { serializers: { err: describeError } })
  return (req, res) => {
    const { method } = req
    const path = pathnameOf(req.url ?? '') // The query may contain an upload key.
    const began = Date.now()
    const { traceparent } = req.headers
    const trace = typeof traceparent === 'string' && TRACEPARENT.test(traceparent) && { traceparent }
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
      // With `compat.alwaysOk`, failures have status 200.
      const status = res.err instanceof UploadError ? statusOf(res.err.code) : res.statusCode
      const failed = err !== undefined || status >= 500
      const isCutHere = res.err instanceof UploadError && res.err.code === 'shutting_down'
      log[levelOf(status, broken !== undefined, path)](
        {
          requestId: id,
          ...trace,
          address: res.logged['address'], // before all that clients choose, as docs/examples/fail2ban expects
          req: { method, path },
          ...res.logged,
          ...(res.err instanceof UploadError && res.err.logged),
          res: { status: res.headersSent ? res.statusCode : null },
          err,
          ms: Date.now() - began,
        },
        !res.writableFinished && !isCutHere
          ? 'client disconnected'
          : failed
            ? 'Request failed'
            : 'response sent',
      )
    })
  }
}

/** The W3C trace context of a request (w3.org/TR/trace-context, version 00). */
const TRACEPARENT = /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/

/** Health checks and scrapes come every few seconds, so successful ones are not logged at `info`. */
const FREQUENT: ReadonlySet<string> = new Set(['/heartbeat', '/health', '/ready', '/metrics'])

function levelOf(status: number, isBroken: boolean, path: string): 'error' | 'warn' | 'info' | 'debug' {
  // Probes ask every few seconds, and what makes the server not ready is logged elsewhere.
  if (path === '/ready' && status === 503) return 'debug'
  if (status >= 500 || (isBroken && status < 400)) return 'error'
  if (status >= 400) return 'warn'
  return FREQUENT.has(path) ? 'debug' : 'info'
}

/** Expected failures are logged with the message for the client and without a stack. Their cause is logged with its stack. */
function describeError(error: unknown): unknown {
  // pino's serializer returns a value that is not an Error unchanged, so the cast is safe.
  if (!(error instanceof UploadError)) return tidyTexts(stdSerializers.err(error as Error))
  const cause = error.cause instanceof Error && { cause: tidyTexts(stdSerializers.err(error.cause)) }
  return { code: error.code, message: shorten(error.message), ...cause }
}

function tidyTexts(fields: object): object {
  const entries = Object.entries(fields)
  // Some destinations repeat the request with its signature in their response, which becomes the cause.
  const clean = (value: unknown) => (typeof value === 'string' ? hideSignatures(shorten(value)) : value)
  return Object.fromEntries(entries.map(([name, value]) => [name, clean(value)]))
}
