import type { LoadedConfig } from '../../config/load.ts'
import { bytes } from '../../log-lines.ts'
import { openDatabase } from '../../server/open-uploader.ts'
import { findBase } from '../../server/running-server.ts'
import type { HistoryEntry } from '../../store/contract.ts'
import type { Database, DatabaseUse } from '../../store/database.ts'
import { countFiles, findFiles, pruneFiles } from '../../store/history.ts'
import { currentQuotas } from '../../store/quotas.ts'
import { overdue } from '../../store/removals.ts'
import { readDuration, showDuration, showMoment } from '../../times.ts'
import { idOf, splitId } from '../../uploader/destinations.ts'
import { withLinks } from '../../uploader/links.ts'
import { createUrlRewrite } from '../../uploader/url-rewrite.ts'
import { type Call, type OptionsOf, UsageError } from '../define.ts'
import { isWithin, openConfig } from '../open.ts'
import { confirm, oneLine, type Terminal, toJson } from '../terminal.ts'
import type { expiredFlags, flags, pruneFlags, quotasFlags } from './index.ts'

/** Time limit of a query. A search of millions of entries reads all of them, and only the user waits for it. */
const SEARCH_LIMIT_MS = 5 * 60 * 1000

/** Number of entries that are listed. */
const LIMIT = 100

type Where = Pick<OptionsOf<typeof flags>, 'config' | 'destination' | 'all'>

/** Opens the database of the configuration. @throws Error if a destination is named that the configuration does not have */
async function withHistory<T>(
  options: Where,
  use: DatabaseUse,
  terminal: Terminal,
  work: (database: Database, config: LoadedConfig) => Promise<T>,
): Promise<T> {
  const { destination, all } = options
  const config = await openConfig(options, terminal)
  // A typing error must not look like an empty list.
  if (!all && !ownOf(config).some(id => isWithin(id, destination)))
    throw new Error(
      `"${destination}" is not a destination of this configuration. Add --all to search other destinations, too.`,
    )
  const database = openDatabase(config, use, SEARCH_LIMIT_MS)
  try {
    return await work(database, config)
  } finally {
    await database.close()
  }
}

/** All destinations of the configuration, including invalid ones, which may have a history. */
const ownOf = ({ destinations, leftOut }: LoadedConfig): string[] => [...destinations, ...leftOut].map(idOf)

/** @returns undefined: all */
function destinationsMeant({ destination, all }: Where, config: LoadedConfig): string[] | undefined {
  if (!all) return ownOf(config).filter(id => isWithin(id, destination))
  if (destination !== undefined && !destination.includes('/'))
    throw new Error('With --all, write the destination "provider/configName".')
  return destination === undefined ? undefined : [destination]
}

/** `upload-server history`: lists uploaded files, newest first. */
export async function run({ options }: Call<typeof flags>, terminal: Terminal): Promise<number> {
  const { destination, search, name, link, caller, sha256, since, until, all, limit = LIMIT } = options
  return withHistory(options, 'read', terminal, async (database, config) => {
    const filter = { destination, text: search, name, link, caller, sha256, since, before: until, limit }
    const kept = await database.read(db =>
      findFiles(db, { ...filter, among: all ? undefined : ownOf(config) }),
    )
    const found = await withLinksOf(kept, config)
    return list(found.map(toObject), toLines(found), `No files found${all ? '' : HERE}.`, options, terminal)
  })
}

const HERE = ' at the destinations of this configuration. Add --all to include other destinations'

/** Prints a list as lines or as JSON, and on standard error that it is empty. */
function list(
  objects: readonly object[],
  lines: readonly string[],
  none: string,
  { json }: { readonly json?: boolean },
  terminal: Terminal,
): number {
  for (const line of json ? [toJson(objects)] : lines.map(oneLine)) terminal.print(line)
  if (objects.length === 0) terminal.note(none)
  return 0
}

/** Entries with links instead of kept URLs. */
async function withLinksOf(kept: readonly HistoryEntry[], config: LoadedConfig): Promise<HistoryEntry[]> {
  const rules = config.destinations.map(({ type, name, common }) => ({
    id: idOf({ type, name }),
    rewriteUrl: createUrlRewrite(common.urlRewrite ?? []),
  }))
  const bases = new Map<string, Promise<string>>()
  const baseOf = ({ destination, location }: HistoryEntry) => {
    const { type, name = '' } = splitId(destination)
    const base = bases.get(destination + location) ?? findBase(config, { type, name, location })
    bases.set(destination + location, base)
    return base
  }
  return Promise.all(kept.map(async entry => withLinks(entry, await baseOf(entry), rules)))
}

