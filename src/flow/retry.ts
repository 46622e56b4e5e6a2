import { setTimeout as sleep } from 'node:timers/promises'
import { UploadError } from '../errors.ts'

/** The back-off before the second attempt; twice as much before each further one. */
const FIRST_PAUSE_MS = 250
const LONGEST_BACK_OFF_MS = 30_000

export interface RetryPolicy {
  /** At most, the first one included. */
  readonly attempts: number
  /**
   * Whether a failure is transient, and the pause that the other side asks for. Default: `retryable` of an UploadError. Other
   * errors are permanent.
   */
  readonly transient?: (error: unknown) => Transience | undefined | false
  /** Maximum pause, milliseconds. If a longer one is needed, the failure is thrown. Default: no limit. */
  readonly longestPauseMs?: number
  /** The rest of a total time limit, milliseconds. A pause that exceeds it is not begun. Default: no limit. */
  readonly leftMs?: () => number
  /** Whether a back-off that exceeds `leftMs` is shortened, so that the last attempt is made at the time limit. */
  readonly isTriedAtEnd?: boolean
}

export interface Transience {
  /** Seconds; undefined: exponential back-off with full jitter. */
  readonly retryAfterS: number | undefined
}

/**
 * Retries transient failures with exponential backoff.
 *
 * @throws the failure of the last attempt, or the reason of `signal` if it is aborted
 */
export async function retry<T>(work: () => Promise<T>, policy: RetryPolicy, signal: AbortSignal): Promise<T> {
  for (let attempt = 1, isLast = false; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      signal.throwIfAborted()
      const next: NextAttempt | undefined = isLast ? undefined : planNext(error, attempt, policy)
      if (!next) throw error
      isLast = next.isLast
      await sleep(next.pauseMs, undefined, { signal }).catch(() => {})
      signal.throwIfAborted()
    }
  }
}

interface NextAttempt {
  /** Pause before it. */
  readonly pauseMs: number
  readonly isLast: boolean
}

/** @returns undefined if there is none */
function planNext(error: unknown, attempt: number, policy: RetryPolicy): NextAttempt | undefined {
  const { attempts, transient = transienceOf, longestPauseMs = Infinity, leftMs = () => Infinity } = policy
  const passed = attempt < attempts && transient(error)
  if (!passed) return undefined
  const { retryAfterS } = passed
  const backOffMs = Math.random() * Math.min(FIRST_PAUSE_MS * 2 ** (attempt - 1), LONGEST_BACK_OFF_MS)
  const pauseMs = retryAfterS === undefined ? backOffMs : retryAfterS * 1000
  const left = leftMs()
  if (policy.isTriedAtEnd && retryAfterS === undefined && left > 0 && pauseMs >= left)
    return left > longestPauseMs ? undefined : { pauseMs: left, isLast: true }
  return pauseMs > longestPauseMs || pauseMs >= left ? undefined : { pauseMs, isLast: false }
}

function transienceOf(error: unknown): Transience | false {
  return error instanceof UploadError && error.retryable && error
}
