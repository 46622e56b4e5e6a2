import type { IncomingMessage, ServerResponse } from 'node:http'

/** What pages of any origin may send. Not `User-Agent`, which tells a desktop program from a browser (loopback.ts). */
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
 * Opens every answer to every origin, failures included, and answers preflights on every path. That is safe only
 * because the exemption from the key looks at the origin itself (access.ts).
 *
 * @param isTrustedOrigin origins that count as programs on this machine; these may send whatever they ask for, and reach
 *   this machine from a page of a public address
 * @returns whether the request was a preflight and has its answer
 */
export function createCors(
  isTrustedOrigin: (origin: string) => boolean,
): (req: IncomingMessage, res: ServerResponse) => boolean {
  return (req, res) => {
    res.setHeader('Access-Control-Allow-Origin', '*')
    if (req.method !== 'OPTIONS') {
      res.setHeader('Access-Control-Expose-Headers', 'X-Request-Id, Retry-After')
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

/** The header names in a list, without whatever is none. */
function namesIn(list = ''): string {
  return list
    .split(',')
    .map(name => name.trim())
    .filter(name => /^[\w!#$%&'*+.^`|~-]+$/.test(name))
    .join(', ')
}
