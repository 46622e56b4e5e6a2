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

/**
 * Sends one request with an Idempotency-Key, so that a repetition stores nothing twice. Never throws.
 *
 * @param attempts at most. Default: no limit but the time
 */
export type Post = (
  request: ServerRequest,
  key: string,
  signal: AbortSignal,
  attempts?: number,
) => Promise<RequestOutcome>

/** A transient failure. */
class FailedRequest extends Error {
  readonly reply: RequestOutcome
  readonly transient: Transience

  constructor(reply: RequestOutcome, transient: Transience) {
    super(reply.message)
    this.reply = reply
    this.transient = transient
  }
}

/** Retries requests until they succeed, fail permanently, or have failed for too long. */
export function createRetries(connection: Connection, { retryFor, wait, onNotice }: RetryOptions): Post {
  const span = retryFor % 60_000 === 0 ? `${retryFor / 60_000} min` : `${retryFor / 1000} s`
  let hasAnswered = false
  /** Whether requests have failed, and none has succeeded since. */
  let isDown = false
  /** The outcome of all later requests, once it is clear that they would fail, too. */
  let final: RequestOutcome | undefined

  return async (request, key, signal, attempts = Infinity) => {
    let failingSince: number | undefined
    const leftMs = () => retryFor - (performance.now() - (failingSince ?? Infinity))

    async function attempt(): Promise<RequestOutcome> {
      if (final) return final
      const begun = performance.now()
      const headers = { 'Idempotency-Key': key }
      const reply = await connection.post({ ...request, headers }, signal, onNotice)
      hasAnswered ||= reply.status !== undefined
      const transient = reply.isAbsent && !hasAnswered ? wait && { retryAfterS: undefined } : reply.transient
      if (!transient) {
        // Each further request with a wrong key would bring the client closer to being locked out.
        if (reply.isAbsent || ['unauthorized', 'no_token'].includes(reply.code ?? '')) final = reply
        isDown = false
        return reply
      }
      if (attempts === 1) throw new FailedRequest(reply, transient)
      // A server that sent nothing has been unresponsive since the request began.
      failingSince ??= reply.isSilent ? begun : performance.now()
      if (!isDown && leftMs() > 0)
        onNotice?.(`${reply.message?.replace(/\.$/, '')}. Retrying for up to ${span}.`)
      isDown = true
      throw new FailedRequest(reply, transient)
    }

    const policy = {
      attempts,
      transient: (error: unknown) => error instanceof FailedRequest && error.transient,
      leftMs,
      isTriedAtEnd: true,
    }
    try {
      return await retry(attempt, policy, signal)
    } catch (error) {
      if (signal.aborted) return { files: [], message: INTERRUPTION, code: 'interrupted' }
      if (!(error instanceof FailedRequest)) throw error
      // If the server responds to other requests, only this request is at fault.
      if (isDown && ['unreachable', 'no_token'].includes(error.reply.code ?? '')) final = error.reply
      return error.reply
    }
  }
}
