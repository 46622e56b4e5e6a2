import type { ServerResponse } from 'node:http'

/** Response of each health check. One client requests `/health` before every upload. */
export type Probe = '/heartbeat' | '/health'

const BODIES: Readonly<Record<Probe, string>> = {
  '/heartbeat': '{"success":true,"result":"alive"}',
  '/health': '{"success":true,"status":"ok"}',
}

/** Says that the server is reachable, and nothing about destinations. Asks no key and reads no body. */
export function answerProbe(probe: Probe, res: ServerResponse): void {
  const body = BODIES[probe]
  res.setHeader('Content-Type', 'application/json; charset=utf-8')
  res.setHeader('Content-Length', body.length)
  res.end(body)
}
