import { createSlots, type Slots } from '../../flow/slots.ts'
import type { Stored } from '../../providers/contract.ts'

/**
 * What came of taking a name. `free`: it is the caller's, who is to say with `settle` or `release` what came of it.
 * `taken`: somebody has it for another content. Else what another one, who has it for the same content, stored; the
 * caller has it, too.
 */
export type Taken = 'free' | 'taken' | Stored

/** What all uploads of a server share, whichever of its processes they are in. */
export interface SharedTurns {
  /**
   * Takes a name for some content until it is released. While another one is at storing the same content under it, that
   * is waited for; when it fails, one of those who wait has the name instead.
   *
   * @throws the reason of the signal when it is aborted meanwhile
   */
  take(name: string, content: string, signal: AbortSignal): Taken | Promise<Taken>
  /** Says that the content is stored. */
  settle(name: string, stored: Stored): void
  release(name: string): void
  /** Does work while no other work of that name goes on, in the order of the calls. */
  inTurn<T>(name: string, work: () => Promise<T>, signal: AbortSignal): Promise<T>
}

interface Entry {
  readonly content: string
  /** What was stored; undefined until then. */
  stored: Stored | undefined
  /** Those who have it: one until it is stored. */
  holders: number
  readonly waiting: Set<(taken: Taken) => void>
}

/** For one process. */
export function createSharedTurns(): SharedTurns {
  const entries = new Map<string, Entry>()
  const queues = new Map<string, Slots>()

  function wait({ waiting }: Entry, signal: AbortSignal): Promise<Taken> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted()
      const go = (taken: Taken) => {
        signal.removeEventListener('abort', leave)
        resolve(taken)
      }
      const leave = () => {
        signal.removeEventListener('abort', leave)
        waiting.delete(go)
        reject(signal.reason)
      }
      waiting.add(go)
      signal.addEventListener('abort', leave)
    })
  }

  return {
    take(name, content, signal) {
      const entry = entries.get(name)
      if (!entry) {
        entries.set(name, { content, stored: undefined, holders: 1, waiting: new Set() })
        return 'free'
      }
      if (entry.content !== content) return 'taken'
      if (!entry.stored) return wait(entry, signal)
      entry.holders++
      return entry.stored
    },
    settle(name, stored) {
      const entry = entries.get(name)
      if (!entry) return
      entry.stored = stored
      // They have it from now on: whoever stored it may release it before they get to run.
      entry.holders += entry.waiting.size
      for (const go of entry.waiting) go(stored)
      entry.waiting.clear()
    },
    release(name) {
      const entry = entries.get(name)
      if (!entry) return
      const [next] = entry.waiting
      if (next) {
        entry.waiting.delete(next)
        next('free')
      } else if (--entry.holders === 0) entries.delete(name)
    },
    inTurn(name, work, signal) {
      const queue = queues.get(name) ?? createSlots(1, Number.POSITIVE_INFINITY)
      queues.set(name, queue)
      return queue.run(work, signal)
    },
  }
}
