import { readFileSync } from 'node:fs'
import { decodeText } from '../decode-text.ts'
import { systemCode } from '../errors.ts'
import { isRecord, type Json } from '../members.ts'
import { memberOf, unwrap } from '../options.ts'
import * as z from '../packages/zod.ts'
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

/** The variables of a `.env` file; undefined if it does not exist. */
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
 * @param origin where the variables come from if not from the environment: ` in FILE`
 */
export function overridesOfVariables(
  env: Environment,
  note: (sentence: string) => void,
  origin = '',
): Override[] {
  return Object.entries(env).flatMap(([variable, text]) => {
    const name = variable.toUpperCase()
    if (!text || !name.startsWith('UPLOAD_SERVER_') || NO_SETTING.test(`${name}=${text}`)) return []
    const path = SHORT_NAMES.get(name) ?? (name.startsWith(PREFIX) ? name.slice(PREFIX.length) : undefined)
    if (path !== undefined)
      return { name: variable + origin, path: path.split('__'), read: schema => coerce(text, schema) }
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
  for (const { name, path, read } of overrides) {
    const hint = assign(result, path, schema, read)
    if (hint !== undefined) report(name, `does not match a setting${hint}`)
  }
  return result
}

/**
 * Sets a value at a path. Names are those of the schema, or of a destination in the file, in any case. A new destination is
 * called `Default`, or has a name in lower case.
 *
 * @returns undefined, or if there is no such setting a hint
 */
function assign(
  object: Json,
  [segment = '', ...rest]: readonly string[],
  schema: z.ZodType,
  read: Override['read'],
): string | undefined {
  const inner = unwrap(schema)
  const options = inner instanceof z.ZodObject ? Object.keys(inner.shape) : []
  const names =
    inner instanceof z.ZodRecord ? [...Object.keys(object), 'Default', segment.toLowerCase()] : options
  const name = names.find(one => one.toLowerCase() === segment.toLowerCase())
  const member = name === undefined ? undefined : memberOf(inner, name)
  if (name === undefined || !member) return suggest(segment, options)
  if (rest.length > 0) {
    if (object[name] === undefined) object[name] = {}
    // If the file has another value instead of an object, that error must not be hidden.
    const next = object[name]
    return assign(isRecord(next) ? next : {}, rest, member, read)
  }
  object[name] = read(member)
  return undefined
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
