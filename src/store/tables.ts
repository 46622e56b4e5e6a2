import type { Kysely } from '../packages/kysely.ts'
import type { JobState } from './contract.ts'
import type { HistoryRow } from './history-columns.ts'

/** Lists and records are JSON text. Times are milliseconds since the epoch. */
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
  history: HistoryRow
  /** Objects that expire, each with its latest expiry. */
  expiries: {
    destination: string
    key: string
    due_at: number
    next_attempt_at: number
    /** Number of failed attempts. */
    attempts: number
    /** Why the last attempt failed. */
    problem: string | null
  }
  /** Locks of objects. */
  key_holds: {
    /** Always empty now. Earlier programs wrote the destination. */
    destination: string
    /** The object, in the form of `foldKey`. */
    name: string
    /** See `ObjectLock`. */
    content: string
    /** See `ObjectLock`. */
    holder: string
    owner: string
    held_at: number
  }
  repetitions: {
    key: string
    fingerprint: string
    owner: string
    created_at: number
    job_id: string | null
    status: number | null
    /** Body of the response. Until there is one: the claims of the request. */
    body: string | null
    /** The random part of its object keys. Earlier programs wrote none. */
    seed: string | null
  }
  /** What each process has used and reserved of quotas. */
  quotas: {
    client: string
    window_ms: number
    starts_at: number
    owner: string
    used_files: number
    used_bytes: number
    reserved_files: number
    reserved_bytes: number
    /** When another process needed what this one does not use. Negative: this one has answered. 0: never. */
    wanted_at: number
  }
  owners: { id: string; seen_at: number }
  schema_version: { version: number }
}

export type Database = Kysely<Tables>

/** In `jobs.files`, instead of the files of a finished job that are all in the history. */
export const IN_HISTORY = ''
