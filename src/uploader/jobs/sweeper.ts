import { randomUUID } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { messageOf } from '../../errors.ts'
import { createCanceller } from '../../flow/cancellation.ts'
import { mapConcurrently } from '../../flow/map-concurrently.ts'
import { beginTimeLimit, within } from '../../flow/time-limit.ts'
import type { Store } from '../../store/contract.ts'
import type { Expiry, Locations, LockedObject } from '../../store/expiry-contract.ts'
import { type Destination, idOf, locationsOf } from '../delivery/destinations.ts'
import type { Lease } from './lease.ts'

/** Number of objects that are locked and removed at a time. */
const AT_ONCE = 32
/** After this many consecutive failures, a destination is skipped until the next round. */
const MOST_FAILURES = 32
const FIRST_PAUSE_MS = 60_000
const LONGEST_PAUSE_MS = 6 * 60 * 60_000
/** A file that expired longer ago than this is logged as an error. */
const PATIENCE_MS = 7 * 24 * 60 * 60_000
/** Expired objects are counted up to this number. */
const MOST_COUNTED = 10_000
/** Maximum number of object keys in one log line. */
const MOST_NAMED = 100
/** Time that running removals get to finish at shutdown. */
const GRACE_MS = 2000

/** Receives the results of a sweeper. */
export interface SweepListener {
  removed(destination: string): void
  failed(destination: string): void
  /** Number of expired objects that still exist, counted up to 10,000. */
  due(count: number): void
}

export interface SweeperDeps {
  readonly store: Store
  /** Name of this process. */
  readonly owner: string
  readonly lease: Lease
  readonly destinations: readonly Destination[]
  /** Destinations at which files expire, `provider/configName`. The sweeper adds those that the database knows. */
  readonly withExpiry: Set<string>
  /** Pause between two rounds. */
  readonly everyMs: number
  /** Time limit of one removal. */
  readonly timeoutMs: number
  readonly listener?: SweepListener | undefined
  /** Milliseconds since the epoch. It is called once in a round; see `createCautiousClock`. */
  now(): number
  mask(text: string): string
  info(message: string, details: object): void
  warn(message: string, details?: object): void
  error(message: string, details: object): void
}

/** Deletes expired files at intervals. */
export interface Sweeper {
  start(): void
  /** Settles when no removal is in progress. */
  stop(): Promise<void>
}

type DueObject = Expiry & LockedObject

/** What the rounds of a sweeper share. */
interface Rounds extends SweeperDeps {
  /** Destinations from which files can be removed, `provider/configName`. */
  readonly removable: ReadonlyMap<string, Destination>
  readonly locations: Locations
  /** Holder of the locks of this sweeper. */
  readonly holder: string
  /** Once aborted, no removal begins. */
  readonly stopped: AbortSignal
  /** Once aborted, running removals are stopped. */
  readonly ended: AbortSignal
}

export function createSweeper(deps: SweeperDeps): Sweeper {
  const { store, destinations, everyMs } = deps
  const [stop, end] = [createCanceller(), createCanceller()]
  const rounds: Rounds = {
    ...deps,
    removable: new Map(destinations.filter(({ target }) => target.remove).map(one => [idOf(one), one])),
    locations: locationsOf(destinations),
    holder: randomUUID(),
    stopped: stop.signal,
    ended: end.signal,
  }
  let next: NodeJS.Timeout | undefined
  let running: Promise<void> | undefined
  let problem = ''

  function schedule(afterMs: number): void {
    next = setTimeout(() => {
      running = round()
    }, afterMs).unref()
  }

  async function round(): Promise<void> {
    try {
      await unlockLeft()
      await sweep(rounds)
      problem = ''
    } catch (error) {
      const message = messageOf(error)
      // An outage is logged once, instead of in every round.
      if (message !== problem && !stop.signal.aborted) deps.warn(`Could not delete expired files: ${message}`)
      problem = message
    }
    if (!stop.signal.aborted) schedule(everyMs)
  }

  /**
   * If the database failed in a round, objects may still be locked, even if this process got no response for them. None of
   * them is being removed now. An object whose removal was not saved is removed again, which has no effect.
   */
  async function unlockLeft(): Promise<void> {
    if (problem !== '') await store.unlockObjects(rounds.holder)
  }

  return {
    start() {
      if (!stop.signal.aborted && !next) schedule(0)
    },
    async stop() {
      stop.abort()
      clearTimeout(next)
      if (running) await within(running, GRACE_MS, () => new Error('it is cut short')).catch(() => {})
      end.abort()
      await running
      await unlockLeft().catch(() => {})
    },
  }
}

