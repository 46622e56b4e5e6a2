import { type ErrorCode, UploadError } from '../errors.ts'
import { once } from '../flow/once.ts'
import type { StoreAccess, StoreWrite } from './access.ts'
import { createDatabaseAccess, type DatabaseAccess, type Engine } from './connection.ts'
import type { Store } from './contract.ts'
import { createExpiryStore } from './expiries.ts'
import { createHistoryStore } from './history.ts'
import { createIdempotencyStore } from './idempotency-records.ts'
import { createJobStore } from './jobs.ts'
import { createLockStore } from './locks.ts'
import { INDEX_NAMES, type IndexName, makeIndex } from './migrate.ts'
import { createOwnerStore } from './owners.ts'
import { IN_EVENT_LOOP } from './prune.ts'
import { createQuotaStore } from './quotas.ts'

export interface StoreOptions {
  /** Default: `create`. */
  readonly use?: StoreUse | undefined
  /** Time to wait for a database that another program has locked. Default 3 s. */
  readonly patienceMs?: number
}

/** What a store does with its database. Only `create` creates it, and `read` changes nothing. A missing one has no entries. */
export type StoreUse = 'create' | 'change' | 'read'

const PATIENCE_MS = 3000
const FAULTS: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['store_unavailable', 'insufficient_storage'])

/** A store in an SQL database. */
export function createSqlStore(engine: Engine, { patienceMs = PATIENCE_MS }: StoreOptions = {}): Store {
  const database = createDatabaseAccess(engine, patienceMs)
  const access = createAccess(engine, database)
  /** Jobs that have locks, which their delivery releases. */
  const holders = new Set<string>()
  return {
    ...createJobStore(access, holders),
    ...createHistoryStore(access),
    ...createLockStore(access, holders),
    ...createExpiryStore(access),
    ...createIdempotencyStore(access),
    ...createOwnerStore(access),
    ...createQuotaStore(access),
    problem: access.problem,
    close: database.close,
  }
}

function createAccess(
  engine: Engine,
  { use, current }: DatabaseAccess,
): StoreAccess & Pick<Store, 'problem'> {
  /** Only a successful write clears it, because a full disk can still be read. */
  let problem: UploadError | undefined
  const makeOnce = (which: IndexName) =>
    once(() =>
      use(async ({ db, isReadOnly }) => {
        if (!isReadOnly) await makeIndex(db, which, engine)
      }, true),
    )
  const indexes = new Map(INDEX_NAMES.map(which => [which, makeOnce(which)]))

  async function noting<T>(work: Promise<T>, isWritten: boolean): Promise<T> {
    try {
      const result = await work
      if (isWritten) problem = undefined
      return result
    } catch (error) {
      const isStores = error instanceof UploadError && FAULTS.has(error.code)
      if (isStores) problem = error
      throw error
    }
  }

  /** Commits synchronously, as almost every upload does. If that fails, `use` repeats it and handles the error. */
  function commitNow(writes: readonly StoreWrite[]): boolean {
    const opened = current()
    if (!opened?.commitNow) return false
    try {
      opened.commitNow(opened.statements.merge(writes.flatMap(write => write(opened.statements))))
      opened.assertThere?.()
      problem = undefined
      return true
    } catch {
      return false
    }
  }

  return {
    hasRowids: engine.hasRowids ?? false,
    pruning: engine.pruning ?? IN_EVENT_LOOP,
    problem: () => problem,
    read: work =>
      noting(
        use(({ db }) => work(db)),
        false,
      ),
    write: work =>
      noting(
        use(({ db }) => db.transaction().execute(work)),
        true,
      ),
    async commit(writes) {
      if (commitNow(writes)) return
      const writing = use(({ db, statements }) =>
        db.transaction().execute(async transaction => {
          const all = statements.merge(writes.flatMap(write => write(statements)))
          for (const statement of statements.gather(all)) await transaction.executeQuery(statement)
        }),
      )
      await noting(writing, true)
    },
    index: async which => indexes.get(which)?.(),
    clock: async db => (await engine.now?.(db)) ?? Date.now(),
    now: async (db, mine) => Math.min(mine, (await engine.now?.(db)) ?? mine),
    lockNames: async (transaction, names) => engine.lock?.(transaction, names),
  }
}
