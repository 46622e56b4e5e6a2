import type { ExpiryStore, ObjectId } from './expiry-contract.ts'
import type { FileEntry, HistoryEntry } from './history-columns.ts'
import type { LockStore } from './lock-contract.ts'
import type { QuotaStore, QuotaUse } from './quota-contract.ts'

export type { HistoryEntry }

/**
 * The state of an upload. `uploading`: begun. `delivered`: everything is stored, but the history or hooks are missing.
 * `finalizing`: a process runs the hooks. `finished`: all done. `failed`: some files could not be stored. `interrupted`: the
 * process ended during the upload.
 */
export type JobState = 'uploading' | 'delivered' | 'finalizing' | 'finished' | 'failed' | 'interrupted'

/** The states in which everything is stored. */
export const STORED_STATES: readonly JobState[] = ['delivered', 'finalizing', 'finished']

/** One file of a job, stored at a destination. */
export interface StoredFile extends FileEntry {
  /** `provider/configName`, if it is not the destination of the job: the fallback. */
  readonly destination?: string | undefined
  readonly mirrors?: readonly Copy[] | undefined
}

/** A copy of a file at a mirror, or why there is none. */
export interface Copy {
  /** `provider/configName`. */
  readonly destination: string
  readonly key?: string
  readonly url?: string
  readonly location?: string
  /** As in `StoredFile`. */
  readonly expiresAt?: number
  readonly error?: string
}

/** One accepted request to upload. Its id is the `finalizationId`. */
export interface Job {
  readonly id: string
  readonly state: JobState
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  /** The process that began it. */
  readonly owner: string
  readonly requestId: string
  readonly caller: string
  /** `provider/configName`. */
  readonly destination: string
  /** The inputs of the request, in order. */
  readonly origins: readonly string[]
  readonly files: readonly StoredFile[]
  /** Names of the completed post-upload steps. */
  readonly steps: readonly string[]
  /** Number of failed attempts at the post-upload steps. */
  readonly attempts: number
  /** Why the last attempt failed. */
  readonly problem: string | undefined
}

export type NewJob = Pick<
  Job,
  'id' | 'createdAt' | 'owner' | 'requestId' | 'caller' | 'destination' | 'origins'
>

export interface HistoryFilter {
  /** `provider` or `provider/configName`. */
  readonly destination?: string | undefined
  /** Only at one of these, `provider/configName`. */
  readonly among?: readonly string[] | undefined
  /** A part of the origin, the key or the URL. */
  readonly text?: string | undefined
  /** A part of the origin or of the last segment of the key. */
  readonly name?: string | undefined
  /** The folder of the object key or one of its parents, without a final slash. */
  readonly folder?: string | undefined
  /** The whole key. */
  readonly key?: string | undefined
  /** Entries of this object that are not removed, through any destination. */
  readonly object?: ObjectId | undefined
  /** One of these keys. */
  readonly keys?: readonly string[] | undefined
  /** A part of the URL. */
  readonly link?: string | undefined
  /** The whole URL. */
  readonly url?: string | undefined
  /** The whole name of the caller. */
  readonly by?: string | undefined
  /** A part of the caller's name. */
  readonly caller?: string | undefined
  readonly jobId?: string | undefined
  /** There is no index for it, so all entries are read. */
  readonly requestId?: string | undefined
  readonly sha256?: string | undefined
  /** Milliseconds since the epoch. */
  readonly since?: number | undefined
  /** Only older ones, milliseconds since the epoch. */
  readonly before?: number | undefined
  /** Whether it was removed. Default: both. */
  readonly isRemoved?: boolean | undefined
  /** Newest first. */
  readonly limit: number
}

/** The response to a request with an `Idempotency-Key`. */
export interface KeptResponse {
  readonly status: number
  /** JSON. */
  readonly body: string
  /** The job of the request. Undefined: the one that was begun for the idempotency key. */
  readonly jobId: string | undefined
}

/** A file that an attempt at a request was about to store under a free object key. */
export interface Claim {
  /** `provider/configName`. */
  readonly destination: string
  readonly key: string
  readonly sha256: string
  /** Milliseconds since the epoch. */
  readonly time: number
}

/** What the database knows of a request with an `Idempotency-Key`. */
export interface IdempotencyRecord {
  /** Hash of what the request asked for. */
  readonly fingerprint: string
  /** The process that handles the request, or `NO_OWNER`. */
  readonly owner: string
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  /** The job that was begun for the request. */
  readonly jobId: string | undefined
  /** The random part of its object keys, which nobody can guess. Undefined: an earlier program has reserved the key. */
  readonly seed: string | undefined
  /** What its attempts so far may have stored. Empty once there is a response. */
  readonly claims: readonly Claim[]
  /** Undefined until there is one, and if all files were stored: then the job tells the response. */
  readonly response: KeptResponse | undefined
}

/** What the first request with an idempotency key writes about itself. */
export type Reservation = Pick<IdempotencyRecord, 'fingerprint' | 'owner' | 'createdAt'> & {
  /** Random, so that it also identifies the request. */
  readonly seed: string
}

