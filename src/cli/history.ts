import { type Command, InvalidArgumentError } from 'commander'
import { loadConfig } from '../config/load.ts'
import { openStore } from '../server/open-uploader.ts'
import type { HistoryEntry } from '../store/contract.ts'
import { configOption, endWith } from './command.ts'
import { type CommonOptions, oneLine, type Terminal, toJson } from './terminal.ts'

const DAY_MS = 24 * 60 * 60 * 1000

interface HistoryOptions extends CommonOptions {
  /** `provider` or `provider/configName`. */
  destination?: string
  /** A part of a name or an address. */
  search?: string
  sha256?: string
  /** Days back. */
  days?: number
  limit: number
  json?: boolean
  /** Days whose entries stay. */
  prune?: number
}

export function register(program: Command, terminal: Terminal): void {
  program
    .command('history')
    .description('list what was stored, newest first')
    .addOption(configOption())
    .option('--destination <id>', 'only there: "provider" or "provider/configName"')
    .option('--search <text>', 'only what has this in its name or address')
    .option('--sha256 <hash>', 'only these bytes')
    .option('--days <n>', 'only of the last days', parseCount)
    .option('--limit <n>', 'most entries', parseCount, 100)
    .option('--json', 'as JSON')
    .option('--prune <days>', 'remove entries older than this instead; files stay', parseCount)
    .addHelpText(
      'after',
      `
Examples:
  upload-server history --days 7 --search screenshot
  upload-server history --json --limit 1000
  upload-server history --prune 365`,
    )
    .action((options: HistoryOptions) => endWith(history(options, terminal)))
}

function parseCount(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It is a whole number.')
  return Number(text)
}

/** `upload-server history`: what was stored, newest first. */
async function history(options: HistoryOptions, terminal: Terminal): Promise<number> {
  const config = await loadConfig({ ...terminal, file: options.config })
  terminal.learn(config.secrets)
  const store = openStore(config)
  try {
    if (options.prune !== undefined) {
      const gone = await store.pruneHistory(Date.now() - options.prune * DAY_MS)
      terminal.note(
        `${gone} ${gone === 1 ? 'entry' : 'entries'} older than ${options.prune} days removed; the files stay where they are.`,
      )
      return 0
    }
    const entries = await store.history({
      destination: options.destination,
      text: options.search,
      sha256: options.sha256,
      since: options.days === undefined ? undefined : Date.now() - options.days * DAY_MS,
      limit: options.limit,
    })
    if (options.json) terminal.print(toJson(entries.map(describe)))
    else for (const entry of entries) terminal.print(toLine(entry))
    if (entries.length === 0) terminal.note('Nothing was found.')
    return 0
  } finally {
    await store.close()
  }
}

function describe({ time, contentType, ...entry }: HistoryEntry) {
  return { time: new Date(time).toISOString(), type: contentType, ...entry }
}

function toLine({ time, destination, size, origin, url }: HistoryEntry): string {
  const day = new Date(time).toISOString().replace('T', ' ').slice(0, 19)
  return oneLine(`${day}  ${destination}  ${String(size).padStart(10)}  ${origin}  ${url}`)
}
