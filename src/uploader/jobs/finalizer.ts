import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { dropOwner, newOwner, SCOPE } from '../../flow/owner.ts'
import { poll } from '../../flow/poll.ts'
import { createPresence } from '../../flow/presence.ts'
import type { Job, NewJob, Reservation, Store, StoredFile } from '../../store/contract.ts'
import type { QuotaShare } from '../quota.ts'
import type { Hook, HookDeps } from './hooks.ts'
import { createHousekeeping } from './housekeeping.ts'
import { createJournal } from './journal.ts'
import { createLease, isAbandoned, type Lease } from './lease.ts'
import { LONGEST_PAUSE_MS, runSteps, type StepDeps } from './steps.ts'

const ROUND_MS = 5000
/** Time to save the state of interrupted work at shutdown. */
const LAST_WRITES_MS = 2000

/** Settings that a reload may change. */
export interface FinalizerSettings {
  readonly hooks: readonly Hook[]
  /** Finished jobs are deleted after this many days. */
  readonly keepDays: number
}

export interface FinalizerDeps extends HookDeps, FinalizerSettings {
  readonly store: Store
  /** After this time without a heartbeat, a process of another machine counts as ended. Default 30 s. */
  readonly patienceMs?: number
  /** Interval of the scan for pending jobs, and of heartbeats. Default 5 s. */
  readonly roundMs?: number
  now(): Date
  warn(message: string, details?: object): void
}

/** How an upload ended. */
export interface JobEnd {
  /** Whether everything was stored. */
  readonly isWhole: boolean
  /** Hooks of the configuration with which the job began. Default: the current ones. */
  readonly hooks?: readonly Hook[]
  /** What it has taken of quotas. */
  readonly share?: Pick<QuotaShare, 'settle'> | undefined
}

/** Finishes delivered jobs: saves their history, then runs each hook once. */
export interface Finalizer {
  /** Name of this process in the database. */
  readonly owner: string
  readonly lease: Lease
  /**
   * Saves a new job before its upload begins. `complete` must follow.
   *
   * @param idempotencyKey idempotency key of the request
   * @param reservation reserves it
   * @throws IdempotencyKeyTaken
   */
  begin(job: NewJob, idempotencyKey?: string, reservation?: Reservation): Promise<void>
  /**
   * Saves what was delivered. If everything was, it also finishes the job.
   *
   * @throws FinalizationPending if a step fails
   */
  complete(job: Job, files: readonly StoredFile[], end: JobEnd): Promise<void>
  /**
   * Finishes a pending job. Waits if another request or process is making an attempt, and makes its own if that one fails: the
   * cause may have been removed meanwhile.
   *
   * @returns the finished job; undefined if there is no such pending job
   * @throws FinalizationPending if a step fails again
   */
  retry(id: string, signal: AbortSignal): Promise<Job | undefined>
  /** From now on, jobs that are retried are finished with these settings. */
  adopt(settings: FinalizerSettings): void
  /** Starts to clean up after processes that have ended, and to retry pending jobs, at intervals. */
  start(): void
  /** @param graceMs time that running work gets to finish; default 0 */
  close(graceMs?: number): Promise<void>
}

/** The result of an attempt to finish a job. */
type Attempt =
  | { readonly kind: 'finished'; readonly job: Job }
  /** There is no such job, or not everything was stored for it. */
  | { readonly kind: 'unfinishable' }
  /** Another process finishes it. */
  | { readonly kind: 'elsewhere' }

const finished = (job: Job): Attempt => ({ kind: 'finished', job })
const UNFINISHABLE: Attempt = { kind: 'unfinishable' }
const ELSEWHERE: Attempt = { kind: 'elsewhere' }

export function createFinalizer(deps: FinalizerDeps): Finalizer {
  const { store, roundMs = ROUND_MS } = deps
  let { hooks, keepDays }: FinalizerSettings = deps
  const owner = newOwner(SCOPE)
  const presence = createPresence(deps.patienceMs)
  const journal = createJournal({ ...deps, owner })
  const lease = createLease(store, owner, roundMs, deps.now)
  const ending = new AbortController()
  setMaxListeners(0, ending.signal) // every hook that runs listens
  const stepDeps: StepDeps = { ...deps, journal, ending: ending.signal }
  /** Jobs whose uploads are in progress in this process. */
  const uploading = new Set<string>()
  /** Jobs that this process finishes. There is one attempt at a time, and all requests wait for it. */
  const running = new Map<string, Promise<Attempt>>()
  const attemptOnce = (id: string) => running.get(id) ?? track(id, attempt(id))
  const housekeeping = createHousekeeping({
    ...deps,
    keepDays: () => keepDays,
    longestPauseMs: LONGEST_PAUSE_MS,
    owner,
    roundMs,
    lease,
    isGone: presence.isGone,
    unsaved: journal.kept,
    retry: attemptOnce,
  })

  function track(id: string, work: Promise<Attempt>): Promise<Attempt> {
    const run = work.finally(() => running.delete(id))
    running.set(id, run)
    return run
  }

  async function attempt(id: string): Promise<Attempt> {
    await journal.save(id)
    const job = await store.job(id)
    if (job?.state === 'finished') return finished(job)
    if (job === undefined || job.state === 'failed' || job.state === 'interrupted') return UNFINISHABLE
    const isFree =
      job.state === 'delivered' || job.owner === owner || (await isAbandoned(job, store, presence))
    if (!isFree) return ELSEWHERE
    if (job.state === 'uploading') return UNFINISHABLE
    await lease.keepAlive()
    const claimed = await store.claim(id, owner, job.state === 'finalizing' ? job.owner : undefined)
    return claimed ? finished(await runSteps(claimed, hooks, stepDeps)) : ELSEWHERE
  }

  async function settle(withinMs: number): Promise<void> {
    for (const end = performance.now() + withinMs; performance.now() < end; await sleep(20)) {
      if (uploading.size === 0 && running.size === 0) return
    }
  }

  return {
    owner,
    lease,
    async begin(job, idempotencyKey, reservation) {
      await lease.keepAlive()
      await store.begin(job, idempotencyKey, reservation)
      uploading.add(job.id)
    },
    async complete(job, files, { isWhole, hooks: wanted = hooks, share }) {
      const state = isWhole ? (wanted.length > 0 ? 'finalizing' : 'finished') : 'failed'
      const work = journal.deliver(job, files, state, share?.settle(files)).then(async delivered => {
        if (!isWhole) return UNFINISHABLE
        return finished(state === 'finalizing' ? await runSteps(delivered, wanted, stepDeps) : delivered)
      })
      await track(job.id, work).finally(() => uploading.delete(job.id))
    },
    async retry(id, signal) {
      await running.get(id)?.catch(() => {})
      const last = await poll(async () => {
        const result = await attemptOnce(id)
        return result.kind === 'elsewhere' ? undefined : result
      }, signal)
      return last.kind === 'finished' ? last.job : undefined
    },
    adopt(settings) {
      hooks = settings.hooks
      keepDays = settings.keepDays
    },
    start: housekeeping.start,
    async close(graceMs = 0) {
      housekeeping.stop()
      await settle(graceMs)
      ending.abort()
      await settle(LAST_WRITES_MS)
      await Promise.allSettled([...journal.kept().map(journal.save), lease.end()])
      await store.close()
      dropOwner(owner)
    },
  }
}
