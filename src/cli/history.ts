import { type Command, InvalidArgumentError } from 'commander'
import type { LoadedConfig } from '../config/load.ts'
import { loadConfig } from '../config/load.ts'
import { openStore } from '../server/open-uploader.ts'
import type { HistoryEntry, HistoryFilter, Store } from '../store/contract.ts'
import { idOf } from '../uploader/delivery/destinations.ts'
import { readDuration, readTime } from '../uploader/expires.ts'
import { configOption, endWith, parseCount } from './command.ts'
import { confirm } from './confirm.ts'
import { type CommonOptions, oneLine, type Terminal, toJson } from './terminal.ts'

const DAY_MS = 24 * 60 * 60 * 1000

interface HistoryOptions extends CommonOptions {
  /** `provider` or `provider/configName`. */
  destination?: string
  /** Whether entries of destinations count that the configuration does not have. */
  all?: boolean
  /** A part of a name or an address. */
  search?: string
  name?: string
  link?: string
  caller?: string
  sha256?: string
  /** Days back. */
  days?: number
  /** Milliseconds since the epoch. */
  since?: number
  limit: number
  json?: boolean
  expired?: boolean
  /** Days whose entries stay. */
  prune?: number
  yes?: boolean
}

export function register(program: Command, terminal: Terminal): void {
  program
    .command('history')
    .description('list what was stored, newest first')
    .addOption(configOption())
    .option('--destination <id>', 'only there: "provider" or "provider/configName"')
    .option('--all', 'also of destinations that this configuration does not have')
    .option('--search <text>', 'only what has this in its name or address')
    .option('--name <text>', 'only what has this in its name')
    .option('--link <text>', 'only what has this in its address')
    .option('--caller <text>', 'only of callers whose name has this')
    .option('--sha256 <hash>', 'only these bytes')
    .option('--days <n>', 'only of the last days', parseCount)
    .option('--since <when>', 'only what came since: 12h, 7d, 2026-11-01, or a time of RFC 3339', parseSince)
    .option('--limit <n>', 'most entries', parseCount, 100)
    .option('--json', 'as JSON')
    .option('--expired', 'list what should be gone instead, and why it is not')
    .option('--prune <days>', 'forget entries older than this instead; files stay', parseCount)
    .option('--yes', 'forget without asking')
    .addHelpText(
      'after',
      `
Examples:
  upload-server history --days 7 --search screenshot
  upload-server history --caller alice --since 2026-11-01 --json
  upload-server history --prune 365 --destination s3/ci

Times are in UTC. --name, --link and --caller take a part, in capitals or not.`,
    )
    .action((options: HistoryOptions) => endWith(terminal, history(options, terminal)))
}

function parseSince(text: string): number {
  const ago = readDuration(text)
  const at = ago === undefined ? readTime(text.length === 10 ? `${text}T00:00:00Z` : text) : Date.now() - ago
  if (at === undefined)
    throw new InvalidArgumentError('A time is written 12h, 7d, 2026-11-01 or 2026-11-01T18:00:00Z.')
  return at
}

/** `upload-server history`: what was stored, newest first. */
async function history(options: HistoryOptions, terminal: Terminal): Promise<number> {
  const config = await loadConfig({ ...terminal, file: options.config })
  terminal.learn(config.secrets)
  const { destination, all } = options
  if (!all && !ownOf(config).some(id => isAt(id, destination)))
    throw new Error(`${destination} is no destination of this configuration. With --all it may be any other.`)
  const store = openStore(config)
  try {
    if (options.prune !== undefined) return await prune(options.prune, options, config, store, terminal)
    if (options.expired) return await listOverdue(options, config, store, terminal)
    const filter = toFilter(options, config)
    const entries = await store.history({ ...filter, limit: options.limit })
    if (options.json) terminal.print(toJson(entries.map(describe)))
    else for (const line of toLines(entries)) terminal.print(line)
    if (entries.length === 0) await noteNothing(filter, store, terminal)
    return 0
  } finally {
    await store.close()
  }
}

