/** The quota of one client in fixed windows. At least one of `files` and `bytes` is there. */
export interface QuotaRule {
  /** Name of the client whose uploads count. */
  readonly client: string
  /** Name of the upload key or the like that has the quota, for metrics. Never a person. */
  readonly group: string
  readonly files?: number | undefined
  readonly bytes?: number | undefined
  /** Length of a window, milliseconds. The first one began at the epoch. */
  readonly windowMs: number
}

/** Something to upload. */
export interface QuotaRequest {
  /** All of them must have room. */
  readonly rules: readonly QuotaRule[]
  readonly bytes: number
  /** Whether to ask other processes for what they don't use, if there is no room. */
  readonly isRecall?: boolean
}

/** A part of a window that a process has reserved and not used. */
export interface QuotaPart {
  readonly client: string
  readonly windowMs: number
  readonly startsAt: number
  readonly files: number
  readonly bytes: number
}

/** The state of a quota. */
export interface QuotaWindow {
  readonly rule: QuotaRule
  /** Milliseconds since the epoch, by the clock of the database. */
  readonly startsAt: number
  readonly now: number
  /** Files and bytes that are uploaded or being uploaded. */
  readonly files: number
  readonly bytes: number
}

export interface QuotaReply {
  /** Whether room was reserved in all windows. */
  readonly isGranted: boolean
  /** The windows of the rules, in their order, with what was reserved. */
  readonly windows: readonly QuotaWindow[]
  /** Slices of the windows, reserved for later uploads of the process. */
  readonly slices?: readonly QuotaPart[]
  /** Whether other processes have not said yet what they don't use. */
  readonly isRecalling?: boolean
}

/** What a job reserved in a window, and what it has used of it. */
export interface QuotaUse {
  readonly client: string
  readonly windowMs: number
  readonly startsAt: number
  readonly reservedFiles: number
  readonly reservedBytes: number
  readonly usedFiles: number
  readonly usedBytes: number
}

/** The use of a quota in a window that has not ended, by all servers. */
export interface QuotaRow {
  readonly client: string
  readonly windowMs: number
  readonly startsAt: number
  readonly files: number
  readonly bytes: number
}

/** Lets a process reserve more than its requests need, so that the next ones need no transaction. */
export interface QuotaSlicing {
  /** What it has left of earlier slices, and returns. */
  readonly returned: readonly QuotaPart[]
}

/**
 * Quotas. Each process has rows of its own, which tell what it has used and reserved, so that what a process reserved that
 * has ended is given back. A reservation adds the rows of all processes, and locks the client while it does.
 */
export interface QuotaStore {
  /** Reserves room for uploads, all in one transaction. Requests of a client are granted in their order. */
  reserveQuota(
    owner: string,
    requests: readonly QuotaRequest[],
    slicing?: QuotaSlicing,
  ): Promise<QuotaReply[]>
  /** Returns what a process has reserved and does not need, and answers recalls. */
  returnQuota(owner: string, parts: readonly QuotaPart[]): Promise<void>
  /** Windows of which another process needs what this one does not use. */
  recalledQuotas(owner: string): Promise<Pick<QuotaPart, 'client' | 'windowMs' | 'startsAt'>[]>
  /** The windows of rules now, in their order. */
  quotaWindows(rules: readonly QuotaRule[]): Promise<QuotaWindow[]>
  /** The rows of windows that have not ended. */
  quotaRows(): Promise<QuotaRow[]>
  /** Deletes the rows of windows that have ended. */
  pruneQuotas(): Promise<void>
}
