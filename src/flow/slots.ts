import { UploadError } from '../errors.ts'
import { onAbort } from './cancellation.ts'

/** A bounded number of places, and a bounded queue in front of them. */
export interface Slots {
  /**
   * Waits for a place, runs the work, frees the place.
   * @throws UploadError `overloaded` when the queue is full
   */
  run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>
  /**
   * One place for several works: taken when the first begins, freed when none is under way. Nobody is turned away: what
   * comes to it has to be bounded elsewhere.
   */
  share(signal: AbortSignal): InPlace
  /** @throws UploadError `overloaded` when a newcomer would be turned away */
  assertRoom(): void
  /** Other numbers from now on; what runs or waits already is not turned away. */
  resize(places: number, waiting: number): void
  /** What runs and what waits now. */
  load(): { readonly running: number; readonly waiting: number }
}

/** Runs work in a place. */
export type InPlace = <T>(work: () => Promise<T>) => Promise<T>

/** The same for each of several names, so that what holds up one keeps nobody else waiting. */
export interface NamedSlots {
  of(name: string): Slots
  resize(places: number, waiting: number): void
  /** Of all. */
  load(): { readonly running: number; readonly waiting: number }
}

export function createNamedSlots(places: number, waiting: number): NamedSlots {
  const byName = new Map<string, Slots>()
  return {
    of(name) {
      const slots = byName.get(name) ?? createSlots(places, waiting)
      byName.set(name, slots)
      return slots
    },
    resize(newPlaces, newWaiting) {
      places = newPlaces
      waiting = newWaiting
      for (const slots of byName.values()) slots.resize(places, waiting)
    },
    load() {
      const loads = [...byName.values()].map(slots => slots.load())
      const sum = (of: 'running' | 'waiting') => loads.reduce((all, load) => all + load[of], 0)
      return { running: sum('running'), waiting: sum('waiting') }
    },
  }
}

/**
 * @param places how much runs at once
 * @param waiting how much may wait beyond that
 */
export function createSlots(places: number, waiting: number): Slots {
  let busy = 0
  const queue: (() => void)[] = []

  function assertRoom(): void {
    if (busy < places || queue.length < waiting) return
    throw new UploadError(
      'overloaded',
      'The upload queue of this destination is full. Try again in a moment.',
      { retryAfterS: 5 },
    )
  }

  function free(): void {
    busy--
    fill()
  }

  function fill(): void {
    while (busy < places && queue.length > 0) {
      busy++
      queue.shift()?.()
    }
  }

  function take(signal: AbortSignal): Promise<void> | undefined {
    if (busy < places) {
      busy++
      return undefined
    }
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
    resize(newPlaces, newWaiting) {
      places = newPlaces
      waiting = newWaiting
      fill()
    },
    load: () => ({ running: busy, waiting: queue.length }),
    async run(work, signal) {
      signal.throwIfAborted()
      assertRoom()
      await take(signal)
      try {
        return await work()
      } finally {
        free()
      }
    },
    share(signal) {
      let users = 0
      let place: Promise<void> | undefined
      let isTaken = false
      async function enter(): Promise<void> {
        signal.throwIfAborted()
        await take(signal)
        isTaken = true
      }
      return async work => {
        users++
        place ??= enter()
        try {
          await place
          return await work()
        } finally {
          users--
          if (users === 0) {
            if (isTaken) free()
            isTaken = false
            place = undefined
          }
        }
      }
    },
  }
}
