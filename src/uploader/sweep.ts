import { messageOf } from '../errors.ts'
import { createCanceller } from '../flow/cancellation.ts'
import { mapConcurrently } from '../flow/map-concurrently.ts'
import { beginTimeLimit, within } from '../flow/time-limit.ts'
import {
  countDue,
  type DueObject,
  noteRemoved,
  postpone,
  releaseRemovals,
  takeDue,
} from '../store/removals.ts'
import type { Runtime } from './app.ts'
import { type Destination, idOf, reach, removeKey } from './destinations.ts'

/** Number of objects that one transaction takes, and that are removed at a time. */
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

export interface SweeperDeps extends Pick<Runtime, 'database' | 'owner' | 'mask' | 'warn'> {
  readonly destinations: readonly Destination[]
  /** Pause between two rounds. */
  readonly everyMs: number
  /** Time limit of one removal. */
  readonly timeoutMs: number
  readonly listener?: SweepListener | undefined
  /** Milliseconds since the epoch. It is called once in a round; see `createCautiousClock`. */
  now(): number
  info(message: string, details: object): void
  error(message: string, details: object): void
}

/** Deletes expired files at intervals. */
export interface Sweeper {
  start(): void
  /** Settles when no removal is in progress. */
  stop(): Promise<void>
}

/** What the rounds of a sweeper share. */
interface Rounds extends SweeperDeps {
  /** Destinations from which files can be removed, `provider/configName`. */
  readonly removable: ReadonlyMap<string, Destination>
  /** Once aborted, no removal begins. */
  readonly stopped: AbortSignal
  /** Once aborted, running removals are stopped. */
  readonly ended: AbortSignal
}

export function createSweeper(deps: SweeperDeps): Sweeper {
  const { database, owner, destinations, everyMs } = deps
  const [stop, end] = [createCanceller(), createCanceller()]
  const rounds: Rounds = {
    ...deps,
    removable: new Map(destinations.filter(({ target }) => target.remove).map(one => [idOf(one), one])),
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
      await releaseLeft()
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

  /** If the database failed in a round, it may not know what was removed. To remove an object again has no effect. */
  async function releaseLeft(): Promise<void> {
    if (problem !== '') await database.tx(db => releaseRemovals(db, owner.id))
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
      await releaseLeft().catch(() => {})
    },
  }
}

/** One round. @throws if the database fails, which ends the round */
async function sweep(rounds: Rounds): Promise<void> {
  const { database, owner, removable, listener } = rounds
  const ids = [...removable.keys()]
  if (ids.length === 0) return
  await owner.keepAlive()
  const now = rounds.now()
  await mapConcurrently([...removable.values()], removable.size, destination =>
    sweepDestination(destination, now, rounds),
  )
  if (listener && !rounds.stopped.aborted)
    listener.due(await database.read(db => countDue(db, now, ids, MOST_COUNTED)))
}

async function sweepDestination(destination: Destination, now: number, rounds: Rounds): Promise<void> {
  const { database, owner, stopped } = rounds
  const id = idOf(destination)
  const wanted = { owner: owner.id, among: [id], now, longestPauseMs: LONGEST_PAUSE_MS, limit: AT_ONCE }
  const tally: Tally = { removed: [], failed: 0, inARow: 0, dueAt: Infinity, problem: '' }
  for (let isAll = false; !isAll && tally.inARow < MOST_FAILURES && !stopped.aborted; ) {
    const objects = await takeDue(database, wanted)
    isAll = objects.length < AT_ONCE
    // They do not wait for each other, because one of them may hang.
    await mapConcurrently(objects, AT_ONCE, object => sweepObject(object, now, tally, rounds))
  }
  report(id, tally, now, rounds)
}

/** Removes an object and saves the result. @throws if the database fails */
async function sweepObject(object: DueObject, now: number, tally: Tally, rounds: Rounds): Promise<void> {
  const problem = await remove(object, rounds)
  if (problem !== undefined) return postponeRemoval(object, problem, now, tally, rounds)
  await noteRemoved(rounds.database, [object.name])
  rounds.listener?.removed(object.destination)
  tally.removed.push(object.key)
  tally.inARow = 0
}

async function postponeRemoval(
  object: DueObject,
  problem: string,
  now: number,
  tally: Tally,
  { database, owner, listener, stopped }: Rounds,
): Promise<void> {
  if (stopped.aborted) return postpone(database, owner.id, object.name)
  listener?.failed(object.destination)
  const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(object.attempts, 20), LONGEST_PAUSE_MS)
  await postpone(database, owner.id, object.name, { retryAt: now + pauseMs, problem })
  tally.inARow++
  tally.failed++
  tally.dueAt = Math.min(tally.dueAt, object.expiresAt)
  tally.problem = problem
}

/** @returns why the object could not be removed */
async function remove(
  object: DueObject,
  { timeoutMs, ended, mask, destinations }: Rounds,
): Promise<string | undefined> {
  const { destination, key } = reach(object, destinations) ?? {}
  if (!destination?.target.remove || key === undefined)
    return `it was stored at ${object.location}, where no destination of this configuration leads`
  const limit = beginTimeLimit(timeoutMs, ended, () => new Error(`it took longer than ${timeoutMs} ms`))
  try {
    await removeKey(destination, key, limit.signal)
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
    else error(`${message} (expired for more than a week, see upload-server history expired)`, details)
  }
}
