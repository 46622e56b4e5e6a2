import { setTimeout as sleep } from 'node:timers/promises'
import { createCanceller, onAbort, orAborted } from '../../flow/cancellation.ts'
import { beginTimeLimit, within } from '../../flow/time-limit.ts'

/** How long a server may be silent, milliseconds. */
export interface Patience {
  /** A request is waited for so long before the server is asked whether it is still there, and between such questions. */
  readonly quietMs: number
  /** For one answer to that. */
  readonly answerMs: number
  /** A connection on which nothing happens for so long is given up, though its server answers others. */
  readonly idleMs: number
}

export const PATIENCE: Patience = { quietMs: 5_000, answerMs: 10_000, idleMs: 5 * 60_000 }

/** So many questions in a row are not answered by a server that is gone: one may get lost while much is sent. */
const MISSES = 2

/** A server took a connection and says nothing any more. */
export class SilenceError extends Error {}

/**
 * Waits for a server as long as it is there. How long an upload takes is not known; a server that works on it still answers
 * other requests.
 *
 * @param ask is answered, or throws
 * @throws SilenceError, or what `work` throws
 */
export async function whileStillThere<T>(
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
  watch().catch(() => {}) // it is over
  try {
    return await orAborted(work(silent.signal), silent.signal)
  } catch (error) {
    throw silent.signal.aborted ? silent.signal.reason : error
  } finally {
    stopListening()
    over.abort()
  }
}
