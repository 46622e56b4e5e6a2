import { messageOf } from '../errors.ts'
import { mapConcurrently } from '../flow/map-concurrently.ts'
import { createRounds } from '../flow/rounds.ts'
import type { Upload } from '../store/contract.ts'
import { pruneOld } from '../store/history.ts'
import { settleOpen, takeOpen } from '../store/objects.ts'
import { dueUploads, reap } from '../store/pending.ts'
import type { Runtime } from './app.ts'
import { type Destination, reach } from './destinations.ts'
import { LONGEST_PAUSE_MS } from './finalize.ts'
import { settleUnknown } from './send.ts'

const ROUND_MS = 5000
const PRUNE_MS = 60 * 60 * 1000
/** Uploads or objects of one round. */
const AT_ONCE = 20
/** A round works on pending uploads for at most this long, so that slow hooks do not delay other work. */
const LONGEST_ROUND_MS = 3 * ROUND_MS

/** The periodic work of a server: what interrupted uploads have left, pending hooks, and old rows of the database. */
export interface Housekeeping {
  /**
   * Works with the destinations of this configuration from now on, and starts.
   *
   * @param keptMs ended uploads are deleted after this time, in milliseconds
   */
  adopt(destinations: readonly Destination[], keptMs: number): void
  stop(): void
}

/** @param roundMs pause between two rounds, in milliseconds */
export function createHousekeeping(deps: Runtime, roundMs = ROUND_MS): Housekeeping {
  const { database, owner, finalizer, warn } = deps
  let lastPrune = Number.NEGATIVE_INFINITY
  let isDown = false
  let isStopped = false
  let destinations: readonly Destination[] = []
  let keptMs = 0

  const rounds = createRounds(roundMs, round, logOutage, () => {
    if (isDown) warn('The database of the server can be used again')
    isDown = false
  })

  function logOutage(error: unknown): void {
    isDown = true
    const cause = error instanceof Error && error.cause instanceof Error ? { cause: error.cause.message } : {}
    warn(`The database of the server can't be used, and uploads fail: ${messageOf(error)}`, cause)
  }

  function report({ id, requestId, destination, origins, caller }: Upload): void {
    const details = { jobId: id, requestId, destination, origins, caller }
    warn('An upload was interrupted when the server stopped. Some of its files may be stored.', details)
  }

  async function round(): Promise<void> {
    await owner.keepAlive()
    await finalizer.saveKept()
    if (owner.isContinuous()) {
      await reap(database, report)
      await askOpen()
    }
    await runPending()
    if (performance.now() - lastPrune < PRUNE_MS) return
    const isMore = await pruneOld(database, Date.now() - keptMs)
    if (!isMore) lastPrune = performance.now()
  }

  /** Asks the destinations what became of the transfers of processes that have ended. */
  async function askOpen(): Promise<void> {
    const among = destinations.map(({ id }) => id)
    const open = await database.tx(db => takeOpen(db, owner.id, among, AT_ONCE))
    await mapConcurrently(open, AT_ONCE, async object => {
      const at = reach(object, destinations)
      if (at) await settleUnknown(at.destination, object.name, at.key, deps)
      else await database.tx(db => settleOpen(db, owner.id, object.name, 'unasked'))
    })
  }

  async function runPending(): Promise<void> {
    const ids = await database.read(db => dueUploads(db, AT_ONCE, LONGEST_PAUSE_MS))
    const end = performance.now() + LONGEST_ROUND_MS
    for (const id of ids) {
      if (isStopped || performance.now() > end) break
      await finalizer.runHooks(id).catch(() => {}) // it has been logged, and a later round tries it again
    }
  }

  return {
    adopt(now, keep) {
      destinations = now
      keptMs = keep
      owner.start()
      rounds.start()
    },
    stop() {
      isStopped = true
      void rounds.stop()
    },
  }
}
