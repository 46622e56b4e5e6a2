import { systemCode, UploadError } from '../../errors.ts'
import { excerpt } from '../../http/client.ts'
import { explainNetwork } from '../../http/network.ts'
import type { Authentication } from './authenticate.ts'

/** SSH_DISCONNECT_TOO_MANY_CONNECTIONS (RFC 4253, section 11.1). */
const TOO_MANY_CONNECTIONS = 12

/** What was wrong while a connection was made. `server` stands for the server in the message. */
export function explainConnect(error: unknown, server: string, authentication: Authentication): UploadError {
  const { message, level, code } = detailsOf(error)
  const system = systemCode(error)
  const fail = (what: string, retryable: boolean) =>
    new UploadError('delivery_failed', `${server} ${what}.`, { cause: error, retryable })

  if (level === 'client-authentication') return fail(`let nobody in: ${authentication.explain()}`, false)
  if (system !== undefined) {
    return fail(`cannot be reached: ${explainNetwork(error)}`, system !== 'ENOTFOUND')
  }
  if (typeof code === 'number') {
    return fail(`closed the connection: ${excerpt(message)}`, code === TOO_MANY_CONNECTIONS)
  }
  if (level === 'handshake' || /ident/i.test(message)) {
    return fail(`speaks no SSH that is understood here: ${excerpt(message)}`, false)
  }
  return fail('closed the connection before the login was done', true)
}

/** Status codes of SFTP (draft-ietf-secsh-filexfer-02, section 7; those above 8 are of later drafts). */
const REASONS: Record<number, string> = {
  2: 'something on the way there is missing. Send it again',
  3: 'the user may not do that. Give it the permission, or set "directory" to a folder it may write to',
  4: 'the server does not say why; its log may',
  8: 'the server cannot do that',
  11: 'something of that name is in its place. Use another key or remove what is there',
  12: 'the file system is read-only',
}

const NO_SPACE = new Set([14, 15])

/** What a server answered to a request, for a client. `what` is a phrase such as `Storing "a.png"`. */
export function explainStatus(error: unknown, server: string, what: string): unknown {
  const { code, message } = detailsOf(error)
  if (error instanceof UploadError || typeof code !== 'number') return error
  if (NO_SPACE.has(code)) return noSpace(server, what, error)
  const reason = REASONS[code] ?? excerpt(message)
  return new UploadError('delivery_failed', `${what} failed: ${server} answered ${code}: ${reason}.`, {
    cause: error,
  })
}

export function noSpace(server: string, what: string, cause: unknown): UploadError {
  const message = `${what} failed: ${server} is full. Free some space there and send it again.`
  return new UploadError('insufficient_storage', message, { cause })
}

/** The status code of SFTP in an error, if it has one. */
export function statusOf(error: unknown): number | undefined {
  const { code } = detailsOf(error)
  return typeof code === 'number' ? code : undefined
}

function detailsOf(error: unknown): { message: string; level?: unknown; code?: unknown } {
  return error instanceof Error ? { ...error, message: error.message } : { message: String(error) }
}
