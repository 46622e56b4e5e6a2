import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../../errors.ts'
import type { Store } from '../../store/contract.ts'
import type { Expiry, HeldObject } from '../../store/expiry-contract.ts'
import { type Destination, idOf } from '../delivery/destinations.ts'
import type { Lease } from './lease.ts'

/** Objects that are taken and removed at a time. */
const AT_ONCE = 8
/** So many failures in a row, and a destination is left alone until the next round. */
const MOST_FAILURES = 32
const FIRST_PAUSE_MS = 60_000
const LONGEST_PAUSE_MS = 6 * 60 * 60_000
/** After it a failure is an error for the operator. */
const PATIENCE_MS = 7 * 24 * 60 * 60_000
/** What is due is counted up to here. */
const MOST_COUNTED = 10_000
/** What runs may take at the end. */
const GRACE_MS = 2000

/** Hears what a sweeper does. */
export interface SweepListener {
  removed(destination: string): void
  failed(destination: string): void
  /** How many objects should be gone by now; counted up to 10,000. */
  due(count: number): void
}

export interface SweeperDeps {
  readonly store: Store
  /** Name of this process. */
  readonly owner: string
  readonly lease: Lease
  readonly destinations: readonly Destination[]
  /** Destinations at which files go again, `provider/configName`; those that the store knows are added. */
  readonly swept: Set<string>
  /** Between two rounds. */
  readonly everyMs: number
  /** For one removal. */
  readonly timeoutMs: number
  readonly listener?: SweepListener | undefined
  /** Milliseconds since the epoch, by a clock that is not deceived for long. */
  now(): number
  mask(text: string): string
  info(message: string, details: object): void
  warn(message: string, details?: object): void
  error(message: string, details: object): void
}

/** Removes files whose time has come, from time to time. */
export interface Sweeper {
  start(): void
  /** Settles when nothing is under way any more. */
  stop(): Promise<void>
}

interface Failure {
  readonly count: number
  readonly problem: string
  /** Of the one that should have gone first, milliseconds since the epoch. */
  readonly dueAt: number
}

type DueObject = Expiry & HeldObject

/** Neither: it was cut short at the end. */
interface Outcome {
  readonly isRemoved?: true
  readonly problem?: string
}

export function createSweeper(deps: SweeperDeps): Sweeper {
  const { store, lease, owner, swept, everyMs, now, listener } = deps
  const removable = new Map(
    deps.destinations.filter(({ target }) => target.remove).map(one => [idOf(one), one]),
  )
  const ids = [...removable.keys()]
  /** What the store did not take. Nobody else gets at these objects until it does. */
  const unsaved = new Set<() => Promise<void>>()
  const ending = new AbortController()
  let next: NodeJS.Timeout | undefined
  let running: Promise<void> | undefined
  let isStopped = false
  let problem = ''

  let saving: Promise<void> = Promise.resolve()
  /** SQLite works inside the event loop: between two writes everything else has its turn. */
  function save(write: () => Promise<void>): Promise<void> {
    unsaved.add(write)
    const saved = saving.then(async () => {
      await write()
      unsaved.delete(write)
      await nextTurn()
    })
    saving = saved.catch(() => {})
    return saved
  }

  async function remove({ destination: id, key }: DueObject): Promise<void> {
    const { target, queue } = removable.get(id) as Destination
    const signal = AbortSignal.any([ending.signal, AbortSignal.timeout(deps.timeoutMs)])
    const work = async () => target.remove?.(key, signal)
    await (queue ? queue.run(work, signal) : work())
  }

  async function sweepOne(object: DueObject): Promise<Outcome> {
    try {
      await remove(object)
    } catch (error) {
      if (isStopped) {
        await save(() => store.releaseKeys(object.holder))
        return {}
      }
      const reason = deps.mask(messageOf(error))
      const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(object.attempts, 20), LONGEST_PAUSE_MS)
      listener?.failed(object.destination)
      await save(() => store.postponeRemoval(object, now() + pauseMs, reason))
      return { problem: reason }
    }
    await save(() => store.noteRemoved(object, Date.now()))
    listener?.removed(object.destination)
    return { isRemoved: true }
  }

  async function sweep(): Promise<void> {
    // A server at rest holds no open store: see housekeeping.
    if (ids.length === 0 || (!lease.isHeld() && !store.mayHoldJobs())) return
    await lease.keepAlive()
    for (const write of [...unsaved]) await save(write)
    for (const id of await store.expiring(ids)) swept.add(id)
    const removed = new Map<string, number>()
    const failures = new Map<string, Failure>()
    const inARow = new Map<string, number>()
    for (let isAll = false; !isAll && !isStopped; ) {
      const among = ids.filter(id => swept.has(id) && (inARow.get(id) ?? 0) < MOST_FAILURES)
      const wanted = { among, owner, now: now(), limit: AT_ONCE, longestPauseMs: LONGEST_PAUSE_MS }
      const taken = await store.takeDue(wanted)
      isAll = taken.isAll
      await nextTurn()
      const done = await Promise.allSettled(
        taken.objects.map(async object => {
          const { destination: id, dueAt } = object
          const { isRemoved, problem } = await sweepOne(object)
          if (isRemoved) removed.set(id, (removed.get(id) ?? 0) + 1)
          inARow.set(id, problem === undefined ? 0 : (inARow.get(id) ?? 0) + 1)
          if (problem === undefined) return
          const before = failures.get(id)
          const count = (before?.count ?? 0) + 1
          failures.set(id, { problem, count, dueAt: Math.min(dueAt, before?.dueAt ?? dueAt) })
        }),
      )
      // Without the store nothing more can be done.
      for (const one of done) if (one.status === 'rejected') throw one.reason
    }
    report(removed, failures)
    if (listener && !isStopped) listener.due(await store.countDue(now(), ids, MOST_COUNTED))
  }

  function report(removed: ReadonlyMap<string, number>, failures: ReadonlyMap<string, Failure>): void {
    for (const [destination, count] of removed)
      deps.info(`${files(count)} at ${destination} removed: their time has come`, {
        destination,
        removed: count,
      })
    for (const [destination, { count, problem, dueAt }] of failures) {
      const message = `${files(count)} at ${destination} could not be removed, though their time has come: ${problem}`
      const details = { destination, failed: count, dueSince: new Date(dueAt).toISOString() }
      if (now() - dueAt < PATIENCE_MS) deps.warn(message, details)
      else deps.error(`${message} (for more than a week: see upload-server history --expired)`, details)
    }
  }

  async function round(): Promise<void> {
    try {
      await sweep()
      problem = ''
    } catch (error) {
      const message = messageOf(error)
      // An outage is worth one line.
      if (message !== problem && !isStopped) deps.warn(`Files that are due can't be removed: ${message}`)
      problem = message
    }
    if (!isStopped) schedule(everyMs)
  }

  function schedule(afterMs: number): void {
    next = setTimeout(() => {
      running = round()
    }, afterMs).unref()
  }

  return {
    start() {
      if (!isStopped && !next) schedule(0)
    },
    async stop() {
      isStopped = true
      clearTimeout(next)
      const late = new AbortController()
      await Promise.race([running, sleep(GRACE_MS, undefined, { signal: late.signal }).catch(() => {})])
      late.abort()
      ending.abort()
      await running
    },
  }
}

const files = (count: number) => (count === 1 ? 'One file' : `${count} files`)
