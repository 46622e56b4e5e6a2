import type { LoadedConfig } from '../../config/load.ts'
import { loadConfig } from '../../config/load.ts'
import { bytes } from '../../log-lines.ts'
import { openDatabase } from '../../server/open-uploader.ts'
import type { HistoryEntry } from '../../store/contract.ts'
import type { Database, DatabaseUse } from '../../store/database.ts'
import { countFiles, findFiles, type HistoryFilter, pruneFiles } from '../../store/history.ts'
import { currentQuotas } from '../../store/quotas.ts'
import { overdue } from '../../store/removals.ts'
import { readDuration, showDuration, showMoment } from '../../times.ts'
import { idOf } from '../../uploader/destinations.ts'
import { confirm } from '../confirm.ts'
import { type Call, type OptionsOf, UsageError } from '../define.ts'
import { type CommonOptions, oneLine, type Terminal, toJson } from '../terminal.ts'
import type { expiredFlags, flags, pruneFlags, quotasFlags } from './index.ts'
import { withLinksOf } from './links.ts'

/** Time limit of a query. A search of millions of entries reads all of them, and only the user waits for it. */
const SEARCH_LIMIT_MS = 5 * 60 * 1000

/** Number of entries that are listed. */
const LIMIT = 100

/** `upload-server history`: lists uploaded files, newest first. */
export async function run({ options }: Call<typeof flags>, terminal: Terminal): Promise<number> {
  const { destination, all, search, name, link, caller, sha256, since, until, limit = LIMIT, json } = options
  const config = await load(options, terminal)
  assertOwn(options, config)
  const filter = {
    ...{ destination, text: search, name, link, caller, sha256, since, before: until },
    among: all ? undefined : ownOf(config),
  }
  return withDatabase(config, 'read', async database => {
    const kept = await database.read(db => findFiles(db, { ...filter, limit }))
    const entries = await withLinksOf(kept, config)
    if (json) terminal.print(toJson(entries.map(describe)))
    else for (const line of toLines(entries)) terminal.print(line)
    if (entries.length === 0) await noteNothing(filter, database, terminal)
    return 0
  })
}

async function load({ config: file }: CommonOptions, terminal: Terminal): Promise<LoadedConfig> {
  const config = await loadConfig({ ...terminal, file })
  terminal.learn(config.secrets)
  return config
}

type Where = Pick<OptionsOf<typeof pruneFlags>, 'destination' | 'all'>

/** @throws Error if the destination is not one of the configuration, so that a typing error isn't an empty list */
function assertOwn({ destination, all }: Where, config: LoadedConfig): void {
  if (all || ownOf(config).some(id => isAt(id, destination))) return
  throw new Error(
    `"${destination}" is not a destination of this configuration. Add --all to search other destinations, too.`,
  )
}

async function withDatabase<T>(
  config: LoadedConfig,
  use: DatabaseUse,
  work: (database: Database) => Promise<T>,
): Promise<T> {
  const database = openDatabase(config, use, SEARCH_LIMIT_MS)
  try {
    return await work(database)
  } finally {
    await database.close()
  }
}

/** All destinations of the configuration, including invalid ones, which may have a history. */
const ownOf = ({ destinations, leftOut }: LoadedConfig): string[] => [...destinations, ...leftOut].map(idOf)

async function noteNothing(
  { among, ...filter }: Omit<HistoryFilter, 'limit'>,
  database: Database,
  terminal: Terminal,
): Promise<void> {
  const elsewhere = among && (await database.read(db => findFiles(db, { ...filter, limit: 1 })))
  terminal.note(
    elsewhere && elsewhere.length > 0
      ? 'No files found at the destinations of this configuration. Other destinations have some: add --all.'
      : 'No files found.',
  )
}

/** `upload-server history prune AGE`: deletes old entries, and no file. */
export async function prune(
  { words: [age = ''], options }: Call<typeof pruneFlags>,
  terminal: Terminal,
): Promise<number> {
  const ageMs = readDuration(age)
  if (ageMs === undefined) throw new UsageError(`"${age}" is not an age such as 12h or 365d.`)
  const config = await load(options, terminal)
  if (!options.yes && !terminal.canAsk)
    throw new Error('Could not ask for confirmation without a terminal. Add --yes to delete the entries.')
  assertOwn(options, config)
  const before = Date.now() - ageMs
  const linked = config.destinations.filter(({ common }) => common.link === 'redirect').map(idOf)
  const among = destinationsMeant(options, config)?.filter(id => !linked.includes(id))
  // Entries that redirect links of other servers need are kept, because this configuration does not know those.
  const keptLinks = options.all ? '/links/' : undefined
  const older = `older than ${showDuration(ageMs)}`
  return withDatabase(config, 'change', async database => {
    if (!options.yes) {
      const count = await database.read(db => countFiles(db, { before, among }))
      const question = `Delete ${entries(count)} ${older} from the history? The files are kept.`
      if (count > 0 && !(await confirm(question, false, true, terminal))) return 1
    }
    const gone = await pruneFiles(database, before, {
      but: linked,
      ...(among && { among }),
      ...(keptLinks !== undefined && { keptLinks }),
    })
    terminal.note(`Deleted ${entries(gone)} ${older} from the history. The files are kept.`)
    return 0
  })
}

