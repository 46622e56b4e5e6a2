import { isIP } from 'node:net'
import * as z from './packages/zod.ts'
import { readDuration, showDuration } from './times.ts'

/**
 * `file`: path of a file that only the server may read, such as a private key. `proxy`: a URL that may contain a password.
 * `time` and `size`: strings with a unit, which are numbers of milliseconds and bytes once they are parsed.
 */
export type Mark = 'secret' | 'path' | 'file' | 'proxy' | 'time' | 'size'

const marks = z.registry<{ is: Mark }>()

/** Text that is not empty. */
export const text = () => z.string().min(1)

/** A secret option. Its value is masked in the log, in messages and in `config show`. */
export function secret(): z.ZodString {
  return z.string().min(1).register(marks, { is: 'secret' })
}

/** Whether a host is an IP address or a valid DNS name. */
export function isPossibleHost(host: string): boolean {
  const name = host.replace(/^\[(.*)\]$/, '$1').replace(/(?<=.)\.$/, '')
  const labels = name.split('.')
  const isName = name.length <= 253 && labels.every(isLabel) && !/^\d+$/.test(labels.at(-1) ?? '')
  // Second, because Node compiles a long pattern for it, which takes 5 ms at the start.
  return isName || isIP(name) !== 0
}

/** Most labels match the pattern for ASCII. V8 takes 3 ms to compile the other one. */
function isLabel(label: string): boolean {
  return label.length <= 63 && (ASCII_LABEL.test(label) || UNICODE_LABEL.test(label))
}

