import { setTimeout as sleep } from 'node:timers/promises'
import { createCanceller, onAbort, orAborted } from '../../flow/cancellation.ts'
import { beginTimeLimit, within } from '../../flow/time-limit.ts'

/** How long to wait for an unresponsive server, milliseconds. */
export interface Patience {
  /** Time before the first health check, and between health checks. */
  readonly quietMs: number
  /** Time limit of one health check. */
  readonly answerMs: number
  /** Idle timeout of a connection, even if the server responds to health checks. */
  readonly idleMs: number
  /** Time limit for getting a token. */
  readonly tokenMs: number
}

export const PATIENCE: Patience = { quietMs: 5_000, answerMs: 10_000, idleMs: 5 * 60_000, tokenMs: 30_000 }

/** Number of failed health checks in a row that make a server unresponsive. One may be lost while much is sent. */
const MISSES = 2

/** The server accepted the connection, but is unresponsive. */
export class SilenceError extends Error {}

/**
 * Runs `work` for as long as the server is responsive. An upload may take any time, but a server that works on it still
 * responds to health checks.
 *
 * @param ask the health check; throws if there is no response
 * @throws SilenceError, or what `work` throws
 */
export async function whileResponsive<T>(
  work: (signal: AbortSignal) => Promise<T>,
  ask: (signal: AbortSignal) => Promise<unknown>,
  { quietMs, answerMs }: Patience,
  outer: AbortSignal,
): Promise<T> {
  const silent = createCanceller()
  const over = createCanceller()
  const stopListening = onAbort(outer, () => silent.abort(outer.reason))
  const watch = async () => {
    for (let missed = 0; missed < MISSES; ) {
      if (missed === 0) await sleep(quietMs, undefined, { signal: over.signal })
      missed = (await answers()) ? 0 : missed + 1
      over.signal.throwIfAborted()
    }
    silent.abort(new SilenceError())
  }
  const answers = async (): Promise<boolean> => {
    const limit = beginTimeLimit(answerMs, over.signal, () => new SilenceError())
    const isThere = () => true
    try {
      return await within(ask(limit.signal).then(isThere), answerMs, () => new SilenceError())
    } catch {
      return false
    } finally {
      limit.end()
    }
  }
  watch().catch(() => {}) // It rejects when `work` has ended, which is not an error.
  try {
    return await orAborted(work(silent.signal), silent.signal)
  } catch (error) {
    throw silent.signal.aborted ? silent.signal.reason : error
  } finally {
    stopListening()
    over.abort()
  }
}
