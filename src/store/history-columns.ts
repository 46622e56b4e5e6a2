import type { Selectable } from '../packages/kysely.ts'

/** What the history keeps of a file. A job keeps the same of its files. */
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
  /** Location of the destination that stores the file, up to where the object key begins. Earlier programs wrote none. */
  readonly location?: string | undefined
}

/** One stored file, as the history keeps it. An entry may be sensitive: over HTTP, clients only get some of their own. */
export interface HistoryEntry extends FileEntry {
  /** Milliseconds since the epoch. */
  readonly time: number
  readonly jobId: string
  /** `provider/configName`. */
  readonly destination: string
  readonly caller: string
  readonly requestId: string
  /** When the file was removed, milliseconds since the epoch. */
  readonly removedAt?: number | undefined
}

const FILE_COLUMNS = {
  index: 'position',
  origin: 'origin',
  url: 'url',
  key: 'key',
  size: 'size',
  contentType: 'content_type',
  sha256: 'sha256',
  deleteUrl: 'delete_url',
  expiresAt: 'expires_at',
  location: 'place',
} as const satisfies Record<keyof FileEntry, string>

/** The column of each property. Statements, rows and entries are made from this table. */
export const HISTORY_COLUMNS = {
  ...FILE_COLUMNS,
  time: 'time',
  jobId: 'job_id',
  destination: 'destination',
  caller: 'caller',
  requestId: 'request_id',
  removedAt: 'removed_at',
} as const satisfies Record<keyof HistoryEntry, string>

type Columns = typeof HISTORY_COLUMNS

/** The row of an entry. An absent property is null. */
export type HistoryRow = {
  [Name in keyof Columns as Columns[Name]]: undefined extends HistoryEntry[Name]
    ? Exclude<HistoryEntry[Name], undefined> | null
    : HistoryEntry[Name]
}

const read = (columns: Readonly<Record<string, keyof HistoryRow>>) => {
  const pairs = Object.entries(columns)
  return (row: Selectable<HistoryRow>): object => {
    const found: Record<string, unknown> = {}
    for (const [name, column] of pairs) if (row[column] !== null) found[name] = row[column]
    return found
  }
}

// TypeScript does not follow names through the loop. Each result has the properties of the table that it is read with.
export const toEntry = read(HISTORY_COLUMNS) as (row: HistoryRow) => HistoryEntry
export const toFile = read(FILE_COLUMNS) as (row: HistoryRow) => FileEntry
