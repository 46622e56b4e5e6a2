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

/** The error of a server that does not respond in time. */
export const timeoutError = () =>
  Object.assign(new Error('no response within the time limit'), { code: 'ETIMEDOUT' })

/** What to do about a failed connection, by its code, or by its kind: `certificate` or `tls`. */
export type ConnectionAdvice = Readonly<Record<string, string>>

/** Failures that have many codes. */
const KINDS: readonly [codes: RegExp, why: string, kind?: string, advice?: string][] = [
  [
    /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    'its certificate is for another hostname',
    'certificate',
    'Check the hostname.',
  ],
  [
    /CERT|SELF_SIGNED|^UNABLE_TO_/,
    'its certificate is not trusted',
    'certificate',
    'Set "caFile" if it is issued by your own CA.',
  ],
  [
    /^EPROTO$|^ERR_(?:SSL|TLS)/,
    'the TLS handshake failed',
    'tls',
    'Use http instead of https if the server does not use TLS.',
  ],
  [/^HPE_HEADER_OVERFLOW$/, 'its response headers are too long'],
  [/^HPE_/, 'its response is not valid HTTP'],
  [/PREMATURE_CLOSE$/, 'it closed the connection before the response was complete'],
  [/^Z_|ZLIB|BROTLI|^ERR_?_ERROR_/, 'its response could not be decompressed'],
]

/**
 * The problem of a connection that can't be opened or breaks. This is the only place that explains one.
 *
 * @param what the beginning of the sentence, such as `example.com can't be reached`
 */
export function connectionProblem(error: unknown, what: string, advice: ConnectionAdvice = {}): Problem {
  const code = networkCodeOf(error)
  const [, why, kind, general] = KINDS.find(([codes]) => codes.test(code)) ?? []
  const other =
    explainNetwork(error) ?? (error instanceof Error ? excerpt(error.message) : 'the request failed')
  return new Problem(`${what}: ${why ? `${why} (${code})` : other}`, {
    advice: advice[code] ?? (kind && advice[kind]) ?? general,
    retryable: kind === undefined && code !== 'ENOTFOUND',
    cause: error,
  })
}

/** Seconds, or an HTTP date (RFC 9110, section 10.2.3). */
export function parseRetryAfter(value: string | undefined): number | undefined {
  if (value === undefined) return undefined
  if (/^\s*\d+\s*$/.test(value)) return Number(value)
  const time = Date.parse(value)
  return Number.isNaN(time) ? undefined : Math.max(0, Math.ceil((time - Date.now()) / 1000))
}