const toTime = (at: number) => new Date(at).toISOString()

const toObject = ({ time, expiresAt, removedAt, location, ...entry }: HistoryEntry) => ({
  time: toTime(time),
  ...entry,
  ...(expiresAt !== undefined && { expiresAt: toTime(expiresAt) }),
  ...(removedAt !== undefined && { removedAt: toTime(removedAt) }),
})

/** Time, destination, size, client, expiry, name and link, in columns. */
function toLines(found: readonly HistoryEntry[]): string[] {
  const rows = found.map(({ time, destination, size, caller, expiresAt, removedAt, origin, url }) => {
    const kept = expiresAt === undefined ? 'never expires' : `expires ${showMoment(expiresAt)}`
    const end = removedAt === undefined ? kept : `removed ${showMoment(removedAt)}`
    return [showMoment(time), destination, String(size), caller, end, `${origin}  ${url}`].map(oneLine)
  })
  const widthOf = (column: number) => rows.reduce((most, row) => Math.max(most, row[column]?.length ?? 0), 0)
  const widths = [0, 1, 2, 3, 4].map(widthOf)
  const pad = (text: string, column: number) =>
    column === 2 ? text.padStart(widths[column] ?? 0) : text.padEnd(widths[column] ?? 0)
  return rows.map(row => row.map(pad).join('  '))
}

/** `upload-server history prune AGE`: deletes old entries, and no file. */
export async function prune(
  { words: [age = ''], options }: Call<typeof pruneFlags>,
  terminal: Terminal,
): Promise<number> {
  const ageMs = readDuration(age)
  if (ageMs === undefined) throw new UsageError(`"${age}" is not an age such as 12h or 365d.`)
  return withHistory(options, 'change', terminal, async (database, config) => {
    const before = Date.now() - ageMs
    const linked = config.destinations.filter(({ common }) => common.link === 'redirect').map(idOf)
    const among = destinationsMeant(options, config)?.filter(id => !linked.includes(id))
    const older = `older than ${showDuration(ageMs)}`
    if (!options.yes) {
      const count = await database.read(db => countFiles(db, { before, among }))
      const question = `Delete ${entries(count)} ${older} from the history? The files are kept.`
      if (count > 0 && !(await confirm(question, 'Add --yes to delete the entries.', terminal))) return 1
    }
    const gone = await pruneFiles(database, before, {
      but: linked,
      ...(among && { among }),
      // Entries that redirect links of other servers need are kept, because this configuration does not know those.
      ...(options.all && { keptLinks: '/links/' }),
    })
    terminal.note(`Deleted ${entries(gone)} ${older} from the history. The files are kept.`)
    return 0
  })
}

const entries = (count: number) => (count === 1 ? '1 entry' : `${count} entries`)

/** `upload-server history quotas`: what clients have used in the current windows. */
export async function listQuotas({ options }: Call<typeof quotasFlags>, terminal: Terminal): Promise<number> {
  const rows = await withHistory(options, 'read', terminal, database => database.read(currentQuotas))
  const objects = rows.map(({ startsAt, windowMs, ...row }) => ({
    ...{ since: toTime(startsAt), per: showDuration(windowMs), ...row },
  }))
  const lines = rows.map(({ startsAt, windowMs, client, files, bytes: size }) =>
    [showMoment(startsAt), showDuration(windowMs), client, `${files} files, ${bytes(size)}`].join('  '),
  )
  return list(objects, lines, 'No client has used a quota in the current windows.', options, terminal)
}

/** `upload-server history expired`: files that should have been deleted, and why they are still there. */
export async function listExpired(
  { options }: Call<typeof expiredFlags>,
  terminal: Terminal,
): Promise<number> {
  return withHistory(options, 'read', terminal, async (database, config) => {
    const among = destinationsMeant(options, config)
    const late = await database.read(db => overdue(db, Date.now(), among, options.limit ?? LIMIT))
    const objects = late.map(({ dueAt, ...one }) => ({ dueAt: toTime(dueAt), ...one }))
    const lines = late.map(({ dueAt, destination, key, attempts, problem }) => {
      const why = problem === undefined ? 'not attempted yet' : `${attempts} attempts failed: ${problem}`
      return [`due ${showMoment(dueAt)}`, destination, key, why].join('  ')
    })
    return list(objects, lines, `No expired files are left${options.all ? '' : HERE}.`, options, terminal)
  })
}