/** The result of a delivery. */
export interface Delivery {
  /** `finalizing`: the owner of the job runs the hooks. */
  readonly state: 'delivered' | 'finalizing' | 'finished' | 'failed'
  /** The process that writes it. If another process has claimed the job meanwhile, only the history is written. */
  readonly owner: string
  readonly files: readonly StoredFile[]
  /** Post-upload steps that are completed with it. */
  readonly steps: readonly string[]
  /** Written in the same transaction. */
  readonly history: readonly HistoryEntry[]
  /** Reserved quotas, which the delivery releases. */
  readonly quota?: readonly QuotaUse[] | undefined
  readonly now: number
}

/** The progress of the post-upload steps. */
export interface Progress {
  readonly state: 'delivered' | 'finalizing' | 'finished'
  readonly steps: readonly string[]
  readonly attempts: number
  readonly problem?: string | undefined
  /** Milliseconds since the epoch. */
  readonly now: number
  /** Pause before a `delivered` job is retried, milliseconds. Default 0. */
  readonly pauseMs?: number
}

export interface JobStore {
  /**
   * Writes a job before its first byte is sent.
   *
   * @param idempotencyKey its record then refers to the job, unless another process has taken it over
   * @param reservation reserves the idempotency key in the same transaction
   * @throws IdempotencyKeyTaken if another request has reserved it; then nothing is written
   */
  begin(job: NewJob, idempotencyKey?: string, reservation?: Reservation): Promise<void>
  deliver(id: string, delivery: Delivery): Promise<void>
  /**
   * Claims a `delivered` job, or one of a process that has ended, to run its hooks. Only one caller gets it.
   *
   * @param from the process that had claimed it and has ended
   * @returns the claimed job
   */
  claim(id: string, owner: string, from?: string): Promise<Job | undefined>
  /** Writes the progress. @returns false if another process has claimed the job meanwhile; then nothing is written */
  advance(id: string, owner: string, progress: Progress): Promise<boolean>
  job(id: string): Promise<Job | undefined>
  /**
   * Returns `delivered` jobs whose next attempt is due.
   *
   * @param longestPauseMs an attempt that is later than this was planned by a clock that has been set back, and is due
   */
  due(now: number, limit: number, longestPauseMs: number): Promise<Job[]>
  /** All jobs whose post-upload steps are pending or running. */
  pending(): Promise<Job[]>
  /**
   * Cleans up after a process that has ended. Its `uploading` jobs become `interrupted`, and its `finalizing` ones `delivered`.
   *
   * @param report called for each interrupted job before the change is committed, so that none is missed; it may be called
   *   twice for a job
   */
  abandon(owner: string, report: (job: Job) => void): Promise<void>
  /** Deletes jobs that ended before a time, a bounded part at a time. */
  pruneJobs(before: number): Promise<void>
}

export interface HistoryStore {
  history(filter: HistoryFilter): Promise<HistoryEntry[]>
  /** The number of entries. */
  countHistory(filter: Omit<HistoryFilter, 'limit'>): Promise<number>
  /**
   * Deletes older entries, a bounded part at a time. Entries of objects that still have to be removed are kept.
   *
   * @param among only at these destinations, `provider/configName`; default: all
   * @param but except at these, because their URLs need the entries
   * @param keptLinks except entries whose URL contains this
   * @returns the number of deleted entries
   */
  pruneHistory(
    before: number,
    among?: readonly string[],
    but?: readonly string[],
    keptLinks?: string,
  ): Promise<number>
}

/** Owner of the idempotency key of a request that has failed. */
export const NO_OWNER = ''

/** Another request has reserved the idempotency key. */
export class IdempotencyKeyTaken extends Error {}

export interface IdempotencyStore {
  /**
   * Takes over the idempotency key of a request whose process has ended. Waits for the last write of that process, which
   * may still be on its way into the database.
   *
   * @param fingerprint of the request that takes it over
   * @returns false if another process was faster, or if everything was stored for the request: then its job must be finished
   */
  takeOver(key: string, from: string, to: string, fingerprint: string): Promise<boolean>
  /** Writes what the request of a key may store, unless another process has taken the key over or there is a response. */
  noteClaims(key: string, owner: string, claims: readonly Claim[]): Promise<void>
  /** Writes the response, unless another process has taken the key over. */
  saveResponse(key: string, owner: string, response: KeptResponse): Promise<void>
  /**
   * Frees a key that has no response, unless another process has taken it over: its owner is `NO_OWNER` then. The claims of
   * the request stay for the next attempt.
   */
  release(key: string, owner: string): Promise<void>
  idempotencyRecord(key: string): Promise<IdempotencyRecord | undefined>
  /** Deletes the record of a key if it is older. */
  expireIdempotencyKey(key: string, before: number): Promise<void>
  /** Deletes all records that are older, a bounded part at a time. */
  pruneIdempotencyRecords(before: number): Promise<void>
}

/** The processes that use a database. */
export interface OwnerStore {
  /** Writes a heartbeat of a process. */
  beat(owner: string, now: number): Promise<void>
  removeOwner(owner: string): Promise<void>
  /** Processes with a heartbeat, a job in progress or a lock, and the time of the latest of these. */
  owners(): Promise<Map<string, number>>
}

/** The database of jobs, the history, locks and idempotency records. Several processes may share one. */
export interface Store
  extends JobStore,
    HistoryStore,
    LockStore,
    ExpiryStore,
    IdempotencyStore,
    OwnerStore,
    QuotaStore {
  /** Why the last write failed. Undefined if it succeeded, or there was none. */
  problem(): Error | undefined
  close(): Promise<void>
}
