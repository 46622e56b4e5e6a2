import type { ExpiryStore, ObjectId } from './expiry-contract.ts'
import type { FileEntry, HistoryEntry } from './history-columns.ts'
import type { LockStore } from './lock-contract.ts'

export type { HistoryEntry }

/**
 * Where an upload is in its life. `uploading`: begun, perhaps on its way. `delivered`: everything is stored, history or
 * hooks are missing. `finalizing`: somebody is at it. `finished`: all done. `failed`: not everything could be stored.
 * `interrupted`: the process ended while it was uploading.
 */
export type JobState = 'uploading' | 'delivered' | 'finalizing' | 'finished' | 'failed' | 'interrupted'

/** Everything is stored by then. */
export const STORED_STATES: readonly JobState[] = ['delivered', 'finalizing', 'finished']

/** One file of a job, stored at a destination. */
export interface StoredFile extends FileEntry {
  /** `provider/configName`, if it is not the destination of the job: the fallback. */
  readonly destination?: string | undefined
  readonly mirrors?: readonly Copy[] | undefined
}

/** A further copy of a file at a mirror, or why there is none. */
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
  /** What was asked for, in order. */
  readonly origins: readonly string[]
  readonly files: readonly StoredFile[]
  /** Names of the steps of finalization that are done. */
  readonly steps: readonly string[]
  /** Attempts at finalization that failed. */
  readonly attempts: number
  /** Why the last one failed. */
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
  /** The folder that the key lies below, without a final slash. */
  readonly folder?: string | undefined
  /** The whole key. */
  readonly key?: string | undefined
  /** Entries of this object that are not removed, whatever destination they came by. */
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
  /** No index knows these: all entries are gone through. */
  readonly requestId?: string | undefined
  readonly sha256?: string | undefined
  /** Milliseconds since the epoch. */
  readonly since?: number | undefined
  /** Only older ones, milliseconds since the epoch. */
  readonly before?: number | undefined
  /** Whether it was removed; default: either. */
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
  /** Undefined until there is one. */
  readonly response: KeptResponse | undefined
}

/** What a delivery came to. */
export interface Delivery {
  /** `finalizing`: by the owner of the job. */
  readonly state: 'delivered' | 'finalizing' | 'finished' | 'failed'
  /** Who tells. When somebody else has taken the job for finalization meanwhile, only the history is written. */
  readonly owner: string
  readonly files: readonly StoredFile[]
  /** Steps of finalization that are done with it. */
  readonly steps: readonly string[]
  /** Written in the same transaction. */
  readonly history: readonly HistoryEntry[]
  readonly now: number
}

/** How far finalization came. */
export interface Progress {
  readonly state: 'delivered' | 'finalizing' | 'finished'
  readonly steps: readonly string[]
  readonly attempts: number
  readonly problem?: string | undefined
  /** Milliseconds since the epoch. */
  readonly now: number
  /** Before a `delivered` job is tried again. Default 0. */
  readonly pauseMs?: number
}

export interface JobStore {
  /**
   * Writes a job before its first byte goes out.
   *
   * @param idempotencyKey reserved by the job's owner; it then leads to the job unless somebody else has taken it over
   */
  begin(job: NewJob, idempotencyKey?: string): Promise<void>
  deliver(id: string, delivery: Delivery): Promise<void>
  /**
   * Takes a job for finalization that is `delivered`, or that another one had taken. One caller only gets it.
   *
   * @param from the process that had taken it and is gone
   * @returns the job as it is then
   */
  claim(id: string, owner: string, from?: string): Promise<Job | undefined>
  /** Writes how far it came. @returns false when somebody else has taken the job meanwhile: then nothing is written */
  advance(id: string, owner: string, progress: Progress): Promise<boolean>
  job(id: string): Promise<Job | undefined>
  /**
   * `delivered` jobs whose next attempt is due.
   *
   * @param longestPauseMs one that is further away was planned by a clock that has been set back since, and is due
   */
  due(now: number, limit: number, longestPauseMs: number): Promise<Job[]>
  /** All jobs that wait for finalization or are in it. */
  pending(): Promise<Job[]>
  /**
   * Cleans up after a process that is gone: what it was uploading becomes `interrupted`, what it was finalizing
   * `delivered`.
   *
   * @param report hears of each interrupted job before that is written: rather twice than never
   */
  abandon(owner: string, report: (job: Job) => void): Promise<void>
  /** Forgets jobs that were over before, a bounded part at a time. */
  pruneJobs(before: number): Promise<void>
}

export interface HistoryStore {
  history(filter: HistoryFilter): Promise<HistoryEntry[]>
  /** How many entries there are, whatever the limit says. */
  countHistory(filter: Omit<HistoryFilter, 'limit'>): Promise<number>
  /**
   * Forgets older entries, a bounded part at a time. Those of objects that are still to be removed stay.
   *
   * @param among only at these destinations, `provider/configName`; default: all
   * @param but at none of these: links to them need their entries
   * @param keptLinks nor any whose link has this in it
   * @returns how many went
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

export interface IdempotencyStore {
  /** Reserves an idempotency key. @returns false if it is reserved already */
  reserve(
    key: string,
    request: Pick<IdempotencyRecord, 'fingerprint' | 'owner' | 'seed' | 'createdAt'>,
  ): Promise<boolean>
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

/** The processes that use a store. */
export interface OwnerStore {
  /** Writes a heartbeat of a process. */
  beat(owner: string, now: number): Promise<void>
  removeOwner(owner: string): Promise<void>
  /** Processes with a heartbeat, a job in progress or a lock, and the time of the latest of these. */
  owners(): Promise<Map<string, number>>
}

/** Keeps jobs, history and answers. Several processes may share one. */
export interface Store extends JobStore, HistoryStore, LockStore, ExpiryStore, IdempotencyStore, OwnerStore {
  /** Why uploads can't be written down since the last attempt; undefined when that worked, or was not tried. */
  problem(): Error | undefined
  close(): Promise<void>
}