/** @returns undefined: all */
function destinationsMeant({ destination, all }: Where, config: LoadedConfig): string[] | undefined {
  if (!all) return ownOf(config).filter(id => isAt(id, destination))
  if (destination !== undefined && !destination.includes('/'))
    throw new Error('With --all, write the destination "provider/configName".')
  return destination === undefined ? undefined : [destination]
}

const isAt = (id: string, destination: string | undefined) =>
  destination === undefined || id === destination || id.startsWith(`${destination}/`)

const entries = (count: number) => (count === 1 ? '1 entry' : `${count} entries`)

/** `upload-server history quotas`: what clients have used in the current windows. */
export async function listQuotas({ options }: Call<typeof quotasFlags>, terminal: Terminal): Promise<number> {
  const config = await load(options, terminal)
  const rows = await withDatabase(config, 'read', database => database.read(currentQuotas))
  const shown = rows.map(({ startsAt, windowMs, ...row }) => ({
    startsAt,
    per: showDuration(windowMs),
    ...row,
  }))
  if (options.json)
    terminal.print(
      toJson(shown.map(({ startsAt, ...row }) => ({ since: new Date(startsAt).toISOString(), ...row }))),
    )
  else
    for (const { startsAt, per, client, files, bytes: size } of shown)
      terminal.print(oneLine(`${showMoment(startsAt)}  ${per}  ${client}  ${files} files, ${bytes(size)}`))
  if (rows.length === 0) terminal.note('No client has used a quota in the current windows.')
  return 0
}

/** `upload-server history expired`: files that should have been deleted, and why they are still there. */
export async function listExpired(
  { options }: Call<typeof expiredFlags>,
  terminal: Terminal,
): Promise<number> {
  const { limit = LIMIT, json } = options
  const config = await load(options, terminal)
  assertOwn(options, config)
  const among = destinationsMeant(options, config)
  return withDatabase(config, 'read', async database => {
    const late = await database.read(db => overdue(db, Date.now(), among, limit))
    if (json) {
      const told = late.map(({ dueAt, ...one }) => ({ dueAt: new Date(dueAt).toISOString(), ...one }))
      terminal.print(toJson(told))
    } else {
      for (const { dueAt, destination: where, key, attempts, problem } of late) {
        const why = problem === undefined ? 'not attempted yet' : `${attempts} attempts failed: ${problem}`
        terminal.print(oneLine(`due ${showMoment(dueAt)}  ${where}  ${key}  ${why}`))
      }
    }
    if (late.length === 0) {
      const all = options.all ? [] : await database.read(db => overdue(db, Date.now(), undefined, 1))
      terminal.note(
        all.length > 0
          ? 'No expired files are left at these destinations. Other destinations have some: add --all.'
          : 'No expired files are left.',
      )
    }
    return 0
  })
}

function describe({ time, expiresAt, removedAt, location, ...entry }: HistoryEntry) {
  return {
    time: new Date(time).toISOString(),
    ...entry,
    ...(expiresAt !== undefined && { expiresAt: new Date(expiresAt).toISOString() }),
    ...(removedAt !== undefined && { removedAt: new Date(removedAt).toISOString() }),
  }
}

/** Time, destination, size, client, expiry, name and link, in columns. */
function toLines(list: readonly HistoryEntry[]): string[] {
  const rows = list.map(({ time, destination, size, caller, origin, url, ...entry }) => ({
    ahead: [showMoment(time), destination, String(size), caller, endOf(entry)].map(oneLine),
    behind: oneLine(`${origin}  ${url}`),
  }))
  const widths = [0, 1, 2, 3, 4].map(column =>
    rows.reduce((most, { ahead }) => Math.max(most, ahead[column]?.length ?? 0), 0),
  )
  return rows.map(({ ahead, behind }) => {
    const columns = ahead.map((text, column) => {
      const width = widths[column] ?? 0
      return column === 2 ? text.padStart(width) : text.padEnd(width)
    })
    return [...columns, behind].join('  ')
  })
}

function endOf({ expiresAt, removedAt }: Pick<HistoryEntry, 'expiresAt' | 'removedAt'>): string {
  if (removedAt !== undefined) return `removed ${showMoment(removedAt)}`
  return expiresAt === undefined ? 'never expires' : `expires ${showMoment(expiresAt)}`
}
