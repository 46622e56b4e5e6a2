import { systemCode } from '../../errors.ts'
import { excerpt } from '../../http/excerpt.ts'
import { connectionProblem } from '../../http/network.ts'
import { Problem } from '../../problem.ts'
import { type Causes, causeOf, FULL } from '../shared/causes.ts'
import type { Authentication } from './authenticate.ts'

/** SSH_DISCONNECT_TOO_MANY_CONNECTIONS (RFC 4253, section 11.1). */
const TOO_MANY_CONNECTIONS = 12

/** Explains a failed connection. `server` is the name of the server in the message. */
export function explainConnect(error: unknown, server: string, authentication: Authentication): Problem {
  if (error instanceof Problem) return error
  const { message, level, code } = detailsOf(error)
  const fail = (why: string, retryable: boolean) =>
    new Problem(`${server} ${why}`, { cause: error, retryable })
  if (level === 'client-authentication') return fail(`rejected the login: ${authentication.explain()}`, false)
  if (systemCode(error) !== undefined) return connectionProblem(error, `${server} can't be reached`)
  if (typeof code === 'number')
    return fail(`closed the connection: ${excerpt(message)}`, code === TOO_MANY_CONNECTIONS)
  if (level === 'handshake' || /ident/i.test(message))
    return fail(`is not a compatible SSH server: ${excerpt(message)}`, false)
  return fail('closed the connection before the login was complete', true)
}

/** Status codes of SFTP (draft-ietf-secsh-filexfer-02, section 7). Codes above 8 are from later drafts. */
const CAUSES: Causes = {
  2: { why: 'the file or a folder of its path does not exist', advice: 'Try again.' },
  3: {
    why: 'permission denied',
    advice: 'Give the user write access, or set "directory" to a folder that is writable for it.',
  },
  4: { why: 'the server did not give a reason', advice: 'Check its log, and the free space on its disk.' },
  8: { why: 'the server does not support the operation' },
  11: {
    why: 'a file or folder with this name already exists',
    advice: 'Use another object key, or remove it.',
  },
  12: {
    why: 'the file system is read-only',
    advice: 'Make it writable, or set "directory" to another folder.',
  },
  14: { why: 'no space left', ...FULL },
  15: { why: 'no space left: the quota is exceeded', ...FULL },
}

/** Explains an error response. */
export function explainStatus(error: unknown, server: string): unknown {
  const { code, message } = detailsOf(error)
  if (error instanceof Problem || typeof code !== 'number') return error
  const { why = excerpt(message), ...cause } = causeOf(CAUSES, code)
  return new Problem(`${server} returned ${code}: ${why}`, { ...cause, cause: error })
}

function detailsOf(error: unknown): { message: string; level?: unknown; code?: unknown } {
  return error instanceof Error ? { ...error, message: error.message } : { message: String(error) }
}
