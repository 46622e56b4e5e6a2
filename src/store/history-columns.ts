import type { Selectable } from '../packages/kysely.ts'
import type { HistoryEntry, StoredFile } from './contract.ts'

/** What of an entry tells of the file, by the names of its columns. */
const FILE = {
  index: 'position',
  origin: 'origin',
  url: 'url',
  key: 'key',
  size: 'size',
  contentType: 'content_type',
  sha256: 'sha256',
  deleteUrl: 'delete_url',
  expiresAt: 'expires_at',
  place: 'place',
} as const satisfies Partial<Record<keyof StoredFile, string>>

/** The history: a property of `HistoryEntry` is kept by a line here or above, and a migration. */
export const HISTORY = {
  ...FILE,
  time: 'time',
  jobId: 'job_id',
  destination: 'destination',
  caller: 'caller',
  requestId: 'request_id',
  removedAt: 'removed_at',
} as const satisfies Record<keyof HistoryEntry, string>

type Columns = typeof HISTORY

/** The row of an entry; what it leaves out is null. */
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

// What TypeScript does not follow through the loop: both are made from the tables above, as the types of rows are.
export const toEntry = read(HISTORY) as (row: HistoryRow) => HistoryEntry
/** Without its destination and its mirrors, which the history does not know as the file's. */
export const toFile = read(FILE) as (row: HistoryRow) => StoredFile
