import type { RequestHandler } from 'express'
import { UploadError } from '../errors.ts'
import { type AccessSettings, createAccess, requestFacts } from './access.ts'
import type { FailureWindow } from './failure-window.ts'
import { queryOf } from './target.ts'

/** GET /metrics: for programs on this machine, and for whoever sends the token that is for this alone. */
export function createMetricsRoute(
  metrics: { readonly contentType: string; read(): Promise<string> },
  token: string | undefined,
  settings: AccessSettings,
  failures: FailureWindow,
): RequestHandler {
  const keys = token === undefined ? [] : [{ name: 'metrics', key: token }]
  const access = createAccess({ ...settings, keys, anonymous: false }, failures)
  return async (req, res) => {
    try {
      access.admit(requestFacts(req, queryOf(req.url), req.ip ?? ''))
    } catch (error) {
      throw error instanceof UploadError && error.code === 'unauthorized' ? unauthorized() : error
    }
    res.set('Cache-Control', 'no-store').set('Content-Type', metrics.contentType)
    res.send(await metrics.read())
  }
}

function unauthorized(): UploadError {
  return new UploadError(
    'unauthorized',
    'Metrics are for programs on the machine of the server, and for those that send "metrics.token" of its configuration as "Authorization: Bearer".',
  )
}
