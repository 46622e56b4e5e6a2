import type { IncomingMessage } from 'node:http'
import { hideSignatures } from '../../mask.ts'
import { Problem } from '../../problem.ts'
import { connectionProblem, isTransientStatus, networkCodeOf } from '../network.ts'
import type { ProxyServer } from './address.ts'

/** Maximum length of a proxy's reason phrase, in characters. */
const WORDS = 80

/** Failure of a proxy that can't be reached or rejects a request. */
export class ProxyFailure extends Problem {}

/**
 * Returns the failure if a response comes from the proxy itself instead of from the server, as far as that can be detected:
 * servers never return 407, and other responses have the headers of RFC 9209, Squid or tinyproxy.
 */
export function ownRefusal(proxy: ProxyServer, answer: IncomingMessage): ProxyFailure | undefined {
  const { statusCode = 0, headers } = answer
  const isMarked =
    headers['x-squid-error'] !== undefined ||
    String(headers['proxy-status'] ?? '').includes('error=') ||
    String(headers['server'] ?? '').startsWith('tinyproxy')
  return statusCode === 407 || (statusCode >= 400 && isMarked) ? refusalOf(proxy, 'this', answer) : undefined
}

/** @param wanted what the proxy was asked to connect to */
export function refusalOf(
  { label, login }: ProxyServer,
  wanted: string,
  { statusCode: status = 0, statusMessage = '', headers }: IncomingMessage,
): ProxyFailure {
  const words = hideSignatures(statusMessage.replace(/[^\x20-\x7e]/g, ' ')).slice(0, WORDS)
  const fail = (what: string, advice?: string) =>
    new ProxyFailure(`the proxy "${label}" ${what} (${`${status} ${words}`.trim()})`, {
      advice,
      retryable: isTransientStatus(status),
    })
  if (status !== 407) return fail(`${status >= 500 ? 'could not forward' : 'refuses to forward'} ${wanted}`)
  if (!/\bbasic\b/i.test([headers['proxy-authenticate'] ?? 'Basic'].flat().join()))
    return fail('offers no supported authentication scheme', 'Allow Basic there.')
  return fail(
    login ? 'rejected the user name or password' : 'requires a user name and a password',
    'Check the URL of the proxy.',
  )
}

/** Explains why a connection to a proxy failed. Returns a failure that is explained already. */
export function explainReach({ label }: ProxyServer, error: unknown): Problem {
  if (error instanceof Problem) return error
  const problem = connectionProblem(error, `the proxy "${label}" can't be used`, {
    certificate: 'Add its CA certificate with network.caFile.',
    tls: 'Use http instead of https if the proxy does not use TLS.',
  })
  // Another protocol than HTTP stays another one.
  const retryable = problem.retryable && !networkCodeOf(error).startsWith('HPE_')
  return new ProxyFailure(problem.why, { advice: problem.advice, retryable, cause: error })
}
