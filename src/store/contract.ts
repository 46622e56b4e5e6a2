/**
 * The state of an upload. `uploading`: begun. `stored`: everything is stored, but post-upload steps are pending or running.
 * `done`: all done. `failed`: some files could not be stored, or the process ended during the upload.
 */
export type UploadState = 'uploading' | 'stored' | 'done' | 'failed'

/** History entry of a file. */
export interface FileEntry {
  /** Index of the input in the request. */
  readonly index: number
  readonly origin: string
  readonly url: string
  readonly key: string
  /** Bytes. */
  readonly size: number
  readonly contentType: string
  readonly sha256: string
  readonly deleteUrl?: string | undefined
  /** When the file expires, milliseconds since the epoch. Absent if it never does. */
  readonly expiresAt?: number | undefined
  /** Location of the destination that stores the file, up to where the object key begins. */
  readonly location: string
}

/** One stored file, as the history keeps it. An entry may be sensitive: over HTTP, clients only get some of their own. */
export interface HistoryEntry extends FileEntry {
  /** When its upload began, milliseconds since the epoch. */
  readonly time: number
  readonly jobId: string
  /** `provider/configName`. */
  readonly destination: string
  readonly caller: string
  readonly requestId: string
  /** When the file was removed, milliseconds since the epoch. */
  readonly removedAt?: number | undefined
}

/** One file of an upload, stored at a destination. */
export interface StoredFile extends FileEntry {
  /** `provider/configName`: that of the upload, or its fallback. */
  readonly destination: string
  readonly mirrors?: readonly Copy[] | undefined
}

/** A copy of a file at a mirror, or why there is none. */
export interface Copy {
  /** `provider/configName`. */
  readonly destination: string
  readonly key?: string
  readonly url?: string
  readonly location?: string
  readonly error?: string
}

/** A file that could not be stored. */
export interface FailedFile {
  readonly index: number
  readonly code: string
  /** For the client. */
  readonly message: string
}

/** The state of one request to upload. Its ID is the `finalizationId`. */
export interface Upload {
  readonly id: string
  readonly state: UploadState
  /** The process that works on it. Empty: none. */
  readonly owner: string
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  readonly endedAt: number | undefined
  readonly caller: string
  /** `provider/configName`. */
  readonly destination: string
  readonly requestId: string
  /** The inputs of the request, in order. */
  readonly origins: readonly string[]
  /** In order. */
  readonly files: readonly StoredFile[]
  readonly failed: readonly FailedFile[]
  /** Names of the completed post-upload steps. */
  readonly steps: readonly string[]
  /** Number of failed attempts at the post-upload steps. */
  readonly attempts: number
  /** Why the last attempt failed. */
  readonly problem: string | undefined
}

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
