import type { Journal } from './journal.ts'
import { KEPT_MS } from './repeat.ts'
import type { Job, Store } from './store.ts'

const ROUND_MS = 5000
const DAY_MS = 24 * 60 * 60 * 1000
const AT_ONCE = 20
/** Most time that one round spends on pending jobs, in rounds. */
const SHARE = 3

export interface RoundsDeps {
  readonly store: Store
  /** Name of this process. */
  readonly owner: string
  readonly journal: Pick<Journal, 'kept'>
  /** Days for which jobs that are over are remembered. */
  readonly keepDays: number
  readonly roundMs?: number
  isGone(owner: string, sign: number): boolean
  retry(id: string): Promise<unknown>
  now(): Date
  warn(message: string, details?: object): void
}

/** What a process does from time to time, whether or not it is asked for anything. */
export interface Rounds {
  /** Gives signs of life from now on. Done when the first one is given. */
  keepAlive(): Promise<void>
  /** Looks for interrupted, pending and old jobs, now and then. */
  start(): void
  stop(): void
  /** No more signs of life. */
  leave(): Promise<void>
}

export function createRounds(deps: RoundsDeps): Rounds {
  const { store, owner, roundMs = ROUND_MS } = deps
  let beating: NodeJS.Timeout | undefined
  let next: NodeJS.Timeout | undefined
  let isStopped = false
  let lastPrune = 0
  let problem = ''
  const nowMs = () => deps.now().getTime()

  async function keepAlive(): Promise<void> {
    if (beating) return
    await store.beat(owner, nowMs())
    // Hooks may hold up a round for long; signs of life must not wait for them.
    beating ??= setInterval(() => void store.beat(owner, nowMs()).catch(() => {}), roundMs).unref()
  }

  async function cleanUp(): Promise<void> {
    for (const [other, sign] of await store.owners()) {
      if (deps.isGone(other, sign)) await store.abandon(other, report)
    }
  }

  function report({ id, requestId, destination, origins, caller }: Job): void {
    deps.warn('An upload was interrupted when the server ended; what of it arrived is not known', {
      jobId: id,
      requestId,
      destination,
      origins,
      caller,
    })
  }

  async function prune(): Promise<void> {
    if (nowMs() - lastPrune < DAY_MS) return
    await store.pruneJobs(nowMs() - deps.keepDays * DAY_MS)
    await store.pruneRepetitions(nowMs() - KEPT_MS)
    lastPrune = nowMs()
  }

  async function lookAround(): Promise<void> {
    // A server at rest holds no open store: that would take more memory than all the rest of the uploader.
    if (!beating && !store.mayHoldJobs()) return
    await keepAlive()
    await cleanUp()
    const due = (await store.due(nowMs(), AT_ONCE)).map(job => job.id)
    // Slow hooks must not keep the rest waiting for long; what is left comes first in the next round.
    const end = performance.now() + SHARE * roundMs
    for (const id of new Set([...deps.journal.kept(), ...due])) {
      if (isStopped || performance.now() > end) break
      await deps.retry(id).catch(() => {}) // it has been logged, and its turn comes again
    }
    await prune()
  }

  async function round(): Promise<void> {
    try {
      await lookAround()
      problem = ''
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      // An outage is worth one line.
      if (message !== problem && !isStopped) deps.warn(`The store of jobs can't be used: ${message}`)
      problem = message
    }
    if (!isStopped) next = setTimeout(round, roundMs).unref()
  }

  return {
    keepAlive,
    start() {
      if (!isStopped) next ??= setTimeout(round, 0).unref()
    },
    stop() {
      isStopped = true
      clearTimeout(next)
    },
    async leave() {
      if (!beating) return
      clearInterval(beating)
      await store.leave(owner)
    },
  }
}
