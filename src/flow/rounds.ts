import { messageOf } from '../errors.ts'

/** Work that is done again and again, in rounds. */
export interface Rounds {
  /** Begins the first round, unless it was called before or the rounds were stopped. */
  start(): void
  /** No further round begins. Settles when none runs. */
  stop(): Promise<void>
}

/**
 * @param everyMs pause between two rounds
 * @param onFailure gets the failure of a round, unless the round before has failed for the same reason
 * @param onSuccess called after a round that did not fail
 */
export function createRounds(
  everyMs: number,
  round: () => Promise<void>,
  onFailure: (error: unknown) => void,
  onSuccess: () => void = () => {},
): Rounds {
  let next: NodeJS.Timeout | undefined
  let running: Promise<void> | undefined
  let isStopped = false
  let problem: string | undefined

  async function run(): Promise<void> {
    try {
      await round()
      problem = undefined
      onSuccess()
    } catch (error) {
      const message = messageOf(error)
      if (message !== problem && !isStopped) onFailure(error)
      problem = message
    }
    if (!isStopped) schedule(everyMs)
  }

  function schedule(afterMs: number): void {
    next = setTimeout(() => (running = run()), afterMs).unref()
  }

  return {
    start() {
      if (!isStopped && !next) schedule(0)
    },
    async stop() {
      isStopped = true
      clearTimeout(next)
      await running
    },
  }
}