/** One round. @throws if the database fails, which ends the round */
async function sweep(rounds: Rounds): Promise<void> {
  const { store, withExpiry, removable, locations, holder, owner, listener } = rounds
  const ids = [...removable.keys()]
  if (ids.length === 0) return
  await rounds.lease.keepAlive()
  for (const id of await store.expiring(ids)) withExpiry.add(id)
  const now = rounds.now()
  const tallies = new Map<string, Tally>()
  for (let isAll = false; !isAll && !rounds.stopped.aborted; ) {
    const among = ids.filter(id => withExpiry.has(id) && tallyOf(id, tallies).inARow < MOST_FAILURES)
    const wanted = { among, locations, holder, owner, now, limit: AT_ONCE, longestPauseMs: LONGEST_PAUSE_MS }
    const taken = await store.takeDue(wanted)
    isAll = taken.isAll
    await nextTurn()
    await mapConcurrently(taken.objects, AT_ONCE, object =>
      sweepOne(object, now, tallyOf(object.destination, tallies), rounds),
    )
  }
  for (const [destination, tally] of tallies) report(destination, tally, now, rounds)
  if (listener && !rounds.stopped.aborted) listener.due(await store.countDue(now, ids, MOST_COUNTED))
}

/** Removes an object and saves the result. @throws if the database fails */
async function sweepOne(object: DueObject, now: number, tally: Tally, rounds: Rounds): Promise<void> {
  const { store, listener } = rounds
  const { destination, key, dueAt } = object
  const problem = await remove(object, rounds)
  if (problem === undefined) {
    await store.noteRemoved(object, Date.now())
    listener?.removed(destination)
    tally.removed.push(key)
    tally.inARow = 0
  } else if (rounds.stopped.aborted) {
    await store.unlockObjects(object.holder, object.object)
  } else {
    listener?.failed(destination)
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(object.attempts, 20), LONGEST_PAUSE_MS)
    await store.postponeRemoval(object, now + pauseMs, problem)
    tally.inARow++
    tally.failed++
    tally.dueAt = Math.min(tally.dueAt, dueAt)
    tally.problem = problem
  }
}

/** @returns why the object could not be removed; undefined if it was */
async function remove({ destination, key }: DueObject, rounds: Rounds): Promise<string | undefined> {
  const { removable, timeoutMs, ended, mask } = rounds
  const at = removable.get(destination)
  if (at === undefined) return `${destination} is not configured`
  const { target, queue } = at
  const limit = beginTimeLimit(timeoutMs, ended, () => new Error(`it took longer than ${timeoutMs} ms`))
  const work = async () => target.remove?.(key, limit.signal)
  try {
    await (queue ? queue.run(work, limit.signal) : work())
    return undefined
  } catch (error) {
    return mask(messageOf(error))
  } finally {
    limit.end()
  }
}

/** The results of the removals at one destination in a round. */
interface Tally {
  /** Object keys. */
  readonly removed: string[]
  failed: number
  /** Number of failures since the last successful removal. */
  inARow: number
  /** The earliest expiry of the objects that could not be removed, milliseconds since the epoch. */
  dueAt: number
  /** Reason of the last failure. */
  problem: string
}

function tallyOf(destination: string, tallies: Map<string, Tally>): Tally {
  const tally = tallies.get(destination) ?? {
    removed: [],
    failed: 0,
    inARow: 0,
    dueAt: Infinity,
    problem: '',
  }
  tallies.set(destination, tally)
  return tally
}

function report(destination: string, tally: Tally, now: number, { info, warn, error }: SweeperDeps): void {
  const { removed, failed, dueAt, problem } = tally
  if (removed.length > 0) {
    const details = { destination, removed: removed.length, keys: removed.slice(0, MOST_NAMED) }
    info('Deleted expired files', details)
  }
  if (failed > 0) {
    const message = `Could not delete expired files at ${destination}: ${problem}`
    const details = { destination, failed, dueSince: new Date(dueAt).toISOString() }
    if (now - dueAt < PATIENCE_MS) warn(message, details)
    else error(`${message} (expired for more than a week, see upload-server history --expired)`, details)
  }
}
