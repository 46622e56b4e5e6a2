import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Mask } from '../mask.ts'
import { isHost } from './host.ts'
import { requestIdOf } from './request-id.ts'

const BODY = '{"success":true,"result":"alive"}'

/**
 * Says that the server is reachable, and nothing about destinations. Asks no key and reads no body. Plain `node:http`,
 * so that health checks are answered before Express is loaded, and without its cost.
 */
export function answerHeartbeat(res: ServerResponse): void {
  res.setHeader('Content-Type', 'application/json; charset=utf-8')
  res.setHeader('Content-Length', BODY.length)
  res.end(BODY)
}

/** Answers a heartbeat ahead of the application. @returns false when the request is something else */
export function answerHeartbeatEarly(req: IncomingMessage, res: ServerResponse, mask: Mask): boolean {
  const { method, url, headers } = req
  if (
    url !== '/heartbeat' ||
    headers.host === undefined ||
    !isHost(headers.host) ||
    (method !== 'GET' && method !== 'POST' && method !== 'HEAD')
  )
    return false
  res.setHeader('X-Request-Id', requestIdOf(req, mask))
  res.setHeader('Access-Control-Allow-Origin', '*')
  res.setHeader('Access-Control-Expose-Headers', 'X-Request-Id, Retry-After')
  answerHeartbeat(res)
  return true
}
