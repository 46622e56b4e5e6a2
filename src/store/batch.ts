import { UploadError } from '../errors.ts'

/** Most that a write waits for others. */
const LONGEST_WAIT_MS = 3
/** A turn of the event loop that took less had nothing to do. */
const IDLE_TURN_MS = 0.05

interface Waiting<Work> {
  readonly work: Work
  resolve(): void
  reject(error: unknown): void
}

/**
 * Gathers writes and commits them together: a commit costs more than what is in it. As long as the event loop is busy,
 * what it does brings further writes soon, and those wait for each other; one that is alone, or said to be, is committed
 * at once. Each caller is told when its own write is safe. When one of them fails they are done one by one, but not when
 * the store does: each would wait for it in turn.
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
