import { loadConfig } from '../config/load.ts'
import { openStore } from '../server/open-uploader.ts'
import type { HistoryEntry } from '../store/contract.ts'
import { type CommonOptions, oneLine, type Terminal, toJson } from './terminal.ts'

const DAY_MS = 24 * 60 * 60 * 1000

export interface HistoryOptions extends CommonOptions {
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

/** `upload-server history`: what was stored, newest first. */
export async function history(options: HistoryOptions, terminal: Terminal): Promise<number> {
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