function toFilter(options: HistoryOptions, config: LoadedConfig): Omit<HistoryFilter, 'limit'> {
  const { destination, all, search, name, link, caller, sha256, days, since } = options
  return {
    ...{ destination, text: search, name, link, caller, sha256 },
    among: all ? undefined : ownOf(config),
    since: since ?? (days === undefined ? undefined : Date.now() - days * DAY_MS),
  }
}

/** Those that can't be used now have a history, too. */
const ownOf = ({ destinations, leftOut }: LoadedConfig): string[] => [...destinations, ...leftOut].map(idOf)

async function noteNothing(
  { among, ...filter }: Omit<HistoryFilter, 'limit'>,
  store: Store,
  terminal: Terminal,
): Promise<void> {
  const hidden = among && (await store.history({ ...filter, limit: 1 })).length > 0
  terminal.note(
    hidden
      ? 'Nothing was found at the destinations of this configuration. With --all there is something at others.'
      : 'Nothing was found.',
  )
}

async function prune(
  days: number,
  options: HistoryOptions,
  config: LoadedConfig,
  store: Store,
  terminal: Terminal,
): Promise<number> {
  const before = Date.now() - days * DAY_MS
  const linked = config.destinations.filter(({ common }) => common.link === 'redirect').map(idOf)
  const among = destinationsMeant(options, config)?.filter(id => !linked.includes(id))
  // What links of other servers need, this configuration does not know.
  const keptLinks = options.all ? '/links/' : undefined
  const older = `older than ${days} days`
  if (terminal.canAsk && !options.yes) {
    const count = await store.countHistory({ before, among })
    const question = `Forget ${entries(count)} ${older}? The files stay where they are.`
    if (count > 0 && !(await confirm(question, false, true, terminal))) return 1
  }
  const gone = await store.pruneHistory(before, among, linked, keptLinks)
  terminal.note(`${entries(gone)} ${older} removed; the files stay where they are.`)
  return 0
}

/** @returns undefined: all */
function destinationsMeant({ destination, all }: HistoryOptions, config: LoadedConfig): string[] | undefined {
  if (!all) return ownOf(config).filter(id => isAt(id, destination))
  if (destination !== undefined && !destination.includes('/'))
    throw new Error('With --all, --prune and --expired take a destination written "provider/configName".')
  return destination === undefined ? undefined : [destination]
}

const isAt = (id: string, destination: string | undefined) =>
  destination === undefined || id === destination || id.startsWith(`${destination}/`)

const entries = (count: number) => (count === 1 ? '1 entry' : `${count} entries`)

async function listOverdue(
  options: HistoryOptions,
  config: LoadedConfig,
  store: Store,
  terminal: Terminal,
): Promise<number> {
  const { limit, json } = options
  const among = destinationsMeant(options, config)
  const overdue = await store.overdue(Date.now(), among, limit)
  if (json) {
    const told = overdue.map(({ dueAt, ...one }) => ({ dueAt: new Date(dueAt).toISOString(), ...one }))
    terminal.print(toJson(told))
  } else {
    for (const { dueAt, destination: where, key, attempts, problem } of overdue) {
      const why = problem === undefined ? 'not tried yet' : `${attempts} attempts failed: ${problem}`
      terminal.print(oneLine(`due ${momentOf(dueAt)}  ${where}  ${key}  ${why}`))
    }
  }
  if (overdue.length === 0) {
    const isElsewhere = !options.all && (await store.overdue(Date.now(), undefined, 1)).length > 0
    terminal.note(
      isElsewhere
        ? 'Nothing that should be gone is still there at these destinations. With --all there is something at others.'
        : 'Nothing that should be gone is still there.',
    )
  }
  return 0
}

function describe({ time, contentType, expiresAt, removedAt, ...entry }: HistoryEntry) {
  return {
    time: new Date(time).toISOString(),
    type: contentType,
    ...entry,
    ...(expiresAt !== undefined && { expiresAt: new Date(expiresAt).toISOString() }),
    ...(removedAt !== undefined && { removedAt: new Date(removedAt).toISOString() }),
  }
}

/** Time, destination, size, caller, end, name and link, in columns. */
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
  return expiresAt === undefined ? 'stays' : `until ${momentOf(expiresAt)}`
}

function momentOf(time: number): string {
  return new Date(time).toISOString().replace('T', ' ').slice(0, 19)
}
