import { setTimeout as sleep } from 'node:timers/promises'

const FIRST_PAUSE_MS = 25
const LONGEST_PAUSE_MS = 250

/**
 * Asks again and again, with growing pauses, until there is an answer.
 *
 * @param ask gives undefined for as long as there is none
 * @throws the reason of the signal when it is aborted meanwhile; an answer that is on its way is waited for
 */
export async function poll<T>(ask: () => Promise<T | undefined>, signal: AbortSignal): Promise<T> {
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    signal.throwIfAborted()
    const answer = await ask()
    if (answer !== undefined) return answer
    await sleep(pause, undefined, { signal }).catch(() => {})
  }
}