const ASCII_LABEL = /^[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?$/i
const UNICODE_LABEL = /^[\p{L}\p{N}_](?:[\p{L}\p{M}\p{N}_-]*[\p{L}\p{M}\p{N}_])?$/u

const hostOf = (address: string) => (URL.canParse(address) ? new URL(address).hostname : 'localhost')

/** An http or https URL with a valid hostname. */
export function webUrl(): z.ZodURL {
  return z
    .url({ protocol: /^https?$/, error: 'must be an http or https URL' })
    .refine(address => isPossibleHost(hostOf(address)), 'has an invalid hostname')
}

/** An http or https URL that is itself a secret, such as the webhook URLs of chat services. */
export function secretAddress(): z.ZodURL {
  return webUrl().register(marks, { is: 'secret' })
}

/** Option for the value of a header. Without this check, a value that Node rejects would fail only at the first upload. */
export function headerValue() {
  return z.string().regex(/^[\x21-\x7e]+(?: [\x21-\x7e]+)*$/, 'must contain only printable ASCII characters')
}

/** Options for permissions of files and of folders, octal. `modeOf` reads them. */
export const fileMode = () =>
  z
    .string()
    .regex(
      /^0?[67][0-7]{2}$/,
      'must be an octal mode with read and write permission for the owner, such as "0644"',
    )
export const folderMode = () =>
  z
    .string()
    .regex(/^[0-7]?7[0-7]{2}$/, 'must be an octal mode with all permissions for the owner, such as "0755"')

/** Returns permissions as a number. */
export const modeOf = (octal: string) => Number.parseInt(octal, 8)

const path = () =>
  z
    .string()
    .min(1)
    .refine(text => !text.includes('\0'), 'contains a NUL character')

/** A local path. `~/` is the home directory. Relative paths start at the directory of the configuration file. */
export function localPath(): z.ZodString {
  return path().register(marks, { is: 'path' })
}

/** Like `localPath`, for the server's own files, which no client may upload: private keys, certificates, descriptions. */
export function ownFile(): z.ZodString {
  return path().register(marks, { is: 'file' })
}

/** Longest delay of a timer in Node. A longer one fires at once. */
const LONGEST_MS = 2 ** 31 - 1

/**
 * A time with a unit, such as `"30s"`, in milliseconds once it is parsed.
 *
 * @param least 0 only where it means "at once": a limit of 0 would end everything
 */
export const time = (least = 1, most = LONGEST_MS) => withUnit('time', least, most)

/** A size with a unit, such as `"100MB"`, in bytes once it is parsed; KB is 1024 bytes. */
export const size = (least = 1, most = Number.MAX_SAFE_INTEGER) => withUnit('size', least, most)

const SIZE_UNITS = { B: 1, KB: 1024, MB: 1024 ** 2, GB: 1024 ** 3 }

function readSize(text: string): number | undefined {
  const [, digits, prefix = ''] = /^(\d+(?:\.\d+)?)\s*(?:B|([KMG])i?B?)$/i.exec(text.trim()) ?? []
  const [, bytes] = Object.entries(SIZE_UNITS).find(([unit]) => unit === `${prefix.toUpperCase()}B`) ?? []
  return digits === undefined || bytes === undefined ? undefined : Math.round(Number(digits) * bytes)
}

/** Bytes in the largest unit that fits: `100MB`. */
export function showSize(bytes: number): string {
  const [unit, size] = Object.entries(SIZE_UNITS).findLast(([, size]) => bytes % size === 0) ?? ['B', 1]
  return `${bytes / size}${unit}`
}

/** `bare`: the units that a bare number may be meant in. */
const QUANTITIES = {
  time: { read: readDuration, show: showDuration, bare: ['s', 'ms'], examples: '"90s", "12h" or "30d"' },
  size: { read: readSize, show: showSize, bare: ['MB', 'B'], examples: '"100MB", "512KB" or "2GB"' },
}

function withUnit(is: 'time' | 'size', least: number, most: number) {
  const { read, show, bare, examples } = QUANTITIES[is]
  const isOpen = most === LONGEST_MS || most === Number.MAX_SAFE_INTEGER
  const from = least > 1 ? ` of at least ${show(least)}` : least > 0 ? ' above 0' : ''
  const range = isOpen ? from : ` from ${show(least)} to ${show(most)}`
  const error = ({ input }: { readonly input?: unknown }) =>
    /^\d+$/.test(String(input))
      ? `needs a unit: write ${bare.map(unit => `"${input}${unit}"`).join(' or ')}`
      : `must be a ${is}${range}, such as ${examples}`
  const isInRange = (text: string) => {
    const value = read(text) ?? Number.NaN
    return value >= least && value <= most
  }
  return z
    .string({ error })
    .refine(isInRange, { error })
    .register(marks, { is })
    .transform(text => read(text) ?? 0)
}

/** The JSON Schema 2020-12 of the input, before defaults are applied. */
export function toJsonSchema(schema: z.ZodType, reused: 'inline' | 'ref' = 'inline'): object {
  return z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', reused })
}

/** The URL of an outbound proxy, whose password is masked, or a keyword such as "none". */
export function proxySetting(isValid: (text: string) => boolean): z.ZodString {
  const error =
    'must be "environment", "none", or a URL such as "http://user:password@proxy.example.com:3128"; it may also begin with https, socks5 or socks5h'
  return z.string().refine(isValid, error).register(marks, { is: 'proxy' })
}

/** The names and numbers that lead to a value. */
export type Steps = readonly (string | number)[]

/** Returns what replaces a value. */
type Visit = (value: unknown, is: Mark | undefined, steps: Steps) => unknown

/**
 * Copies a configuration, and replaces its values: the strings and numbers that the schema marks, or without a schema
 * all that are not objects or lists. The schema and the value are walked in parallel.
 */
export function walk<T>(schema: z.ZodType | undefined, value: T, visit: Visit, steps?: Steps): T
export function walk(
  schema: z.ZodType | undefined,
  value: unknown,
  visit: Visit,
  steps: Steps = [],
): unknown {
  const inner = schema && unwrap(schema)
  const member = (name: string) => inner && (memberOf(inner, name) ?? z.unknown())
  if (inner instanceof z.ZodUnion)
    return inner.options.reduce<unknown>((v, option) => walk(classic(option), v, visit, steps), value)
  if (Array.isArray(value))
    return value.map((item, index) => walk(member(String(index)), item, visit, [...steps, index]))
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, walk(member(name), item, visit, [...steps, name])]),
    )
  if (!inner) return visit(value, undefined, steps)
  const mark = marks.get(inner)
  return mark && (typeof value === 'string' || typeof value === 'number')
    ? visit(value, mark.is, steps)
    : value
}

/** Resolves all paths in a configuration, including relative ones and `~`. */
export function mapPaths<T>(schema: z.ZodType, value: T, resolve: (path: string) => string): T {
  return walk(schema, value, (value, is) => (is === 'path' || is === 'file' ? resolve(String(value)) : value))
}

/** All strings of a configuration with a given mark. */
export function collectMarked(schema: z.ZodType, value: unknown, mark: Mark): string[] {
  const found: string[] = []
  walk(schema, value, (text, is) => {
    if (is === mark && typeof text === 'string') found.push(text)
    return text
  })
  return found
}

/** Zod types inner schemas for all of its variants. The cast is safe, because all of our schemas are of this variant. */
const classic = (schema: z.ZodArray['element']) => schema as z.ZodType

/** The schema inside `optional()`, `default()` and similar wrappers. */
export function unwrap(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault) {
    return unwrap(classic(schema.unwrap()))
  }
  if (schema instanceof z.ZodPipe) return unwrap(classic(schema.in))
  return schema
}

/** The schema of a member of an object or a record, or of an item of a list. */
export function memberOf(schema: z.ZodType, name: string): z.ZodType | undefined {
  const inner = unwrap(schema)
  if (inner instanceof z.ZodObject) return Object.hasOwn(inner.shape, name) ? inner.shape[name] : undefined
  if (inner instanceof z.ZodRecord) return classic(inner.valueType)
  if (inner instanceof z.ZodArray) return classic(inner.element)
  return undefined
}
