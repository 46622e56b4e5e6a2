import type { CompiledQuery, Kysely } from '../packages/kysely.ts'
import type { JobState } from './contract.ts'
import type { Statements } from './statements.ts'

/** Lists and records lie in the columns as JSON text; times are milliseconds since the epoch. */
export interface Tables {
  jobs: {
    id: string
    state: JobState
    created_at: number
    finished_at: number | null
    owner: string
    request_id: string
    caller: string
    destination: string
    origins: string
    files: string
    steps: string
    attempts: number
    problem: string | null
    next_attempt_at: number
  }
  history: {
    job_id: string
    /** Place of the file in its job. */
    position: number
    time: number
    origin: string
    url: string
    key: string
    size: number
    content_type: string
    sha256: string
    delete_url: string | null
    destination: string
    caller: string
    request_id: string
  }
  repetitions: {
    key: string
    fingerprint: string
    owner: string
    created_at: number
    job_id: string | null
    status: number | null
    /** Of the answer. While there is none: what the request may have stored, a list of claims. */
    body: string | null
  }
  owners: { id: string; seen_at: number }
  schema_version: { version: number }
}

export type Database = Kysely<Tables>

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
