import type { LoadedConfig } from '../../config/load.ts'
import { loadConfig } from '../../config/load.ts'
import { bytes } from '../../log-lines.ts'
import { keysOf } from '../../members.ts'
import { openDatabase } from '../../server/open-uploader.ts'
import type { HistoryEntry } from '../../store/contract.ts'
import type { Database } from '../../store/database.ts'
import { countFiles, findFiles, type HistoryFilter, pruneFiles } from '../../store/history.ts'
import { currentQuotas } from '../../store/quotas.ts'
import { overdue } from '../../store/removals.ts'
import { showDuration } from '../../times.ts'
import { idOf } from '../../uploader/destinations.ts'
import { confirm } from '../confirm.ts'
import type { Call, OptionsOf } from '../define.ts'
import { oneLine, type Terminal, toJson } from '../terminal.ts'
import type { flags } from './index.ts'
import { withLinksOf } from './links.ts'

type Options = OptionsOf<typeof flags>

const DAY_MS = 24 * 60 * 60 * 1000
/** Time limit of a query. A search of millions of entries reads all of them, and nobody but the user waits for it. */
const SEARCH_LIMIT_MS = 5 * 60 * 1000

/** Number of entries that are listed. */
const LIMIT = 100

/** What a list or an action accepts besides itself. The list of uploaded files accepts everything but --yes. */
const ACCEPTED = {
  prune: ['destination', 'all', 'yes'],
  expired: ['destination', 'all', 'limit', 'json'],
  quotas: ['json'],
} as const

/** `upload-server history`: lists uploaded files, newest first. */
export async function run({ options }: Call<typeof flags>, terminal: Terminal): Promise<number> {
  assertFits(options)
  const config = await loadConfig({ ...terminal, file: options.config })
  terminal.learn(config.secrets)
  const { destination, all } = options
  if (options.prune !== undefined && !options.yes && !terminal.canAsk)
    throw new Error('Could not ask for confirmation without a terminal. Add --yes to delete the entries.')
  if (!all && !ownOf(config).some(id => isAt(id, destination)))
    throw new Error(
      `"${destination}" is not a destination of this configuration. Add --all to search other destinations, too.`,
    )
  const database = openDatabase(config, options.prune === undefined ? 'read' : 'change', SEARCH_LIMIT_MS)
  try {
    if (options.prune !== undefined) return await prune(options.prune, options, config, database, terminal)
    if (options.quotas) return await listQuotas(options, database, terminal)
    if (options.expired) return await listOverdue(options, config, database, terminal)
    const filter = toFilter(options, config)
    const kept = await database.read(db => findFiles(db, { ...filter, limit: options.limit ?? LIMIT }))
    const entries = await withLinksOf(kept, config)
    if (options.json) terminal.print(toJson(entries.map(describe)))
    else for (const line of toLines(entries)) terminal.print(line)
    if (entries.length === 0) await noteNothing(filter, database, terminal)
    return 0
  } finally {
    await database.close()
  }
}

/** @throws Error if an option would be ignored: then more would be listed or deleted than was asked for */
function assertFits({ config, ...options }: Options): void {
  const given = keysOf(options)
  const mode = keysOf(ACCEPTED).find(name => given.includes(name))
  if (mode === undefined && options.yes) throw new Error('--yes requires --prune.')
  if (mode === undefined) return
  const accepted: readonly string[] = ACCEPTED[mode]
  const extra = given.find(name => name !== mode && !accepted.includes(name))
  if (extra !== undefined)
    throw new Error(
      `--${extra} cannot be used with --${mode}, which accepts only: ${accepted.map(name => `--${name}`).join(', ')}.`,
    )
}

function toFilter(options: Options, config: LoadedConfig): Omit<HistoryFilter, 'limit'> {
  const { destination, all, search, name, link, caller, sha256, days, since } = options
  return {
    destination,
    text: search,
    name,
    link,
    caller,
    sha256,
    among: all ? undefined : ownOf(config),
    since: since ?? (days === undefined ? undefined : Date.now() - days * DAY_MS),
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

async function prune(
  days: number,
  options: Options,
  config: LoadedConfig,
  database: Database,
  terminal: Terminal,
): Promise<number> {
  const before = Date.now() - days * DAY_MS
  const linked = config.destinations.filter(({ common }) => common.link === 'redirect').map(idOf)
  const among = destinationsMeant(options, config)?.filter(id => !linked.includes(id))
  // Entries that redirect links of other servers need are kept, because this configuration does not know those.
  const keptLinks = options.all ? '/links/' : undefined
  const older = `older than ${days} days`
  if (terminal.canAsk && !options.yes) {
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
}

/** @returns undefined: all */
function destinationsMeant({ destination, all }: Options, config: LoadedConfig): string[] | undefined {
  if (!all) return ownOf(config).filter(id => isAt(id, destination))
  if (destination !== undefined && !destination.includes('/'))
    throw new Error('With --all, --prune and --expired require a destination written "provider/configName".')
  return destination === undefined ? undefined : [destination]
}

const isAt = (id: string, destination: string | undefined) =>
  destination === undefined || id === destination || id.startsWith(`${destination}/`)

const entries = (count: number) => (count === 1 ? '1 entry' : `${count} entries`)

async function listQuotas({ json }: Options, database: Database, terminal: Terminal): Promise<number> {
  const rows = await database.read(currentQuotas)
  const shown = rows.map(({ startsAt, windowMs, ...row }) => ({
    since: new Date(startsAt).toISOString(),
    per: showDuration(windowMs),
    ...row,
  }))
  if (json) terminal.print(toJson(shown))
  else
    for (const [n, { per, client, files, bytes: size }] of shown.entries())
      terminal.print(
        oneLine(`${momentOf(rows[n]?.startsAt ?? 0)}  ${per}  ${client}  ${files} files, ${bytes(size)}`),
      )
  if (rows.length === 0) terminal.note('No client has used a quota in the current windows.')
  return 0
}

async function listOverdue(
  options: Options,
  config: LoadedConfig,
  database: Database,
  terminal: Terminal,
): Promise<number> {
  const { limit = LIMIT, json } = options
  const among = destinationsMeant(options, config)
  const late = await database.read(db => overdue(db, Date.now(), among, limit))
  if (json) {
    const told = late.map(({ dueAt, ...one }) => ({ dueAt: new Date(dueAt).toISOString(), ...one }))
    terminal.print(toJson(told))
  } else {
    for (const { dueAt, destination: where, key, attempts, problem } of late) {
      const why = problem === undefined ? 'not attempted yet' : `${attempts} attempts failed: ${problem}`
      terminal.print(oneLine(`due ${momentOf(dueAt)}  ${where}  ${key}  ${why}`))
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
    ahead: [momentOf(time), destination, String(size), caller, endOf(entry)].map(oneLine),
    behind: oneLine(`${origin}  ${url}`),
  }))
  const widths = [0, 1, 2, 3, 4].map(column =>
    Math.max(...rows.map(({ ahead }) => ahead[column]?.length ?? 0)),
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
  if (removedAt !== undefined) return `removed ${momentOf(removedAt)}`
  return expiresAt === undefined ? 'never expires' : `expires ${momentOf(expiresAt)}`
}

function momentOf(time: number): string {
  return new Date(time).toISOString().replace('T', ' ').slice(0, 19)
}
