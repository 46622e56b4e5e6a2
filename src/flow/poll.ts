import { setTimeout as sleep } from 'node:timers/promises'

const FIRST_PAUSE_MS = 25
const LONGEST_PAUSE_MS = 250

/**
 * Calls a function until it returns a value, with exponential backoff.
 *
 * @param ask returns undefined as long as there is no value
 * @throws the reason of the signal if it is aborted; a call in progress finishes first
 */
export async function poll<T>(ask: () => Promise<T | undefined>, signal: AbortSignal): Promise<T> {
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    signal.throwIfAborted()
    const answer = await ask()
    if (answer !== undefined) return answer
    await sleep(pause, undefined, { signal }).catch(() => {})
  }
}
