import { randomUUID } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { messageOf } from '../../errors.ts'
import { createCanceller } from '../../flow/cancellation.ts'
import { mapConcurrently } from '../../flow/map-concurrently.ts'
import { beginTimeLimit, within } from '../../flow/time-limit.ts'
import { createBatcher } from '../../store/batch.ts'
import type { Store } from '../../store/contract.ts'
import type { Expiry, Locations, LockedObject } from '../../store/expiry-contract.ts'
import { type Destination, idOf, locationsOf } from '../delivery/destinations.ts'
import { removeKeys } from '../delivery/remove-keys.ts'
import type { Lease } from './lease.ts'

/** Number of objects that one transaction locks, and that are removed one by one at a time. */
const AT_ONCE = 32
/** Number of objects that are removed at a time if the destination removes several with one request. */
const MANY_AT_ONCE = 8 * AT_ONCE
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
  const { store, withExpiry, removable, listener } = rounds
  const ids = [...removable.keys()]
  if (ids.length === 0) return
  await rounds.lease.keepAlive()
  for (const id of await store.expiring(ids)) withExpiry.add(id)
  const now = rounds.now()
  const swept = [...removable].filter(([id]) => withExpiry.has(id))
  await mapConcurrently(swept, swept.length, ([, destination]) => sweepDestination(destination, now, rounds))
  if (listener && !rounds.stopped.aborted) listener.due(await store.countDue(now, ids, MOST_COUNTED))
}

async function sweepDestination(destination: Destination, now: number, rounds: Rounds): Promise<void> {
  const { removeMany } = destination.target
  const tally: Tally = { removed: [], failed: 0, inARow: 0, dueAt: Infinity, problem: '' }
  // Results that arrive together are saved together, because each commit blocks the process.
  const save = createBatcher<readonly DueObject[]>(groups =>
    rounds.store.noteRemoved(groups.flat(), Date.now()),
  )
  for (let isAll = false; !isAll && tally.inARow < MOST_FAILURES && !rounds.stopped.aborted; ) {
    const taken = await take(idOf(destination), removeMany ? MANY_AT_ONCE : AT_ONCE, now, rounds)
    isAll = taken.isAll
    // Those that are removed one by one do not wait for each other, because one of them may hang.
    const groups = removeMany ? [taken.objects] : taken.objects.map(object => [object])
    await mapConcurrently(groups, AT_ONCE, objects =>
      sweepSome(destination, objects, now, tally, save, rounds),
    )
  }
  report(idOf(destination), tally, now, rounds)
}

/** Locks expired objects, in several transactions, because one of them must not block the process. */
async function take(
  id: string,
  most: number,
  now: number,
  { store, locations, holder, owner, stopped }: Rounds,
): Promise<{ readonly objects: readonly DueObject[]; readonly isAll: boolean }> {
  const wanted = { among: [id], locations, holder, owner, now, longestPauseMs: LONGEST_PAUSE_MS }
  const objects: DueObject[] = []
  for (;;) {
    const limit = Math.min(AT_ONCE, most - objects.length)
    const taken = await store.takeDue({ ...wanted, limit })
    objects.push(...taken.objects)
    await nextTurn()
    if (taken.isAll || objects.length === most || stopped.aborted) return { objects, isAll: taken.isAll }
  }
}

/** Removes objects and saves the results. @throws if the database fails */
async function sweepSome(
  destination: Destination,
  objects: readonly DueObject[],
  now: number,
  tally: Tally,
  save: (removed: readonly DueObject[]) => Promise<void>,
  rounds: Rounds,
): Promise<void> {
  if (objects.length === 0) return
  const { listener } = rounds
  const problems = await remove(destination, objects, rounds)
  const removed = objects.filter(({ key }) => !problems.has(key))
  for (const object of objects) {
    const problem = problems.get(object.key)
    if (problem !== undefined) await postpone(object, problem, now, tally, rounds)
  }
  if (removed.length === 0) return
  await save(removed)
  for (const { key } of removed) {
    listener?.removed(idOf(destination))
    tally.removed.push(key)
  }
  tally.inARow = 0
}

async function postpone(
  object: DueObject,
  problem: string,
  now: number,
  tally: Tally,
  { store, listener, stopped }: Rounds,
): Promise<void> {
  if (stopped.aborted) return store.unlockObjects(object.holder, object.object)
  listener?.failed(object.destination)
  const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(object.attempts, 20), LONGEST_PAUSE_MS)
  await store.postponeRemoval(object, now + pauseMs, problem)
  tally.inARow++
  tally.failed++
  tally.dueAt = Math.min(tally.dueAt, object.dueAt)
  tally.problem = problem
}

/** @returns why objects could not be removed, by key */
async function remove(
  destination: Destination,
  objects: readonly DueObject[],
  { timeoutMs, ended, mask }: Rounds,
): Promise<ReadonlyMap<string, string>> {
  const limit = beginTimeLimit(timeoutMs, ended, () => new Error(`it took longer than ${timeoutMs} ms`))
  try {
    const keys = objects.map(({ key }) => key)
    const problems = await removeKeys(destination, keys, limit.signal)
    return new Map([...problems].map(([key, error]) => [key, mask(messageOf(error))]))
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
    else error(`${message} (expired for more than a week, see upload-server history --expired)`, details)
  }
}
