import type { Shared } from '../uploader/shared.ts'

/** What a worker asks of the primary process. */
export interface PrimaryMethods {
  /** Says that the worker hears what it is asked from now on. */
  ready(): void
  take(name: string): Promise<boolean>
  release(name: string): void
  /** Settles when it is the turn of the worker. `leave` must follow, at any time. */
  enter(turn: number, name: string): Promise<void>
  leave(turn: number): void
  /** Figures of all workers, for Prometheus. */
  metrics(): Promise<string>
}

/** What one worker has of what all share. */
export interface Desk {
  readonly methods: Omit<PrimaryMethods, 'ready'>
  /** Takes back everything, when the worker is gone. */
  close(): void
}

export function createDesk(shared: Shared, metrics: () => Promise<string>): Desk {
  const names = new Set<string>()
  const turns = new Map<number, AbortController>()
  let isClosed = false

  function release(name: string): void {
    if (names.delete(name)) shared.release(name)
  }

  function leave(turn: number): void {
    turns.get(turn)?.abort()
    turns.delete(turn)
  }

  return {
    methods: {
      async take(name) {
        if (isClosed || !(await shared.take(name))) return false
        names.add(name)
        return true
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
      isClosed = true
      for (const name of names) release(name)
      for (const turn of turns.keys()) leave(turn)
    },
  }
}
