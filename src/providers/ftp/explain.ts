import { systemCode } from '../../errors.ts'
import { excerpt } from '../../http/excerpt.ts'
import { connectionProblem } from '../../http/network.ts'
import { Problem } from '../../problem.ts'
import { responseCode } from '../shared/file-tree.ts'

/** Meanings of reply codes of FTP (RFC 959, section 4.2) that have a specific reason. */
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

/** Reply codes that may reject the temporary name, or the renaming. */
const MAY_NEED_NO_RENAMING = new Set([500, 502, 504, 550, 553])
const NO_RENAMING =
  'If the server can\'t rename files, or allows no names with a leading dot, set "atomic" to false.'

/**
 * Explains an error.
 *
 * @param server name of the server in messages
 * @param mask hides the password, which servers may repeat
 * @param isRenamed whether a file was stored under a temporary name
 */
export function explainFtp(
  error: unknown,
  server: string,
  mask: (text: string) => string,
  isRenamed: boolean,
): unknown {
  if (error instanceof Problem || !(error instanceof Error)) return error
  const code = responseCode(error)
  if (code === undefined)
    return connectionProblem(error, `${server} can't be reached, or closed the connection`, {
      certificate: 'Check "caFile".',
      tls: 'Check "secure".',
    })
  const meaning = HINTS[code]
  // 4xx is a transient failure, 5xx a permanent one (RFC 959, section 4.2.1). Some servers return 5xx for a broken connection.
  const retryable = code < 500 || (code !== NOT_ALLOWED && systemCode(error) !== undefined)
  const isFull = NO_SPACE.has(code)
  const why = `${server} returned ${excerpt(mask(error.message))}`
  return new Problem(meaning ? `${why} (${meaning})` : why, {
    ...(isRenamed && MAY_NEED_NO_RENAMING.has(code) && { advice: NO_RENAMING }),
    ...(isFull && { code: 'insufficient_storage' }),
    cause: error,
    retryable: retryable && !isFull,
  })
}
