import type { IncomingMessage } from 'node:http'
import { UploadError } from '../../errors.ts'
import { hideSignatures } from '../../mask.ts'
import { explainNetwork, isNoTls, isTransientStatus, isUntrusted, networkCodeOf } from '../network.ts'
import type { ProxyServer } from './address.ts'

/** Maximum length of a proxy's reason phrase, in characters. */
const WORDS = 80

/** Failure of a proxy that can't be reached or rejects a request. The message contains its URL and is the end of a sentence. */
export class ProxyFailure extends UploadError {
  constructor(message: string, options: { cause?: unknown; retryable?: boolean } = {}) {
    super('destination_failed', message, options)
    this.name = 'ProxyFailure'
  }
}

/** Makes the whole sentence about a server that can't be reached. Returns any other error unchanged. */
export function explainProxy(error: unknown, server: string): unknown {
  if (!(error instanceof ProxyFailure)) return error
  const { message, retryable } = error
  return new UploadError('destination_failed', `${server} can't be reached: ${message}.`, {
    cause: error,
    retryable,
  })
}

type ProxyReply = Pick<IncomingMessage, 'statusCode' | 'statusMessage' | 'headers'>

/**
 * Returns the failure if a response comes from the proxy itself instead of from the server, as far as that can be detected:
 * servers never return 407, and other responses have the headers of RFC 9209, Squid or tinyproxy.
 */
export function ownRefusal(proxy: ProxyServer, answer: ProxyReply): ProxyFailure | undefined {
  const { statusCode = 0, headers } = answer
  const isMarked =
    headers['x-squid-error'] !== undefined ||
    String(headers['proxy-status'] ?? '').includes('error=') ||
    String(headers['server'] ?? '').startsWith('tinyproxy')
  return statusCode === 407 || (statusCode >= 400 && isMarked) ? refusalOf(proxy, 'this', answer) : undefined
}

/** @param wanted what the proxy was asked to connect to */
export function refusalOf({ label, login }: ProxyServer, wanted: string, answer: ProxyReply): ProxyFailure {
  const { statusCode: status = 0, statusMessage = '', headers } = answer
  const words = hideSignatures(statusMessage.replace(/[^\x20-\x7e]/g, ' '))
  const said = `${status} ${words.slice(0, WORDS)}`.trim()
  const fail = (what: string) =>
    new ProxyFailure(`the proxy "${label}" ${what} (${said})`, { retryable: isTransientStatus(status) })
  if (status !== 407) return fail(`${status >= 500 ? 'could not forward' : 'refuses to forward'} ${wanted}`)
  const logins = [headers['proxy-authenticate'] ?? 'Basic'].flat().join()
  if (!/\bbasic\b/i.test(logins)) return fail('offers no supported authentication scheme; allow Basic there')
  return fail(login ? 'rejected the user name or password' : 'requires a user name and a password')
}

/** Explains why a connection to a proxy failed. Returns a failure that is explained already. */
export function explainReach({ label }: ProxyServer, error: unknown): UploadError {
  if (error instanceof UploadError) return error
  const code = networkCodeOf(error)
  const reason = isUntrusted(code)
    ? `its certificate is not trusted (${code}); add its CA certificate with network.caFile`
    : isNoTls(code)
      ? `the TLS handshake failed (${code}); use http instead of https if the proxy does not use TLS`
      : (explainNetwork(error) ?? 'it uses another protocol')
  return new ProxyFailure(`the proxy "${label}" can't be used: ${reason}`, {
    cause: error,
    retryable: code !== 'ENOTFOUND' && !isUntrusted(code) && !isNoTls(code) && !code.startsWith('HPE_'),
  })
}
