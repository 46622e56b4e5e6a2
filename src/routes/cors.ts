import type { IncomingMessage, ServerResponse } from 'node:http'

/**
 * Opens every answer to every origin, failures included, and answers preflights on every path. That is safe only
 * because the exemption from the key looks at the origin itself (access.ts).
 *
 * @param isTrustedOrigin origins that count as programs on this machine; only these may set `User-Agent`, which tells
 *   a desktop program from a browser
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
    const asked = (req.headers['access-control-request-headers'] ?? '')
      .split(',')
      .map(name => name.trim())
      .filter(name => /^[\w!#$%&'*+.^`|~-]+$/.test(name))
    const trusted = isTrustedOrigin(req.headers.origin ?? '')
    const allowed = asked.filter(name => trusted || name.toLowerCase() !== 'user-agent')
    res.setHeader('Access-Control-Allow-Methods', 'GET, HEAD, POST, PUT, OPTIONS')
    if (allowed.length > 0) res.setHeader('Access-Control-Allow-Headers', allowed.join(', '))
    res.setHeader('Access-Control-Allow-Private-Network', 'true')
    res.setHeader('Access-Control-Max-Age', '600')
    res.setHeader('Vary', 'Origin, Access-Control-Request-Headers')
    res.statusCode = 204
    res.end()
    return true
  }
}
