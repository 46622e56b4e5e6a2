import { UploadError } from '../errors.ts'
import { onAbort } from './cancellation.ts'

/** A limited number of concurrency slots with a queue of limited length. */
export interface Slots {
  /**
   * Waits for a free slot, runs the work, and frees the slot.
   * @throws UploadError `overloaded` if the queue is full
   */
  run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>
  /** @throws UploadError `overloaded` if the queue is full */
  assertRoom(): void
  /** Changes the limits. Work that runs or waits already is not rejected. */
  resize(size: number, waiting: number): void
  /** How many works run and wait now. */
  load(): { readonly running: number; readonly waiting: number }
}

/** Slots for each of several names, so that a slow one does not delay the others. */
export interface NamedSlots {
  of(name: string): Slots
  resize(size: number, waiting: number): void
  /** The sum over all names. */
  load(): { readonly running: number; readonly waiting: number }
}

export function createNamedSlots(size: number, waiting: number): NamedSlots {
  const byName = new Map<string, Slots>()
  return {
    of(name) {
      const slots = byName.get(name) ?? createSlots(size, waiting)
      byName.set(name, slots)
      return slots
    },
    resize(newSize, newWaiting) {
      size = newSize
      waiting = newWaiting
      for (const slots of byName.values()) slots.resize(size, waiting)
    },
    load() {
      const loads = [...byName.values()].map(slots => slots.load())
      const sum = (of: 'running' | 'waiting') => loads.reduce((all, load) => all + load[of], 0)
      return { running: sum('running'), waiting: sum('waiting') }
    },
  }
}

/**
 * @param size number of slots
 * @param waiting maximum length of the queue
 */
export function createSlots(size: number, waiting: number): Slots {
  let busy = 0
  const queue: (() => void)[] = []

  function assertRoom(): void {
    if (busy < size || queue.length < waiting) return
    throw new UploadError(
      'overloaded',
      'The upload queue of this destination is full. Try again in a moment.',
      { retryAfterS: 5 },
    )
  }

  function fill(): void {
    while (busy < size && queue.length > 0) {
      busy++
      queue.shift()?.()
    }
  }

  /** Waits in the queue for a slot. */
  function queueUp(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const start = () => {
        stopListening()
        resolve()
      }
      queue.push(start)
      const stopListening = onAbort(signal, () => {
        queue.splice(queue.indexOf(start), 1)
        reject(signal.reason)
      })
    })
  }

  return {
    assertRoom,
    resize(newSize, newWaiting) {
      size = newSize
      waiting = newWaiting
      fill()
    },
    load: () => ({ running: busy, waiting: queue.length }),
    async run(work, signal) {
      signal.throwIfAborted()
      assertRoom()
      if (busy < size) busy++
      else await queueUp(signal)
      try {
        return await work()
      } finally {
        busy--
        fill()
      }
    },
  }
}
