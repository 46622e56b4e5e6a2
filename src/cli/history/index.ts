import { readDuration, readTime } from '../../times.ts'
import { defineCommand, type Flags } from '../define.ts'
import { config, count, destination, grouped, text } from '../flags.ts'

const hash = {
  shown: 'hash',
  read(typed: string): string {
    if (!/^[0-9a-f]{4,64}$/i.test(typed)) throw new Error('Must be 4 to 64 hexadecimal digits.')
    return typed.toLowerCase()
  },
}

/** Milliseconds since the epoch. */
const time = {
  shown: 'when',
  read(typed: string): number {
    const ago = readDuration(typed) || undefined
    const at =
      ago === undefined ? readTime(typed.length === 10 ? `${typed}T00:00:00Z` : typed) : Date.now() - ago
    if (at === undefined)
      throw new Error('Must be a time such as 12h, 7d, 2026-11-01 or 2026-11-01T18:00:00Z.')
    return at
  },
}

const days = { ...count, shown: 'days' }

const filters = {
  destination: { about: 'only this destination: "provider" or "provider/configName"', value: destination },
  all: { about: 'include destinations that are not in the configuration' },
  search: { about: 'only files whose name or URL contains this text', value: text('text') },
  name: { about: 'only files whose name contains this text', value: text('text') },
  link: { about: 'only files whose URL contains this text', value: text('text') },
  caller: { about: 'only files of clients whose key name contains this text', value: text('text') },
  sha256: {
    about: 'only files with this SHA-256 hash, or with one that begins with it',
    value: hash,
  },
  days: { about: 'only files of the last n days', value: count },
  since: {
    about: 'only files uploaded since: 12h, 7d, 2026-11-01, or an RFC 3339 timestamp',
    value: time,
  },
} as const satisfies Flags

const output = {
  limit: { about: 'maximum number of entries (default: 100)', value: count },
  json: { about: 'print JSON' },
} as const satisfies Flags

const others = {
  expired: { about: 'list expired files that have not been deleted yet, with the reason' },
  quotas: { about: 'list what clients have used of their quotas in the current windows' },
  prune: { about: 'delete history entries older than this; the files are kept', value: days },
  yes: { about: 'with --prune: do not ask for confirmation', needs: 'prune' },
} as const satisfies Flags

export const flags = {
  config,
  ...grouped('Filters', filters),
  ...grouped('Output', output),
  ...grouped('Other lists and actions', others),
} as const satisfies Flags

export const history = defineCommand({
  name: 'history',
  about: 'list uploaded files, newest first',
  flags,
  examples: [
    ['upload-server history --days 7 --search screenshot'],
    ['upload-server history --caller alice --since 2026-11-01 --json'],
    ['upload-server history --prune 365 --destination s3/ci --yes'],
  ],
  notes: `Times are in UTC. --search, --name, --link and --caller are case-insensitive. Of the filters, --prune and --expired accept only
--destination and --all.`,
  load: () => import('./run.ts'),
})
