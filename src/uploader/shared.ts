import type { Cancellation } from './cancellation.ts'
import { createSlots, type Slots } from './slots.ts'

/** What all uploads of a server share, whichever of its processes they are in. */
export interface Shared {
  /** Takes a name until it is released. @returns false when somebody has it */
  take(name: string): boolean | Promise<boolean>
  release(name: string): void
  /** Does work while no other work of that name goes on, in the order of the calls. */
  inTurn<T>(name: string, work: () => Promise<T>, signal: Cancellation): Promise<T>
}

/** For one process. */
export function createShared(): Shared {
  const taken = new Set<string>()
  const queues = new Map<string, Slots>()
  return {
    take(name) {
      if (taken.has(name)) return false
      taken.add(name)
      return true
    },
    release: name => void taken.delete(name),
    inTurn(name, work, signal) {
      const queue = queues.get(name) ?? createSlots(1, Number.POSITIVE_INFINITY)
      queues.set(name, queue)
      return queue.run(work, signal)
    },
  }
}
