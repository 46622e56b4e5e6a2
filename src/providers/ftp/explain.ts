import { systemCode, UploadError } from '../../errors.ts'
import { excerpt } from '../../http/client.ts'
import { explainNetwork, isNoTls, isUntrusted, networkCodeOf } from '../../http/network.ts'

/** Explains an error to a client. `what` is a phrase such as `Storing "a.png"`. */
export type Explain = (error: unknown, what: string) => unknown

/** Advice for reply codes of FTP (RFC 959, section 4.2) that have a specific reason. */
const HINTS: Record<number, string> = {
  421: 'too many connections',
  430: 'the user name or password is wrong',
  530: 'the user name or password is wrong, or the account may not log in this way',
  550: 'the file or folder does not exist, is blocked by another file, or is not writable for the user',
  553: 'the server does not accept this file name',
}

/** File name not allowed. */
const NOT_ALLOWED = 553
const NO_SPACE = new Set([452, 552])

const NOT_ATOMIC = 'set "atomic" to false'
/** Possible reasons for a refusal to store a file with a temporary name, in addition. */
const ATOMIC_HINTS: Record<number, string> = {
  500: `the server may be unable to rename files; then ${NOT_ATOMIC}`,
  502: `the server may be unable to rename files; then ${NOT_ATOMIC}`,
  504: `the server may be unable to rename files; then ${NOT_ATOMIC}`,
  550: `it may allow no names with a leading dot; then ${NOT_ATOMIC}`,
  553: `it may allow no names with a leading dot; then ${NOT_ATOMIC}`,
}

/**
 * @param server name of the server in messages
 * @param secret password, which is masked because servers may repeat it
 * @param atomic whether files are stored with a temporary name
 */
export function createExplain(server: string, secret: string, atomic: boolean): Explain {
  const fail = (what: string, cause: unknown, retryable: boolean) =>
    new UploadError('destination_failed', `${server} ${what}.`, { cause, retryable })

  return (error, what) => {
    if (error instanceof UploadError || !(error instanceof Error)) return error
    const code = replyCode(error)
    if (code !== undefined) {
      const reply = excerpt(error.message.replaceAll(secret, '***'))
      const isStoring = atomic && what.startsWith('Storing')
      const hints = [HINTS[code], isStoring ? ATOMIC_HINTS[code] : undefined].filter(Boolean).join('; ')
      const message = `${what} failed: ${server} returned ${reply}${hints && ` (${hints})`}.`
      if (NO_SPACE.has(code)) return new UploadError('insufficient_storage', message, { cause: error })
      // 4xx is a transient failure, 5xx a permanent one (RFC 959, section 4.2.1). Some servers return 5xx for a broken connection.
      const retryable = code < 500 || (code !== NOT_ALLOWED && systemCode(error) !== undefined)
      return new UploadError('destination_failed', message, { cause: error, retryable })
    }
    const tls = networkCodeOf(error)
    if (isUntrusted(tls)) {
      return fail(`has a certificate that is not trusted (${tls}); check "caFile"`, error, false)
    }
    if (isNoTls(tls)) {
      return fail(`failed the TLS handshake (${tls}); check "secure"`, error, false)
    }
    const reason = explainNetwork(error) ?? excerpt(error.message.replaceAll(secret, '***'))
    return fail(
      `can't be reached, or closed the connection: ${reason}`,
      error,
      systemCode(error) !== 'ENOTFOUND',
    )
  }
}

/** Returns the reply code with which a server rejected a command. Undefined for other errors. */
export function replyCode(error: unknown): number | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'number' ? error.code : undefined
}
