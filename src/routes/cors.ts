import type { IncomingMessage, ServerResponse } from 'node:http'

/** Headers that pages of any origin may send. Without `User-Agent`, by which loopback.ts recognises desktop programs. */
const HEADERS = [
  'accept',
  'accept-language',
  'authorization',
  'cache-control',
  'content-type',
  'idempotency-key',
  'x-picgo-secret',
  'x-request-id',
  'x-requested-with',
  'x-upload-key',
].join(', ')

/**
 * Allows every origin to read every response, failures included, and responds to preflights on every path. That is safe
 * because access.ts checks the origin before it grants the loopback exemption.
 *
 * @param isTrustedOrigin whether an origin is treated as a local client. Such pages may send any header, and may reach
 *   this machine from a page with a public IP address
 * @returns whether the request was a preflight and has been responded to
 */
export function createCors(
  isTrustedOrigin: (origin: string) => boolean,
): (req: IncomingMessage, res: ServerResponse) => boolean {
  return (req, res) => {
    res.setHeader('Access-Control-Allow-Origin', '*')
    if (req.method !== 'OPTIONS') {
      res.setHeader('Access-Control-Expose-Headers', 'X-Request-Id, Retry-After, RateLimit, RateLimit-Policy')
      return false
    }
    const isTrusted = isTrustedOrigin(req.headers.origin ?? '')
    const allowed = isTrusted ? namesIn(req.headers['access-control-request-headers']) : HEADERS
    res.setHeader('Access-Control-Allow-Methods', 'GET, HEAD, POST, PUT, OPTIONS')
    if (allowed !== '') res.setHeader('Access-Control-Allow-Headers', allowed)
    if (isTrusted) res.setHeader('Access-Control-Allow-Private-Network', 'true')
    res.setHeader('Access-Control-Max-Age', '600')
    res.setHeader('Vary', 'Origin, Access-Control-Request-Headers')
    res.statusCode = 204
    res.end()
    return true
  }
}

/** The valid header names in a list. */
function namesIn(list = ''): string {
  return list
    .split(',')
    .map(name => name.trim())
    .filter(name => /^[\w!#$%&'*+.^`|~-]+$/.test(name))
    .join(', ')
}
