import { setMaxListeners } from 'node:events'
import type { Stored } from '../providers/contract.ts'
import type { SharedTurns, Taken } from '../uploader/delivery/shared-turns.ts'

/** What a worker asks of the primary process. */
export interface PrimaryMethods {
  /** Says that the worker hears what it is asked from now on. */
  ready(): void
  /** Writes a line of the log for people. */
  print(line: string): void
  /** As in `SharedTurns`, but nobody can give up waiting: what comes then is to be released. */
  take(name: string, content: string): Promise<Taken>
  settle(name: string, stored: Stored): void
  release(name: string): void
  /** Settles when it is the turn of the worker. `leave` must follow, at any time. */
  enter(turn: number, name: string): Promise<void>
  leave(turn: number): void
  /** Figures of all workers, for Prometheus. */
  metrics(): Promise<string>
}

/** What one worker has of what all share. */
export interface Desk {
  readonly methods: Omit<PrimaryMethods, 'ready' | 'print'>
  /** Takes back everything, when the worker is gone. */
  close(): void
}

export function createDesk(shared: SharedTurns, metrics: () => Promise<string>): Desk {
  /** How many uploads of the worker have a name. */
  const names = new Map<string, number>()
  const turns = new Map<number, AbortController>()
  const closing = new AbortController()
  setMaxListeners(0, closing.signal) // every upload that waits for another one listens

  function release(name: string): void {
    const count = names.get(name)
    if (count === undefined) return
    if (count === 1) names.delete(name)
    else names.set(name, count - 1)
    shared.release(name)
  }

  function leave(turn: number): void {
    turns.get(turn)?.abort()
    turns.delete(turn)
  }

  return {
    methods: {
      async take(name, content) {
        closing.signal.throwIfAborted()
        const taken = await shared.take(name, content, closing.signal)
        if (taken === 'taken') return taken
        names.set(name, (names.get(name) ?? 0) + 1)
        if (closing.signal.aborted) release(name)
        return taken
      },
      settle(name, stored) {
        if (names.has(name)) shared.settle(name, stored)
      },
      release,
      enter: (turn, name) =>
        new Promise(entered => {
          const { signal } = turns.set(turn, new AbortController()).get(turn) as AbortController
          const untilLeft = () =>
            new Promise<void>(resolve => {
              signal.addEventListener('abort', () => resolve(), { once: true })
              entered()
            })
          // It may be left before it has begun.
          shared.inTurn(name, untilLeft, signal).then(entered, () => entered())
        }),
      leave,
      metrics,
    },
    close() {
      closing.abort()
      for (const [name, count] of names) for (let left = count; left > 0; left--) release(name)
      for (const turn of turns.keys()) leave(turn)
    },
  }
}
