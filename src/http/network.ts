import { systemCode } from '../errors.ts'

const REASONS: Readonly<Record<string, string>> = {
  ENOTFOUND: 'its name is unknown',
  EAI_AGAIN: 'its name could not be looked up',
  ECONNREFUSED: 'nothing listens there',
  ECONNRESET: 'it closed the connection',
  ECONNABORTED: 'it closed the connection',
  EPIPE: 'it closed the connection',
  ETIMEDOUT: 'it did not answer in time',
  EHOSTUNREACH: 'there is no way to it',
  ENETUNREACH: 'there is no way to it',
}

/** Why a server can't be reached, as the end of a sentence; undefined for an error that is none of the system's. */
export function explainNetwork(error: unknown): string | undefined {
  const code = systemCode(error)
  return code && (REASONS[code] ?? code)
}

/** Whether a failure of the way to a server may be over by the next attempt. */
export function isPassing(code: string | undefined): boolean {
  return code !== undefined && code !== 'ENOTFOUND' && Object.hasOwn(REASONS, code)
}

/** 507 and above: of web servers and proxies that are full or can't reach what is behind them. */
const PASSING_STATUSES = new Set([408, 425, 429, 500, 502, 503, 504, 507, 509, 520, 521, 522, 523, 524])

/** Whether a refusal may be over by the next attempt. */
export function isPassingStatus(status: number): boolean {
  return PASSING_STATUSES.has(status)
}

/** The code of an error, wherever in the chain of causes: the system's, or one of TLS such as `CERT_HAS_EXPIRED`. */
export function networkCodeOf(error: unknown): string {
  for (let e = error, depth = 0; e instanceof Error && depth < 5; e = e.cause, depth++) {
    if ('code' in e && typeof e.code === 'string') return e.code
  }
  return ''
}

/** Whether a code says that a certificate is refused. */
export function isUntrusted(code: string): boolean {
  return /CERT|SELF_SIGNED|^UNABLE_TO_|ALTNAME/.test(code)
}

/** Whether a code says that the other side speaks no TLS, or none that is understood here. */
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
