import type { CompiledQuery } from '../packages/kysely.ts'
import type { IndexName } from './migrate.ts'
import type { Statements } from './statements.ts'
import type { Database } from './tables.ts'

/** Does work with the open database; see sql.ts. */
export type Use = <T>(work: (db: Database) => Promise<T>) => Promise<T>

/** What is to be written in one transaction with others. It may be asked for a second time. */
export type StoreWrite = (statements: Statements) => readonly CompiledQuery[]

/** How the parts of a store get at their database. */
export interface StoreAccess {
  /** Whether the database numbers rows in the order of their writing, in each of its indexes. */
  readonly hasRowids: boolean
  readonly read: Use
  /** In a transaction. The work may be done a second time. */
  readonly write: Use
  /** All in one transaction, for what every upload writes. It may be done a second time. */
  commit(writes: readonly StoreWrite[]): Promise<void>
  /** Makes an index of the history unless there is one; only who looks by it needs it. */
  index(which: IndexName): Promise<void>
  /** The earlier one of a time and that of the database: clocks of machines differ. */
  now(db: Database, mine: number): Promise<number>
  /** In a transaction: waits until nobody else has the names, and has them to its end. */
  lockNames(transaction: Database, names: readonly string[]): Promise<void>
}
