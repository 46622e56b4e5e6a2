import { UploadError } from '../errors.ts'

/** Maximum time that a write waits for others. */
const LONGEST_WAIT_MS = 3
/** A turn of the event loop that takes less time has no work. */
const IDLE_TURN_MS = 0.05

interface Waiting<Work> {
  readonly work: Work
  resolve(): void
  reject(error: unknown): void
}

/**
 * Gathers writes and commits them together, because a commit costs more than the writes in it. As long as the event loop is
 * busy, more writes will come soon, so the writes wait for each other. A single write, or one with `isAlone`, is committed
 * at once. The promise of each write settles when that write is committed. If a batch fails, its writes are committed one by
 * one, unless the database itself has failed: then each of them would wait for it.
 */
export function createBatcher<Work>(
  commit: (works: readonly Work[]) => Promise<void>,
): (work: Work, isAlone?: boolean) => Promise<void> {
  let waiting: Waiting<Work>[] = []
  let isRunning = false

  async function drain(): Promise<void> {
    isRunning = true
    while (waiting.length > 0) {
      await gather()
      const batch = waiting
      waiting = []
      try {
        await commit(batch.map(one => one.work))
        for (const one of batch) one.resolve()
      } catch (error) {
        if (batch.length === 1 || error instanceof UploadError) for (const one of batch) one.reject(error)
        else for (const one of batch) await commit([one.work]).then(one.resolve, one.reject)
      }
    }
    isRunning = false
  }

  return (work, isAlone = false) => {
    if (isAlone && !isRunning) return commit([work])
    return new Promise((resolve, reject) => {
      waiting.push({ work, resolve, reject })
      if (!isRunning) void drain()
    })
  }
}

function gather(): Promise<void> {
  const start = performance.now()
  let before = start
  return new Promise(resolve => {
    setImmediate(function turn() {
      const now = performance.now()
      if (now - before < IDLE_TURN_MS || now - start >= LONGEST_WAIT_MS) return resolve()
      before = now
      setImmediate(turn)
    })
  })
}
