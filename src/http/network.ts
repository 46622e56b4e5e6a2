import { systemCode } from '../errors.ts'

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

/** Seconds, or an HTTP date (RFC 9110, section 10.2.3). */
export function parseRetryAfter(value: string | undefined): number | undefined {
  if (value === undefined) return undefined
  if (/^\s*\d+\s*$/.test(value)) return Number(value)
  const time = Date.parse(value)
  return Number.isNaN(time) ? undefined : Math.max(0, Math.ceil((time - Date.now()) / 1000))
}
