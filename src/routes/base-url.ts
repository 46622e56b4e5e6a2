import type { Request } from 'express'
import { UploadError } from '../errors.ts'
import { isHost } from './host.ts'

/** The URL of this server as the client of a request sees it, with a trailing slash. */
export type BaseUrl = (req: Request) => string

export interface BaseUrlSettings {
  readonly publicUrl?: string | undefined
  /** URL the server listens on. Known when the first request arrives. */
  listenUrl(): string
}

/**
 * `server.publicUrl`, or else the URL of the request (as trusted proxies report it), or else the URL the server listens on. The
 * function throws UploadError `invalid_request` if a trusted proxy reports an invalid host. app.ts has checked `Host` itself.
 */
export function createBaseUrl({ publicUrl, listenUrl }: BaseUrlSettings): BaseUrl {
  return ({ host, protocol }) => {
    const scheme = protocol.toLowerCase() === 'https' ? 'https' : 'http' // a proxy may pass on what a client says
    if (publicUrl === undefined && host && !isHost(host)) throw badHost()
    const base = publicUrl ?? (host ? `${scheme}://${host}` : listenUrl())
    return base.endsWith('/') ? base : `${base}/`
  }
}

function badHost(): UploadError {
  return new UploadError(
    'invalid_request',
    'The "X-Forwarded-Host" header of the reverse proxy is not a valid host. Correct it in the proxy, or set "server.publicUrl".',
  )
}
