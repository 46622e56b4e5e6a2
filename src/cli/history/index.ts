import { readMoment } from '../../times.ts'
import { defineCommand, type Flag, type Flags, type Value } from '../define.ts'
import { config, count, destination, grouped, text } from '../flags.ts'

const hash = {
  shown: 'hash',
  must: '4 to 64 hexadecimal digits',
  read: (typed: string) => (/^[0-9a-f]{4,64}$/i.test(typed) ? typed.toLowerCase() : undefined),
} as const satisfies Value

/** Milliseconds since the epoch. */
const moment = {
  shown: 'when',
  must: 'a time such as 12h, yesterday, 2026-11-01 or 2026-11-01T18:00:00Z',
  read: (typed: string) => readMoment(typed, Date.now()),
} as const satisfies Value

const where = {
  destination: { about: 'only this destination: "provider" or "provider/configName"', value: destination },
  all: { about: 'include destinations that are not in the configuration' },
} as const satisfies Flags

const limit = { about: 'maximum number of entries (default: 100)', value: count } as const satisfies Flag
const json = { about: 'print JSON' } as const satisfies Flag

const filters = {
  ...where,
  search: { about: 'only files whose name or URL contains this text', value: text('text') },
  name: { about: 'only files whose name contains this text', value: text('text') },
  link: { about: 'only files whose URL contains this text', value: text('text') },
  caller: { about: 'only files of clients whose key name contains this text', value: text('text') },
  sha256: {
    about: 'only files with this SHA-256 hash, or with one that begins with it',
    value: hash,
  },
  since: {
    about: 'only files uploaded since: 12h, 7d, today, yesterday, 2026-11-01, or an RFC 3339 timestamp',
    value: moment,
  },
  until: { about: 'only files uploaded before, in the same formats', value: moment },
} as const satisfies Flags

export const flags = {
  config,
  ...grouped('Filters', filters),
  ...grouped('Output', { limit, json }),
} as const satisfies Flags

export const quotasFlags = { config, json } as const satisfies Flags

const quotas = defineCommand({
  name: 'quotas',
  about: 'list what clients have used of their quotas in the current windows',
  flags: quotasFlags,
  examples: [['upload-server history quotas'], ['upload-server history quotas --json']],
  load: async () => ({ run: (await import('./run.ts')).listQuotas }),
})

export const expiredFlags = { config, ...where, limit, json } as const satisfies Flags

const expired = defineCommand({
  name: 'expired',
  about: 'list expired files that have not been deleted yet, with the reason',
  flags: expiredFlags,
  examples: [['upload-server history expired'], ['upload-server history expired --destination s3/ci --json']],
  load: async () => ({ run: (await import('./run.ts')).listExpired }),
})

export const pruneFlags = {
  config,
  ...where,
  yes: { about: 'do not ask for confirmation' },
} as const satisfies Flags

const prune = defineCommand({
  name: 'prune',
  about: 'delete old entries of the history; the files are kept',
  arg: { spelling: '<age>', about: 'delete entries that are older: 12h, 365d' },
  flags: pruneFlags,
  examples: [
    ['upload-server history prune 365d'],
    ['upload-server history prune 90d --destination s3/ci --yes'],
  ],
  load: async () => ({ run: (await import('./run.ts')).prune }),
})

export const history = defineCommand({
  name: 'history',
  about: 'list uploaded files, newest first',
  flags,
  examples: [
    ['upload-server history --since yesterday --search screenshot'],
    ['upload-server history --caller alice --since 2026-11-01 --until 2026-11-08 --json'],
    ['upload-server history quotas'],
  ],
  notes: `Times are in the local time zone, in JSON in UTC. A date begins at midnight. --search, --name, --link and --caller are
case-insensitive.`,
  commands: [quotas, expired, prune],
  load: () => import('./run.ts'),
})
