import type { IncomingMessage } from 'node:http'
import { UploadError } from '../../errors.ts'
import { explainNetwork, isNoTls, isPassingStatus, isUntrusted, networkCodeOf } from '../network.ts'
import type { ProxyServer } from './address.ts'

/** Most characters of a proxy's own words. */
const WORDS = 80

/** A proxy that can't be reached, or does not let through. The message names it, and is the end of a sentence. */
export class ProxyFailure extends UploadError {
  constructor(message: string, options: { cause?: unknown; retryable?: boolean } = {}) {
    super('delivery_failed', message, options)
    this.name = 'ProxyFailure'
  }
}

/** The whole sentence, about a server that was not reached. Every other error comes back as it is. */
export function explainProxy(error: unknown, server: string): unknown {
  if (!(error instanceof ProxyFailure)) return error
  const { message, retryable } = error
  return new UploadError('delivery_failed', `${server} was not reached: ${message}.`, {
    cause: error,
    retryable,
  })
}

type Answer = Pick<IncomingMessage, 'statusCode' | 'statusMessage' | 'headers'>

/**
 * What a proxy itself answered to a request that it should have passed on, as far as that can be told: servers never say
 * 407, and the rest has the marks of RFC 9209, Squid or tinyproxy.
 */
export function ownRefusal(proxy: ProxyServer, answer: Answer): ProxyFailure | undefined {
  const { statusCode = 0, headers } = answer
  const isMarked =
    headers['x-squid-error'] !== undefined ||
    String(headers['proxy-status'] ?? '').includes('error=') ||
    String(headers['server'] ?? '').startsWith('tinyproxy')
  return statusCode === 407 || (statusCode >= 400 && isMarked) ? refusalOf(proxy, 'this', answer) : undefined
}

/** @param wanted what the proxy was asked for */
export function refusalOf({ label, login }: ProxyServer, wanted: string, answer: Answer): ProxyFailure {
  const { statusCode: status = 0, statusMessage = '', headers } = answer
  const said = `${status} ${statusMessage.replace(/[^\x20-\x7e]/g, ' ').slice(0, WORDS)}`.trim()
  const fail = (what: string) =>
    new ProxyFailure(`the proxy "${label}" ${what} (${said})`, { retryable: isPassingStatus(status) })
  if (status !== 407) return fail(`${status >= 500 ? 'could not pass on' : 'refuses to pass on'} ${wanted}`)
  const logins = [headers['proxy-authenticate'] ?? 'Basic'].flat().join()
  if (!/\bbasic\b/i.test(logins))
    return fail('takes only logins of a kind that is not spoken here; allow Basic there')
  return fail(login ? 'refuses the user name or the password' : 'wants a user name and a password')
}

/** Why a proxy can't be talked to. */
export function explainReach({ label }: ProxyServer, error: unknown): ProxyFailure {
  if (error instanceof ProxyFailure) return error
  const code = networkCodeOf(error)
  const reason = isUntrusted(code)
    ? `its certificate is not trusted (${code}); name its authority with network.caFile`
    : isNoTls(code)
      ? `it speaks no TLS (${code}); write http if that is meant`
      : (explainNetwork(error) ?? 'it speaks another protocol')
  return new ProxyFailure(`the proxy "${label}" can't be used: ${reason}`, {
    cause: error,
    retryable: code !== 'ENOTFOUND' && !isUntrusted(code) && !isNoTls(code) && !code.startsWith('HPE_'),
  })
}
