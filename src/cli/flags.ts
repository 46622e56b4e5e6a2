import { TOKEN_PROVIDERS } from '../client/tokens/token-source.ts'
import { readDuration } from '../times.ts'
import type { Flag, Flags, Value } from './define.ts'

// The values and flags that several commands share.

/** The name of a file. */
export const file = { shown: 'file', offers: 'file' } as const satisfies Value

/** The name of a folder. */
export const folder = { shown: 'folder', offers: 'folder' } as const satisfies Value

/** Any text. */
export const text = (shown: string) => ({ shown }) as const satisfies Value

/** A whole number of at most 9 digits. */
export const count = {
  shown: 'n',
  must: 'a whole number',
  read: (typed: string) => (/^\d{1,9}$/.test(typed) ? Number(typed) : undefined),
} as const satisfies Value

/** A whole number in a range. */
export const countFrom = (least: number, most: number, shown = 'n') =>
  ({
    shown,
    must: `a whole number from ${least} to ${most}`,
    read(typed: string) {
      const number = count.read(typed) ?? -1
      return number >= least && number <= most ? number : undefined
    },
  }) as const satisfies Value

/** A time in milliseconds, written `90s`, `10m`, `1h` or `30d`. A number without a unit is in seconds. */
export const duration = {
  shown: 'time',
  must: 'a time such as 90s, 10m, 1h or 30d',
  read: (typed: string) => readDuration(/^\d+$/.test(typed) ? `${typed}s` : typed),
} as const satisfies Value

/** The URL of a server. `127.0.0.1:36677` is short for `http://127.0.0.1:36677`. */
export const serverUrl = {
  shown: 'url',
  must: 'a URL such as http://127.0.0.1:36677',
  read(typed: string) {
    const address = /^[a-z][a-z0-9+.-]*:\/\//i.test(typed) ? typed : `http://${typed}`
    return URL.canParse(address) && /^https?:/i.test(address) ? address : undefined
  },
} as const satisfies Value

/** `provider` or `provider/configName`. */
export const destination = { shown: 'id', offers: 'destination' } as const satisfies Value

export const config = {
  short: '-c',
  about: 'configuration file (default: the one in your configuration folder)',
  value: file,
} as const satisfies Flag

/** The flags that choose a destination, in both spellings: see `readChoice`. */
export const choice = {
  destination: {
    about: 'destination: "provider" or "provider/configName"',
    value: destination,
    isOnce: true,
  },
  picbed: { about: 'provider of the destination', value: { shown: 'provider', offers: 'picbed' } },
  configName: {
    about: 'name of the destination within its provider',
    value: { shown: 'name', offers: 'configName' },
  },
} as const satisfies Flags

const tokenSource = {
  shown: 'source',
  must: `one of: ${TOKEN_PROVIDERS.join(', ')}, or a program`,
  read: (typed: string) => (typed.trim() === '' ? undefined : typed),
  offers: async () => TOKEN_PROVIDERS,
} as const satisfies Value

/** The flags of commands that use a running server. */
export const credentials = {
  key: {
    short: '-k',
    about: 'upload key of the running server',
    value: text('key'),
    env: 'UPLOAD_SERVER_KEY',
    isSecret: true,
  },
  tokenFrom: {
    about: `send signed tokens (JWT) instead of an upload key, from: ${TOKEN_PROVIDERS.join(', ')}, or a program that prints one (default: the CI job, without an upload key)`,
    value: tokenSource,
    isOnce: true,
    needs: ['server'],
    excludes: ['key'],
  },
} as const satisfies Flags

/** Adds a heading of the help to flags, and what else is true of all of them. */
export function grouped<const F extends Flags>(
  group: string,
  flags: F,
  common: Pick<Flag, 'isForAllFiles'> = {},
): F {
  const all = Object.entries(flags).map(([name, flag]) => [name, { ...flag, ...common, group }])
  return Object.fromEntries(all) as F
}
