import { systemCode } from '../errors.ts'
import { Problem } from '../problem.ts'
import { excerpt } from './excerpt.ts'

const REASONS: Readonly<Record<string, string>> = {
  ENOTFOUND: 'its hostname does not exist',
  EAI_AGAIN: 'its hostname could not be resolved',
  ECONNREFUSED: 'it refuses connections',
  ECONNRESET: 'it closed the connection',
  ECONNABORTED: 'it closed the connection',
  EPIPE: 'it closed the connection',
  ETIMEDOUT: 'it did not respond in time',
  EHOSTUNREACH: 'there is no route to it',
  ENETUNREACH: 'there is no route to it',
}

/** Explains why a server can't be reached, as the end of a sentence. Undefined for an error without a system code. */
export function explainNetwork(error: unknown): string | undefined {
  const code = systemCode(error)
  return code && (REASONS[code] ?? code)
}

/** Returns whether a network failure is transient. */
export function isTransient(code: string | undefined): boolean {
  return code !== undefined && code !== 'ENOTFOUND' && Object.hasOwn(REASONS, code)
}

/** 507 and above are statuses of web servers and proxies that are full or can't reach their upstream. */
const PASSING_STATUSES = new Set([408, 425, 429, 500, 502, 503, 504, 507, 509, 520, 521, 522, 523, 524])

/** Returns whether an error status is transient. */
export function isTransientStatus(status: number): boolean {
  return PASSING_STATUSES.has(status)
}

/** The code of an error, wherever in the chain of causes: the system's, or one of TLS such as `CERT_HAS_EXPIRED`. */
export function networkCodeOf(error: unknown): string {
  for (let e = error, depth = 0; e instanceof Error && depth < 5; e = e.cause, depth++) {
    if ('code' in e && typeof e.code === 'string') return e.code
  }
  return ''
}

/** Returns whether an error code means that a certificate is not trusted. */
export function isUntrusted(code: string): boolean {
  return /CERT|SELF_SIGNED|^UNABLE_TO_|ALTNAME/.test(code)
}

/** Returns whether an error code means that the TLS handshake failed. */
export function isNoTls(code: string): boolean {
  return code === 'EPROTO' || /^ERR_SSL/.test(code)
}

/** What to do about a failed connection, where the general advice does not fit. */
export interface ConnectionAdvice {
  readonly untrusted?: string
  readonly noTls?: string
}

/**
 * The problem of a connection that can't be opened or breaks. This is the only place that explains one.
 *
 * @param what the beginning of the sentence, such as `example.com can't be reached`
 */
export function connectionProblem(error: unknown, what: string, advice: ConnectionAdvice = {}): Problem {
  const code = networkCodeOf(error)
  const fail = (why: string, advice?: string, retryable = false) =>
    new Problem(`${what}: ${why}`, { advice, retryable, cause: error })
  if (isUntrusted(code))
    return fail(
      `its certificate is not trusted (${code})`,
      advice.untrusted ?? 'Set "caFile" if it is issued by your own CA.',
    )
  if (isNoTls(code))
    return fail(
      `the TLS handshake failed (${code})`,
      advice.noTls ?? 'Use http instead of https if the server does not use TLS.',
    )
  if (code.startsWith('HPE_')) return fail(`its response is not valid HTTP (${code})`, undefined, true)
  const why =
    explainNetwork(error) ?? (error instanceof Error ? excerpt(error.message) : 'the request failed')
  return fail(why, undefined, code !== 'ENOTFOUND')
}

/** Seconds, or an HTTP date (RFC 9110, section 10.2.3). */
export function parseRetryAfter(value: string | undefined): number | undefined {
  if (value === undefined) return undefined
  if (/^\s*\d+\s*$/.test(value)) return Number(value)
  const time = Date.parse(value)
  return Number.isNaN(time) ? undefined : Math.max(0, Math.ceil((time - Date.now()) / 1000))
}
