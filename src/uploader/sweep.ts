import { messageOf } from '../errors.ts'
import { createCanceller } from '../flow/cancellation.ts'
import { mapConcurrently } from '../flow/map-concurrently.ts'
import { createRounds } from '../flow/rounds.ts'
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
import { type Destination, reach, removeKey } from './destinations.ts'

/** Number of objects that one transaction takes, and that are removed at a time. */
const AT_ONCE = 32
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

/** State shared by all rounds of a sweeper. */
interface Sweeping extends SweeperDeps {
  /** Once aborted, no removal begins. */
  readonly stopped: AbortSignal
  /** Once aborted, running removals are stopped. */
  readonly ended: AbortSignal
}

export function createSweeper(deps: SweeperDeps): Sweeper {
  const { database, owner, destinations, everyMs, warn } = deps
  const [stop, end] = [createCanceller(), createCanceller()]
  const removable = destinations.filter(({ target }) => target.remove)
  const sweeping: Sweeping = { ...deps, stopped: stop.signal, ended: end.signal }
  let mayBeLeft = false

  /** If the database failed in a round, it may not know what was removed. To remove an object again has no effect. */
  async function releaseLeft(): Promise<void> {
    if (mayBeLeft) await database.tx(db => releaseRemovals(db, owner.id))
    mayBeLeft = false
  }

  const rounds = createRounds(
    everyMs,
    async () => {
      await releaseLeft()
      mayBeLeft = true
      await sweep(removable, sweeping)
      mayBeLeft = false
    },
    error => warn(`Could not delete expired files: ${messageOf(error)}`),
  )

  return {
    start: rounds.start,
    async stop() {
      stop.abort()
      const stopped = rounds.stop()
      await within(stopped, GRACE_MS, () => new Error('it is cut short')).catch(() => {})
      end.abort()
      await stopped
      await releaseLeft().catch(() => {})
    },
  }
}

/** One round. @param removable destinations from which files can be removed. @throws if the database fails, which ends the round */
async function sweep(removable: readonly Destination[], sweeping: Sweeping): Promise<void> {
  const { database, owner, listener, stopped } = sweeping
  if (removable.length === 0) return
  await owner.keepAlive()
  const now = sweeping.now()
  await mapConcurrently(removable, removable.length, destination =>
    sweepDestination(destination.id, now, sweeping),
  )
  if (listener && !stopped.aborted)
    listener.due(
      await database.read(db =>
        countDue(
          db,
          now,
          removable.map(({ id }) => id),
          MOST_COUNTED,
        ),
      ),
    )
}

/** Result for one expired object. */
interface Swept extends DueObject {
  /** Why it could not be removed. Undefined: it was. */
  readonly problem: string | undefined
}

/** If none of the objects of one transaction can be removed, the destination is skipped until the next round. */
async function sweepDestination(id: string, now: number, sweeping: Sweeping): Promise<void> {
  const { database, owner, stopped } = sweeping
  const wanted = { owner: owner.id, among: [id], now, longestPauseMs: LONGEST_PAUSE_MS, limit: AT_ONCE }
  const all: Swept[] = []
  for (let isOver = false; !isOver && !stopped.aborted; ) {
    const objects = await takeDue(database, wanted)
    // They do not wait for each other, because one of them may hang.
    const swept = await mapConcurrently(objects, AT_ONCE, object => sweepObject(object, now, sweeping))
    all.push(...swept.flatMap(one => one ?? []))
    isOver = objects.length < AT_ONCE || swept.every(one => one?.problem !== undefined)
  }
  report(id, all, now, sweeping)
}

/** Removes an object and saves the result. @returns undefined if it was not tried. @throws if the database fails */
async function sweepObject(object: DueObject, now: number, sweeping: Sweeping): Promise<Swept | undefined> {
  const { database, owner, listener, stopped } = sweeping
  const { name, destination, attempts } = object
  const problem = await remove(object, sweeping)
  if (problem === undefined) {
    await noteRemoved(database, [name])
    listener?.removed(destination)
  } else if (stopped.aborted) {
    await postpone(database, owner.id, name)
    return undefined
  } else {
    listener?.failed(destination)
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(attempts, 20), LONGEST_PAUSE_MS)
    await postpone(database, owner.id, name, { retryAt: now + pauseMs, problem })
  }
  return { ...object, problem }
}

/** @returns why the object could not be removed */
async function remove(
  object: DueObject,
  { timeoutMs, ended, mask, destinations }: Sweeping,
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

function report(
  destination: string,
  all: readonly Swept[],
  now: number,
  { info, warn, error }: SweeperDeps,
): void {
  const keys = all.filter(one => one.problem === undefined).map(({ key }) => key)
  const failed = all.filter(one => one.problem !== undefined)
  if (keys.length > 0)
    info('Deleted expired files', { destination, removed: keys.length, keys: keys.slice(0, MOST_NAMED) })
  if (failed.length > 0) {
    const message = `Could not delete expired files at ${destination}: ${failed.at(-1)?.problem}`
    const dueAt = Math.min(...failed.map(({ expiresAt }) => expiresAt))
    const details = { destination, failed: failed.length, dueSince: new Date(dueAt).toISOString() }
    if (now - dueAt < PATIENCE_MS) warn(message, details)
    else error(`${message} (expired for more than a week, see upload-server history expired)`, details)
  }
}
