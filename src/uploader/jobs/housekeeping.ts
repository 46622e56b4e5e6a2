import { messageOf } from '../../errors.ts'
import type { Job, Store } from '../../store/contract.ts'
import { KEPT_MS } from './idempotency.ts'
import type { Lease } from './lease.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const AT_ONCE = 20
/** A round works on pending jobs for at most this many times `roundMs`. */
const MAX_ROUND_TIMES = 3

export interface HousekeepingDeps {
  readonly store: Store
  /** Name of this process. */
  readonly owner: string
  readonly lease: Lease
  /** Jobs with a change that is not saved yet. */
  unsaved(): readonly string[]
  /** Finished jobs are deleted after this many days. */
  keepDays(): number
  /** Pause between two rounds. */
  readonly roundMs: number
  /** The longest time between two attempts at a job. */
  readonly longestPauseMs: number
  isGone(owner: string, sign: number): boolean
  /** Makes one attempt to finish a job. */
  retry(id: string): Promise<unknown>
  now(): Date
  warn(message: string, details?: object): void
}

/** The periodic work of a server process. */
export interface Housekeeping {
  /** Starts the periodic scan for interrupted, pending and old jobs. */
  start(): void
  stop(): void
}

export function createHousekeeping(deps: HousekeepingDeps): Housekeeping {
  const { store, owner, lease, roundMs } = deps
  let next: NodeJS.Timeout | undefined
  let isStopped = false
  let lastPrune = Number.NEGATIVE_INFINITY
  let pruning: Promise<void> | undefined
  let problem = ''
  const nowMs = () => deps.now().getTime()

  /** @returns the names of the processes that are not gone */
  async function cleanUp(): Promise<string[]> {
    const alive: string[] = []
    for (const [other, sign] of await store.owners()) {
      if (deps.isGone(other, sign)) await store.abandon(other, report)
      else alive.push(other)
    }
    return alive
  }

  function report({ id, requestId, destination, origins, caller }: Job): void {
    deps.warn('An upload was interrupted when the server stopped. Some of its files may be stored.', {
      jobId: id,
      requestId,
      destination,
      origins,
      caller,
    })
  }

  /**
   * Jobs must not wait for it, because it takes long in a large database. It reads many rows, so only one of several servers
   * does it: the one whose name comes first.
   */
  function pruneSometimes(alive: readonly string[]): void {
    if (pruning || performance.now() - lastPrune < DAY_MS || alive.some(other => other < owner)) return
    pruning = prune()
      .catch(logProblem)
      .finally(() => {
        pruning = undefined
      })
  }

  async function prune(): Promise<void> {
    // Jobs tell the responses of idempotency keys.
    await store.pruneJobs(nowMs() - Math.max(deps.keepDays() * DAY_MS, KEPT_MS))
    await store.pruneIdempotencyRecords(nowMs() - KEPT_MS)
    await store.pruneQuotas()
    lastPrune = performance.now()
  }

  async function runRound(): Promise<void> {
    if (store.problem() !== undefined) await store.beat(owner, nowMs()) // only a write shows whether that is over
    await lease.keepAlive()
    const alive = await cleanUp()
    const due = (await store.due(nowMs(), AT_ONCE, deps.longestPauseMs)).map(job => job.id)
    // A round is limited so that slow hooks do not delay other work. The rest comes first in the next round.
    const end = performance.now() + MAX_ROUND_TIMES * roundMs
    for (const id of new Set([...deps.unsaved(), ...due])) {
      if (isStopped || performance.now() > end) break
      await deps.retry(id).catch(() => {}) // it has been logged, and a later round retries it
    }
    pruneSometimes(alive)
  }

  /** Logs an outage once, instead of in every round. */
  function logProblem(error: unknown): void {
    const message = messageOf(error)
    if (message !== problem && !isStopped) {
      const cause =
        error instanceof Error && error.cause instanceof Error ? { cause: error.cause.message } : {}
      deps.warn(`The database of the server can't be used, and uploads fail: ${message}`, cause)
    }
    problem = message
  }

  async function round(): Promise<void> {
    try {
      if (store.problem() !== undefined) logProblem(store.problem())
      await runRound()
      if (problem !== '') deps.warn('The database of the server can be used again')
      problem = ''
    } catch (error) {
      logProblem(error)
    }
    if (!isStopped) next = setTimeout(round, roundMs).unref()
  }

  return {
    start() {
      if (!isStopped) next ??= setTimeout(round, 0).unref()
    },
    stop() {
      isStopped = true
      clearTimeout(next)
    },
  }
}
