import { systemCode } from '../errors.ts'
import { Problem } from '../problem.ts'
import { excerpt } from './excerpt.ts'

/** `name` and `unsent`: nothing was sent. `name`, `certificate` and `tls`: it would fail again. */
type Kind = 'name' | 'unsent' | 'broken' | 'certificate' | 'tls' | 'http'

const TRUST_ADVICE = 'Set "caFile" if it is issued by your own CA.'
const TLS_ADVICE = 'Use http instead of https if the server does not use TLS.'

/** Why a connection can't be opened or breaks, by code. No other table has these reasons. The first row counts. */
const FAILURES: readonly [codes: RegExp, kind: Kind, why: string, advice?: string][] = [
  [/^ENOTFOUND$/, 'name', 'its hostname does not exist'],
  [/^EAI_AGAIN$/, 'unsent', 'its hostname could not be resolved'],
  [/^ECONNREFUSED$/, 'unsent', 'it refuses connections'],
  [/^E(?:HOST|NET)UNREACH$/, 'unsent', 'there is no route to it'],
  [/^(?:ECONNRESET|ECONNABORTED|EPIPE)$/, 'broken', 'it closed the connection'],
  [/PREMATURE_CLOSE$/, 'broken', 'it closed the connection before the response was complete'],
  [/^ETIMEDOUT$/, 'broken', 'it did not respond in time'],
  [/CERT_ALTNAME/, 'certificate', 'its certificate is for another hostname', 'Check the hostname.'],
  [/CERT|SELF_SIGNED|^UNABLE_TO_/, 'certificate', 'its certificate is not trusted', TRUST_ADVICE],
  [/^EPROTO$|^ERR_(?:SSL|TLS)/, 'tls', 'the TLS handshake failed', TLS_ADVICE],
  [/^HPE_HEADER_OVERFLOW$/, 'http', 'its response headers are too long'],
  [/^HPE_/, 'http', 'its response is not valid HTTP'],
  [/^Z_|ZLIB|BROTLI|^ERR_?_ERROR_/, 'http', 'its response could not be decompressed'],
]

/** The code of an error, wherever in the chain of causes: the system's, or one of TLS such as `CERT_HAS_EXPIRED`. */
export function networkCodeOf(error: unknown): string {
  for (let e = error, depth = 0; e instanceof Error && depth < 5; e = e.cause, depth++) {
    if ('code' in e && typeof e.code === 'string') return e.code
  }
  return ''
}

function failureOf(error: unknown) {
  const find = (code = '') => FAILURES.find(([codes]) => codes.test(code))
  const [, kind, why, advice] = find(networkCodeOf(error)) ?? find(systemCode(error)) ?? []
  return { kind, why, advice }
}

/** Explains why a server can't be reached, as the end of a sentence. Undefined for an error without a known code. */
export function explainNetwork(error: unknown): string | undefined {
  return failureOf(error).why ?? systemCode(error)
}

/** Returns whether an error is a failure of the network that may not last. */
export function isTransient(error: unknown): boolean {
  return ['unsent', 'broken'].includes(failureOf(error).kind ?? '')
}

/** Returns whether a connection failed before anything was sent. */
export function isUnsent(error: unknown): boolean {
  return ['name', 'unsent'].includes(failureOf(error).kind ?? '')
}

/** The error of a server that does not respond in time. */
export const timeoutError = () =>
  Object.assign(new Error('no response within the time limit'), { code: 'ETIMEDOUT' })

/** What to do about a failed connection, by its code, or by its kind: `certificate` or `tls`. */
export type ConnectionAdvice = Readonly<Record<string, string>>

/**
 * The problem of a connection that can't be opened or breaks. This is the only place that explains one.
 *
 * @param what the beginning of the sentence, such as `example.com can't be reached`
 */
export function connectionProblem(error: unknown, what: string, advice: ConnectionAdvice = {}): Problem {
  const code = networkCodeOf(error)
  const { kind = 'broken', advice: usual } = failureOf(error)
  const why =
    explainNetwork(error) ?? (error instanceof Error ? excerpt(error.message) : 'the request failed')
  const shown = ['certificate', 'tls', 'http'].includes(kind) ? ` (${code})` : ''
  return new Problem(`${what}: ${why}${shown}`, {
    advice: advice[code] ?? advice[kind] ?? usual,
    retryable: !['name', 'certificate', 'tls'].includes(kind),
    cause: error,
  })
}

/** 507 and above are statuses of web servers and proxies that are full or can't reach their upstream. */
const PASSING_STATUSES = new Set([408, 425, 429, 500, 502, 503, 504, 507, 509, 520, 521, 522, 523, 524])

/** Returns whether an error status is transient. */
export function isTransientStatus(status: number): boolean {
  return PASSING_STATUSES.has(status)
}

/** Seconds, or an HTTP date (RFC 9110, section 10.2.3). */
export function parseRetryAfter(value: string | undefined): number | undefined {
  if (value === undefined) return undefined
  if (/^\s*\d+\s*$/.test(value)) return Number(value)
  const time = Date.parse(value)
  return Number.isNaN(time) ? undefined : Math.max(0, Math.ceil((time - Date.now()) / 1000))
}
