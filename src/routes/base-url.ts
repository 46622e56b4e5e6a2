import type { Request } from 'express'

const AUTHORITY = /^(?:[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?\.?|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i

/**
 * Address of this server as the caller sees it, with a final slash: `server.publicUrl`, else what the request was sent
 * to (through the proxies that are trusted), else where the server listens.
 */
export function baseUrlOf(req: Request, publicUrl: string | undefined, listenUrl: string): string {
  const host = req.host
  const protocol = req.protocol === 'https' ? 'https' : 'http' // a proxy may pass on what a client says
  const base = publicUrl ?? (host && AUTHORITY.test(host) ? `${protocol}://${host}` : listenUrl)
  return base.endsWith('/') ? base : `${base}/`
}
