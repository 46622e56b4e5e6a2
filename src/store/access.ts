import type { CompiledQuery } from '../packages/kysely.ts'
import type { Statements } from './statements.ts'
import type { Database } from './tables.ts'

/** Does work with the open database; see sql.ts. */
export type Use = <T>(work: (db: Database) => Promise<T>) => Promise<T>

/** What is to be written in one transaction with others. It may be asked for a second time. */
export type Write = (statements: Statements) => readonly CompiledQuery[]

/** How the parts of a store get at their database. */
export interface Access {
  readonly read: Use
  /** In a transaction. The work may be done a second time. */
  readonly write: Use
  /** All in one transaction, for what every upload writes. It may be done a second time. */
  commit(writes: readonly Write[]): Promise<void>
  /** Makes an index of the history by bytes, unless there is one. */
  indexBytes(): Promise<void>
}
