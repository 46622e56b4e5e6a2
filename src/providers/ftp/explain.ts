import { systemCode } from '../../errors.ts'
import { excerpt } from '../../http/excerpt.ts'
import { connectionProblem } from '../../http/network.ts'
import { Problem } from '../../problem.ts'
import { type Causes, causeOf, FULL } from '../shared/causes.ts'
import { responseCode } from '../shared/file-tree.ts'

const WRONG_LOGIN = 'the user name or password is wrong'

/** Causes by reply code (RFC 959, section 4.2). */
const CAUSES: Causes = {
  421: { why: 'too many connections' },
  430: { why: WRONG_LOGIN, retryable: false },
  452: FULL,
  530: { why: `${WRONG_LOGIN}, or the account may not log in this way` },
  550: {
    why: 'the file or folder does not exist, is blocked by another file, or is not writable for the user',
  },
  552: FULL,
  553: { why: 'the server does not accept this file name', retryable: false },
}

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
  const { why, ...cause } = causeOf(CAUSES, code)
  const said = `${server} returned ${excerpt(mask(error.message))}`
  return new Problem(why === undefined ? said : `${said} (${why})`, {
    ...(isRenamed && MAY_NEED_NO_RENAMING.has(code) && { advice: NO_RENAMING }),
    // 4xx is a transient failure, 5xx a permanent one. Some servers return 5xx for a broken connection.
    retryable: code < 500 || systemCode(error) !== undefined,
    ...cause,
    cause: error,
  })
}
