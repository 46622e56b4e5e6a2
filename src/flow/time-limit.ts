import { type Cancellation, Canceller } from './cancellation.ts'

interface Watched {
  /** Of `performance.now()`. */
  readonly end: number
  readonly late: () => void
}

/** What is under way, by its time limit in milliseconds; of one limit the first ends first. */
const underWay = new Map<number, Set<Watched>>()

/**
 * Calls `late` after so many milliseconds, unless the function that is returned is called before. All with the same limit
 * share a timer, which takes longer to set and to clear than most of them last.
 */
export function limitTime(ms: number, late: () => void): () => void {
  const watched = { end: performance.now() + ms, late }
  const others = underWay.get(ms)
  const all = others ?? new Set<Watched>()
  all.add(watched)
  if (!others) {
    underWay.set(ms, all)
    wakeFor(all, ms, ms)
  }
  return () => void all.delete(watched)
}

function wakeFor(all: Set<Watched>, ms: number, pauseMs: number): void {
  const look = () => {
    for (const watched of all) {
      const left = watched.end - performance.now()
      if (left > 0) {
        wakeFor(all, ms, left)
        return
      }
      all.delete(watched)
      watched.late()
    }
    underWay.delete(ms)
  }
  setTimeout(look, pauseMs).unref()
}

/** Ends with another signal, or when its time is up. Whoever makes one ends it. */
export class TimeLimit extends Canceller {
  readonly #end: number
  readonly #release: () => void

  /** @param late what to end with when the time is up */
  constructor(ms: number, outer: Cancellation, late: () => unknown) {
    super()
    this.#end = performance.now() + ms
    const endWatch = limitTime(ms, () => this.abort(late()))
    const leave = () => this.abort(outer.reason)
    if (outer.aborted) leave()
    outer.addEventListener('abort', leave)
    this.#release = () => {
      endWatch()
      outer.removeEventListener('abort', leave)
    }
  }

  leftMs(): number {
    return this.#end - performance.now()
  }

  end(): void {
    this.#release()
  }
}
