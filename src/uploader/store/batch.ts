import { setImmediate as turn } from 'node:timers/promises'
import { UploadError } from '../../errors.ts'
import type { Database, Use } from './tables.ts'

type Work = (transaction: Database) => Promise<void>

interface Waiting {
  readonly work: Work
  resolve(): void
  reject(error: unknown): void
}

/**
 * Gathers writes that come in one turn of the event loop, or while another one is under way, and commits them together:
 * under load a commit costs more than what is in it. Each caller is told when its own write is safe. When one of them fails they are done one by one, but not
 * when the store does: each would wait for it in turn.
 */
export function createBatcher(write: Use): (work: Work) => Promise<void> {
  let waiting: Waiting[] = []
  let isRunning = false

  const commit = (works: readonly Work[]) =>
    write(async transaction => {
      for (const work of works) await work(transaction)
    })

  async function drain(): Promise<void> {
    isRunning = true
    while (waiting.length > 0) {
      await turn()
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

  return work =>
    new Promise((resolve, reject) => {
      waiting.push({ work, resolve, reject })
      if (!isRunning) void drain()
    })
}
