import { UploadError } from '../errors.ts'
import { once } from '../flow/once.ts'
import { type CompiledQuery, type Dialect, Kysely } from '../packages/kysely.ts'
import type { Access, Write } from './access.ts'
import type { Store } from './contract.ts'
import { createExpiryStore } from './expiries.ts'
import { createHistoryStore } from './history.ts'
import { createJobStore } from './jobs.ts'
import { type IndexName, type MigrationSettings, makeIndex, migrate } from './migrate.ts'
import { createRepetitionStore } from './repetitions.ts'
import { compileStatements, type Statements } from './statements.ts'
import type { Database, Tables } from './tables.ts'
import { storeUnavailable } from './unavailable.ts'

/** One kind of database. */
export interface Engine extends MigrationSettings {
  connect(): Promise<Connection>
  /** Turns an error of the database into one for the caller, or says that it passes and the work may be done again. */
  explain(error: unknown): Error | 'again'
  /** The time by the clock of the database, milliseconds since the epoch, where that is another machine's. */
  now?(db: Database): Promise<number>
  /** See `Store`. Default: always true. */
  mayHoldJobs?(): boolean
  /** Has `mayHoldJobs` tell, from the end of the transaction on, that nothing is left to do. Cheap when it does already. */
  setAtRest?(db: Database, isAtRest: boolean): Promise<void>
}

export interface Connection {
  readonly dialect: Dialect
  /**
   * Does statements in one transaction before it returns, where that is possible and so for less than through the dialect.
   *
   * @throws when nothing was done, for one since another transaction is under way
   */
  commitNow?(statements: readonly CompiledQuery[]): void
  /**
   * Whether what was written may be gone, since something else lies in the place of the store by now.
   *
   * @param maxAgeMs how old an answer may be that says no; default 0
   */
  isLost?(maxAgeMs?: number): boolean
  /** Parts from a store that is lost, before it is closed. */
  detach?(): void
}

export interface StoreOptions {
  /** For how long a store is waited for that another program keeps busy. Default 3 s. */
  readonly patienceMs?: number
  /** A line for the operator. */
  warn?(message: string): void
}

interface Opened extends Required<Pick<Connection, 'isLost' | 'detach'>>, Pick<Connection, 'commitNow'> {
  readonly db: Database
  readonly statements: Statements
  /** How many are at it. */
  users: number
}

const PATIENCE_MS = 3000
const PAUSE_MS = 15
/** After this at the latest a store is noticed that is lost. What was written before it went is gone anyway. */
const LOST_FOR_MS = 100

/**
 * A store over an SQL database. It is opened when first used, and again when that failed: a server starts although its
 * database is down, and works once it is up.
 */
