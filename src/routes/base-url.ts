import type { Request } from 'express'
import { UploadError } from '../errors.ts'
import { isHost } from './host.ts'

/**
 * Address of this server as the caller sees it, with a final slash: `server.publicUrl`, else what the request was sent
 * to (through the proxies that are trusted), else where the server listens.
 *
 * @throws UploadError `invalid_request` when a trusted proxy names no host; `Host` itself has been looked at (app.ts)
 */
export function baseUrlOf(req: Request, publicUrl: string | undefined, listenUrl: string): string {
  const base = publicUrl ?? (req.host ? `${protocolOf(req)}://${checkHost(req.host)}` : listenUrl)
  return base.endsWith('/') ? base : `${base}/`
}

function protocolOf(req: Request): string {
  return req.protocol.toLowerCase() === 'https' ? 'https' : 'http' // a proxy may pass on what a client says
}

function checkHost(host: string): string {
  if (isHost(host)) return host
  throw new UploadError(
    'invalid_request',
    'The proxy\'s "X-Forwarded-Host" header names no host. Have the proxy send the one that was asked for, or set "server.publicUrl".',
  )
}
