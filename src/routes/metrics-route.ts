import type { RequestHandler } from 'express'
import { UploadError } from '../errors.ts'
import { type AccessSettings, createAccess, requestFacts } from './access.ts'
import type { FailureWindow } from './failure-window.ts'
import { parametersOf } from './target.ts'

/** GET /metrics: for local clients, and for clients with the metrics token. */
export function createMetricsRoute(
  metrics: { readonly contentType: string; read(): Promise<string> },
  token: string | undefined,
  settings: AccessSettings,
  failures: FailureWindow,
): RequestHandler {
  const keys = token === undefined ? [] : [{ name: 'metrics', key: token }]
  // People whom a reverse proxy or a token names are not operators, so they need the token of the metrics, too.
  const reverseProxy = settings.reverseProxy && { ...settings.reverseProxy, requireKey: true }
  // Tokens don't count, but a reverse proxy that adds them still shows that a request is not local.
  const proxyHeaders = settings.tokens?.verifier.headers
  const access = createAccess(
    { ...settings, reverseProxy, keys, tokens: undefined, proxyHeaders, anonymous: false },
    failures,
  )
  return async (req, res) => {
    try {
      await access.admit(requestFacts(req, parametersOf(req.url), req.ip ?? ''))
    } catch (error) {
      throw error instanceof UploadError && error.code === 'unauthorized' ? unauthorized(error) : error
    }
    res.set('Cache-Control', 'no-store').set('Content-Type', metrics.contentType)
    res.send(await metrics.read())
  }
}

function unauthorized({ logged }: UploadError): UploadError {
  return new UploadError(
    'unauthorized',
    'Metrics are only available to local clients, and with "metrics.token" as Authorization: Bearer TOKEN.',
    { ...(logged && { logged }) },
  )
}