export function createSqlStore(
  engine: Engine,
  { patienceMs = PATIENCE_MS, warn = () => {} }: StoreOptions = {},
): Store {
  let opened: Promise<Opened> | undefined
  /** What `opened` came to. */
  let current: Opened | undefined
  let isClosed = false
  /** Indexes that are being made: writes wait for them. */
  let building = 0

  async function open(): Promise<Opened> {
    const { dialect, ...rest } = await engine.connect()
    const db: Database = new Kysely<Tables>({ dialect })
    try {
      await migrate(db, engine)
      const without = { isLost: () => false, detach: () => {} }
      current = { ...without, ...rest, db, users: 0, statements: compileStatements(db) }
      return current
    } catch (error) {
      await db.destroy().catch(() => {})
      throw error
    }
  }

  async function reopen(lost: Opened): Promise<Opened> {
    warn('The file of the store was moved, removed or replaced. The one in its place is used from now on')
    do await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
    while (lost.users > 0)
    lost.detach()
    await lost.db.destroy()
    return open()
  }

  /** What was done in a store that is lost is done again in the one in its place. */
  async function use<T>(work: (opened: Opened) => Promise<T>): Promise<T> {
    for (const start = performance.now(); ; ) {
      if (isClosed) throw closed()
      opened ??= open()
      const opening = opened
      let ready: Opened | undefined
      let problem: unknown
      try {
        ready = await opening
        const result = await occupy(ready, work)
        if (!ready.isLost(LOST_FOR_MS)) return result
      } catch (error) {
        problem = error
      }
      if (ready?.isLost()) {
        if (opened === opening) {
          current = undefined
          opened = reopen(ready)
        }
      } else {
        if (!ready && opened === opening) opened = undefined
        const explained = engine.explain(problem)
        if (explained !== 'again') throw explained
      }
      if (performance.now() - start > patienceMs && building === 0) throw busy(problem)
      await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
    }
  }

  /** How nearly every upload is written. What this leaves undone is left to `use`, which knows what to do about it. */
  function commitNow(writes: readonly Write[]): boolean {
    if (!current?.commitNow || isClosed) return false
    const { statements, commitNow, isLost } = current
    try {
      commitNow(writes.flatMap(write => write(statements)))
      return !isLost(LOST_FOR_MS)
    } catch {
      return false
    }
  }

  const makeOnce = (which: IndexName) =>
    once(async () => {
      building++
      await use(({ db }) => makeIndex(db, which, engine)).finally(() => building--)
    })
  const indexes = {
    bytes: makeOnce('bytes'),
    callers: makeOnce('callers'),
    keys: makeOnce('keys'),
    due: makeOnce('due'),
  }
  /** Jobs that hold keys: their delivery gives them back. */
  const holders = new Set<string>()
  const access: Access = {
    read: work => use(({ db }) => work(db)),
    write: work => use(({ db }) => db.transaction().execute(work)),
    async commit(writes) {
      if (commitNow(writes)) return
      await use(({ db, statements }) =>
        db.transaction().execute(async transaction => {
          for (const statement of writes.flatMap(write => write(statements))) {
            await transaction.executeQuery(statement)
          }
        }),
      )
    },
    index: which => indexes[which](),
    now: async (db, mine) => Math.min(mine, (await engine.now?.(db)) ?? mine),
    lockNames: async (transaction, names) => engine.lock?.(transaction, names),
  }
  const { read, write } = access
  return {
    ...createJobStore(access, holders),
    ...createHistoryStore(access),
    ...createExpiryStore(access, holders),
    ...createRepetitionStore(access),

    mayHoldJobs: () => engine.mayHoldJobs?.() ?? true,

    beat: (owner, now) =>
      write(async db => {
        await engine.setAtRest?.(db, false)
        await db
          .insertInto('owners')
          .values({ id: owner, seen_at: now })
          .onConflict(conflict => conflict.column('id').doUpdateSet({ seen_at: now }))
          .execute()
      }),
    leave: owner =>
      write(async db => {
        await db.deleteFrom('owners').where('id', '=', owner).execute()
        if (engine.setAtRest && (await isUnused(db))) await engine.setAtRest(db, true)
      }),
    owners: () =>
      read(async db => {
        const busy = await db
          .selectFrom('jobs')
          .select(['owner as id', eb => eb.fn.max('created_at').as('seen_at')])
          .where('finished_at', 'is', null)
          .where('state', 'in', ['uploading', 'finalizing'])
          .groupBy('owner')
          .execute()
        const holding = await db
          .selectFrom('key_holds')
          .select(['owner as id', eb => eb.fn.max('held_at').as('seen_at')])
          .groupBy('owner')
          .execute()
        const alive = await db.selectFrom('owners').selectAll().execute()
        return new Map([...busy, ...holding, ...alive].map(row => [row.id, row.seen_at]))
      }),
    async close() {
      isClosed = true
      const last = await opened?.catch(() => undefined)
      opened = current = undefined
      await last?.db.destroy()
    },
  }
}

/** Whether all jobs are over, no file is to go and no process said that it lives. Whoever begins a job has said so before. */
async function isUnused(db: Database): Promise<boolean> {
  const owner = await db.selectFrom('owners').select('id').limit(1).executeTakeFirst()
  const job = await db
    .selectFrom('jobs')
    .select('id')
    .where('finished_at', 'is', null)
    .limit(1)
    .executeTakeFirst()
  const expiry = await db.selectFrom('expiries').select('key').limit(1).executeTakeFirst()
  return owner === undefined && job === undefined && expiry === undefined
}

async function occupy<T>(opened: Opened, work: (opened: Opened) => Promise<T>): Promise<T> {
  opened.users++
  try {
    return await work(opened)
  } finally {
    opened.users--
  }
}

function closed(): UploadError {
  return new UploadError('shutting_down', 'The server is going down. Try again in a moment.', {
    retryAfterS: 5,
  })
}

function busy(cause: unknown): UploadError {
  return storeUnavailable(
    'The store of the server is kept busy by another program. Try again in a moment.',
    cause,
  )
}
