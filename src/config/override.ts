import { readFileSync } from 'node:fs'
import { decodeText } from '../decode-text.ts'
import { systemCode } from '../errors.ts'
import { isRecord, type Json, membersOf } from '../members.ts'
import { memberOf, unwrap } from '../options.ts'
import * as z from '../packages/zod.ts'
import { canonicalType } from '../providers/registry.ts'
import type { OnProblem } from './problems.ts'
import { suggest } from './suggest.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** Short names of the settings that containers set most often. */
const SHORT_NAMES = new Map([
  ['UPLOAD_SERVER_HOST', 'SERVER__HOST'],
  ['UPLOAD_SERVER_PORT', 'SERVER__PORT'],
  ['UPLOAD_SERVER_KEY', 'SERVER__KEY'],
  ['UPLOAD_SERVER_PUBLIC_URL', 'SERVER__PUBLICURL'],
  ['UPLOAD_SERVER_LOG_LEVEL', 'LOG__LEVEL'],
])

const PREFIX = 'UPLOAD_SERVER__'

/**
 * Other variables: those of commands, and those that Kubernetes sets in every container if a service is named `upload-server`.
 * `UPLOAD_SERVER_PORT` is then a URL.
 */
const NO_SETTING =
  /^UPLOAD_SERVER_(?:(?:CONFIG|TOKEN|AUDIENCE)=|SERVICE_(?:HOST|PORT)|PORT_\d|PORT=(?:tcp|udp|sctp):\/\/)/

/** The variables of the environment, and those that only a `.env` file has. */
export interface Variables {
  readonly env: Environment
  /** The `.env` file, if there is one. */
  readonly file?: string | undefined
  /** Names of the variables that come from the file. */
  readonly added: ReadonlySet<string>
}

/**
 * Adds the variables of a `.env` file, if there is one. Those of the environment win.
 *
 * @param file undefined: none is read
 */
export async function withDotenv(env: Environment, file: string | undefined): Promise<Variables> {
  const found = file === undefined ? undefined : await readDotenv(file)
  if (found === undefined) return { env, added: new Set() }
  const added = new Set(Object.keys(found).filter(name => !(name in env)))
  return { env: { ...found, ...env }, file, added }
}

/** @returns undefined if the file does not exist */
export async function readDotenv(file: string): Promise<Environment | undefined> {
  try {
    const text = decodeText(readFileSync(file))
    const { parse } = await import('dotenv')
    return parse(text)
  } catch (error) {
    if (!['ENOENT', 'ENOTDIR', 'EISDIR'].includes(systemCode(error) ?? '')) throw error
    return undefined
  }
}

/** A setting of the environment or of the command line, which overrides the file. */
export interface Override {
  /** Origin of the value: a variable, with its `.env` file, or a flag. */
  readonly name: string
  /** Path of the setting in the configuration, case-insensitive. */
  readonly path: readonly string[]
  readonly read: (schema: z.ZodType) => unknown
}

/** Settings of the command line, by section. They override the environment and the file. */
export type Flags = Record<string, Record<string, unknown>>

/** Flags that have other names than their settings. */
const FLAGS: Readonly<Record<string, string>> = {
  strictPort: '--strict-port',
  watch: '--no-watch',
  anonymous: '--allow-anonymous',
  level: '--log-level',
}

/** The settings that flags set. */
export function overridesOfFlags(flags: Flags): Override[] {
  return Object.entries(flags).flatMap(([section, members]) =>
    Object.entries(members)
      .filter(([, value]) => value !== undefined)
      .map(([member, value]) => ({
        name: FLAGS[member] ?? `--${member}`,
        path: [section, member],
        read: () => value,
      })),
  )
}

/**
 * Finds settings in the environment: the short names, such as `UPLOAD_SERVER_PORT`, and for every other setting its path
 * with double underscores (`UPLOAD_SERVER__LIMITS__FILESIZE`), case-insensitive. Empty values are ignored.
 *
 * @param note gets a sentence for each variable that looks like one of ours but is ignored
 */
export function overridesOfVariables(
  { env, file, added }: Variables,
  note: (sentence: string) => void,
): Override[] {
  return Object.entries(env).flatMap(([variable, text]) => {
    const name = variable.toUpperCase()
    if (!text || !name.startsWith('UPLOAD_SERVER_') || NO_SETTING.test(`${name}=${text}`)) return []
    const path = SHORT_NAMES.get(name) ?? (name.startsWith(PREFIX) ? name.slice(PREFIX.length) : undefined)
    if (path !== undefined)
      return {
        name: added.has(variable) ? `${variable} in ${file}` : variable,
        path: path.split('__'),
        read: schema => coerce(text, schema),
      }
    note(
      `The environment variable ${variable} is ignored. Available: ${[...SHORT_NAMES.keys()].join(', ')}, and ${PREFIX}SECTION__NAME for all other settings.`,
    )
    return []
  })
}

/**
 * Overrides settings of a configuration, in this order.
 *
 * @param schema of the configuration, including the providers that are configured
 */
export function override(
  config: Json,
  overrides: readonly Override[],
  schema: z.ZodType,
  report: OnProblem,
): Json {
  const result = structuredClone(config)
  for (const one of overrides)
    assign(result, one.path, schema, one.read, hint => report(one.name, `does not match a setting${hint}`))
  return result
}

/** Sets a value at a path, whose names are found in the schema and in the file. */
function assign(
  object: Json,
  [segment = '', ...rest]: readonly string[],
  schema: z.ZodType,
  read: Override['read'],
  unknown: (hint: string) => void,
): void {
  const inner = unwrap(schema)
  const name = findName(segment, rest[0], object, inner)
  const member = name === undefined ? undefined : memberOf(inner, canonicalType(name))
  if (name === undefined || !member)
    unknown(inner instanceof z.ZodObject ? suggest(segment, Object.keys(inner.shape)) : '')
  else if (rest.length === 0) object[name] = read(member)
  else {
    if (object[name] === undefined) object[name] = {}
    const next = object[name]
    // If the file has another value instead of an object, that error must not be hidden.
    assign(isRecord(next) ? next : {}, rest, member, read, unknown)
  }
}

/**
 * Finds a name case-insensitively: in the schema, else among those in use, else `Default`, else the lower-case spelling. A file
 * may have a provider under its type and under aliases: the one that has the destination is meant.
 */
function findName(
  segment: string,
  next: string | undefined,
  object: Json,
  schema: z.ZodType,
): string | undefined {
  const isSame = (name: string, other = '') => name.toLowerCase() === other.toLowerCase()
  if (schema instanceof z.ZodRecord)
    return [...Object.keys(object), 'Default'].find(name => isSame(name, segment)) ?? segment.toLowerCase()
  if (!(schema instanceof z.ZodObject)) return undefined
  const type = canonicalType(segment.toLowerCase())
  const known = Object.keys(schema.shape).find(name => isSame(name, segment) || name === type)
  const used = Object.keys(object).filter(name => name === known || canonicalType(name) === known)
  const has = (name: string) => Object.keys(membersOf(object[name])).some(one => isSame(one, next))
  return used.find(has) ?? used.find(name => name === known) ?? used[0] ?? known
}

/** Parses a value as JSON, or a list separated by commas, unless the schema expects text. */
export function coerce(text: string, schema: z.ZodType): unknown {
  const inner = unwrap(schema)
  if (inner instanceof z.ZodString || inner instanceof z.ZodEnum) return text
  if (inner instanceof z.ZodArray && !text.trimStart().startsWith('[')) {
    return text.split(',').map(item => coerce(item.trim(), memberOf(inner, '0') ?? inner))
  }
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
