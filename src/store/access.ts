import type { IndexName } from './migrate.ts'
import type { Statement, Statements } from './statements.ts'
import type { Database } from './tables.ts'

/** Works with the open database; see sql.ts. */
export type Use = <T>(work: (db: Database) => Promise<T>) => Promise<T>

/** A write that is committed together with others. It may be called twice. */
export type StoreWrite = (statements: Statements) => readonly Statement[]

/** Limits of one transaction that deletes old rows. */
export interface PruningLimits {
  /** Maximum number of rows that it reads. */
  readonly mostRows: number
  /** The next one reads fewer rows if it took longer than this, in milliseconds. */
  readonly longMs: number
}

/** How the files of this folder access the database. */
export interface StoreAccess {
  /** Whether the database numbers rows in the order of their writing, in each of its indexes. */
  readonly hasRowids: boolean
  readonly pruning: PruningLimits
  readonly read: Use
  /** In a transaction. The work may run twice. */
  readonly write: Use
  /** Commits the writes of uploads in one transaction. They may be called twice. */
  commit(writes: readonly StoreWrite[]): Promise<void>
  /** Creates an index of the history if it does not exist. Only some searches need it. */
  index(which: IndexName): Promise<void>
  /** The time of the database, milliseconds since the epoch. */
  clock(db: Database): Promise<number>
  /** The earlier of a time and the time of the database, because clocks of machines differ. */
  now(db: Database, mine: number): Promise<number>
  /** Locks names until the end of the transaction. Waits for other transactions that have locked them. */
  lockNames(transaction: Database, names: readonly string[]): Promise<void>
}
