import type { Kysely } from '../packages/kysely.ts'
import type { JobState } from './contract.ts'
import type { HistoryRow } from './history-columns.ts'

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
  history: HistoryRow
  /** Objects that go again, each with the longest of its promises. */
  expiries: {
    destination: string
    key: string
    due_at: number
    next_attempt_at: number
    /** Those that failed. */
    attempts: number
    /** Why the last one did. */
    problem: string | null
  }
  /** Keys at which something is being done. */
  key_holds: {
    /** Empty: objects are told apart by their names. Older programs wrote the destination. */
    destination: string
    /** Of the object, as disks that know no capitals tell them apart. */
    name: string
    /** What it is held for; others may hold it for the same. */
    content: string
    /** The job, or what else stands for what is being done. */
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
    /** Of the answer. While there is none: what the request may have stored, a list of claims. */
    body: string | null
    /** What is random in the keys of its files; older programs wrote none. */
    seed: string | null
  }
  owners: { id: string; seen_at: number }
  schema_version: { version: number }
}

export type Database = Kysely<Tables>

/** In `jobs.files`, in place of the files of a finished job whose history says all of them. */
export const IN_HISTORY = ''
