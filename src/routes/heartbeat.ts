import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Mask } from '../mask.ts'
import { isHost } from './host.ts'
import { requestIdOf } from './request-id.ts'

/** Response of each health check. One client requests `/health` before every upload. */
export type Probe = '/heartbeat' | '/health'

const PROBES: Readonly<Record<Probe, { readonly methods: readonly string[]; readonly body: string }>> = {
  '/heartbeat': { methods: ['GET', 'HEAD', 'POST'], body: '{"success":true,"result":"alive"}' },
  '/health': { methods: ['GET', 'HEAD'], body: '{"success":true,"status":"ok"}' },
}

/**
 * Says that the server is reachable, and nothing about destinations. Asks no key and reads no body. Plain `node:http`,
 * so that health checks are answered before Express is loaded, and without its cost.
 */
export function answerProbe(probe: Probe, res: ServerResponse): void {
  const { body } = PROBES[probe]
  res.setHeader('Content-Type', 'application/json; charset=utf-8')
  res.setHeader('Content-Length', body.length)
  res.end(body)
}

export const isProbe = (path: string | undefined): path is Probe =>
  path === '/heartbeat' || path === '/health'

/** Answers a probe ahead of the application. @returns false when the request is something else */
export function answerProbeEarly(req: IncomingMessage, res: ServerResponse, mask: Mask): boolean {
  const { method = '', url, headers } = req
  if (!isProbe(url) || headers.host === undefined || !isHost(headers.host)) return false
  if (!PROBES[url].methods.includes(method)) return false
  res.setHeader('X-Request-Id', requestIdOf(req, mask))
  res.setHeader('Access-Control-Allow-Origin', '*')
  res.setHeader('Access-Control-Expose-Headers', 'X-Request-Id, Retry-After, RateLimit, RateLimit-Policy')
  answerProbe(url, res)
  return true
}
