import { retry, type Transience } from '../../flow/retry.ts'
import { INTERRUPTION } from '../result.ts'
import type { UploadEvents } from '../uploads.ts'
import type { Connection, RequestOutcome, ServerRequest } from './connection.ts'

export interface RetryOptions extends Pick<UploadEvents, 'onNotice'> {
  /** How long transient failures are retried, milliseconds. 0: they are not retried. */
  readonly retryFor: number
  /** Whether to wait for a server that has not started yet. */
  readonly wait: boolean
}

/** A failure that may be retried. */
class FailedRequest extends Error {
  readonly reply: RequestOutcome

  constructor(reply: RequestOutcome) {
    super(reply.message)
    this.reply = reply
  }
}

/**
 * Retries requests until they succeed, fail permanently, or the time is over. The time starts at the first failure of a
 * request, or at the first failure of any request since the last response: when the server is down, all requests share one
 * time limit.
 *
 * @returns sends one request with an Idempotency-Key, so that a repetition stores nothing twice
 */
export function createRetries(
  connection: Connection,
  { retryFor, wait, onNotice }: RetryOptions,
): (request: ServerRequest, key: string, signal: AbortSignal) => Promise<RequestOutcome> {
  const span = retryFor % 60_000 === 0 ? `${retryFor / 60_000} min` : `${retryFor / 1000} s`
  let failingSince: number | undefined
  let hasAnswered = false
  /** The outcome of all later requests, once it is clear that they would fail, too. */
  let final: RequestOutcome | undefined
  const transienceOf = ({ transient, isAbsent }: RequestOutcome): Transience | false =>
    isAbsent && !hasAnswered ? wait && { retryAfterS: undefined } : (transient ?? false)

  return async (request, key, signal) => {
    let ownSince: number | undefined
    const since = () => Math.min(ownSince ?? Infinity, failingSince ?? Infinity)
    const work = async () => {
      if (final) return final
      const begun = performance.now()
      const headers = { 'Idempotency-Key': key }
      const reply = await connection.post({ ...request, headers }, signal, onNotice)
      if (reply.status !== undefined) hasAnswered = true
      const isPermanent = reply.transient === undefined
      if (reply.code === 'unauthorized' || (reply.code === 'no_token' && isPermanent)) final = reply
      if (isPermanent && !reply.isAbsent) {
        failingSince = undefined
        return reply
      }
      // A server that sent nothing has been unresponsive since the request began.
      const since = reply.isSilent ? begun : performance.now()
      const isAgain = performance.now() - since < retryFor
      if (failingSince === undefined && isAgain && transienceOf(reply))
        onNotice?.(`${reply.message?.replace(/\.$/, '')}. Retrying for up to ${span}.`)
      failingSince ??= since
      ownSince ??= since
      throw new FailedRequest(reply)
    }
    const policy = {
      attempts: Infinity,
      transient: (error: unknown) => error instanceof FailedRequest && transienceOf(error.reply),
      leftMs: () => retryFor - (performance.now() - since()),
      isTriedAtEnd: true,
    }
    try {
      return await retry(work, policy, signal)
    } catch (error) {
      if (signal.aborted) return { outcomes: [], message: INTERRUPTION, code: 'interrupted' }
      if (!(error instanceof FailedRequest)) throw error
      // If the server responds to other requests, only this request is at fault.
      if (['unreachable', 'no_token'].includes(error.reply.code ?? '') && failingSince !== undefined)
        final = error.reply
      return error.reply
    }
  }
}
