import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { memberOf, unwrap } from '../options.ts'
import * as z from '../packages/zod.ts'
import { canonicalType } from '../providers/registry.ts'
import type { Report } from './interpolate.ts'
import { suggest } from './issues.ts'
import { isRecord } from './json.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** Short names for the settings that containers set most. */
const SHORT_NAMES = new Map([
  ['UPLOAD_SERVER_HOST', 'SERVER__HOST'],
  ['UPLOAD_SERVER_PORT', 'SERVER__PORT'],
  ['UPLOAD_SERVER_KEY', 'SERVER__KEY'],
  ['UPLOAD_SERVER_PUBLIC_URL', 'SERVER__PUBLICURL'],
  ['UPLOAD_SERVER_LOG_LEVEL', 'LOG__LEVEL'],
  ['UPLOAD_SERVER_WORKERS', 'SERVER__WORKERS'],
])

const PREFIX = 'UPLOAD_SERVER__'

/** Kubernetes gives every container these for a service named `upload-server`, and an address as `UPLOAD_SERVER_PORT`. */
const OF_KUBERNETES = /^UPLOAD_SERVER_(?:SERVICE_(?:HOST|PORT)|PORT_\d)/
const SERVICE_ADDRESS = /^(?:tcp|udp|sctp):\/\//

/** Variables, and the `.env` files that some of them come from. */
export interface Variables {
  readonly env: Environment
  readonly files: readonly string[]
  /** The file of each variable that comes from one. */
  readonly from: Readonly<Record<string, string>>
}

/** Adds what stands in the `.env` file of a directory, if it has one that was not read yet; what is there already wins. */
export async function withDotenv(before: Variables, directory: string): Promise<Variables> {
  const file = join(directory, '.env')
  if (before.files.includes(file)) return before
  try {
    const text = readFileSync(file)
    const { parse } = await import('dotenv')
    const found = parse(text)
    const from = Object.fromEntries(
      Object.keys(found).flatMap(name => (name in before.env ? [] : [[name, file]])),
    )
    return {
      env: { ...found, ...before.env },
      files: [...before.files, file],
      from: { ...before.from, ...from },
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ENOENT' && code !== 'ENOTDIR' && code !== 'EISDIR') throw error
    return before
  }
}

/** A setting that a variable gives. */
export interface GivenSetting {
  readonly variable: string
  /** Where it stands in the configuration, whatever the case of the letters. */
  readonly path: readonly string[]
  readonly text: string
}

/**
 * Finds settings in the environment: `UPLOAD_SERVER_PORT` and its like, and for every other one its path with double
 * underscores (`UPLOAD_SERVER__LIMITS__FILESIZE`), upper or lower case. Empty values are not set.
 *
 * @param note gets a sentence for each variable that looks like one of ours and was not read
 */
export function findSettings(env: Environment, note: (sentence: string) => void): GivenSetting[] {
  const found: GivenSetting[] = []
  for (const [variable, text] of Object.entries(env)) {
    const name = variable.toUpperCase()
    if (!text || !name.startsWith('UPLOAD_SERVER_') || isOfOthers(name, text)) continue
    const path = SHORT_NAMES.get(name) ?? (name.startsWith(PREFIX) ? name.slice(PREFIX.length) : undefined)
    if (path !== undefined) found.push({ variable, path: path.split('__'), text })
    else {
      const names = [...SHORT_NAMES.keys()].join(', ')
      note(
        `The variable ${variable} is not used: there are ${names}, and ${PREFIX}SECTION__NAME for the rest.`,
      )
    }
  }
  return found
}

/**
 * Lays settings of the environment over a configuration.
 *
 * @param schema of the configuration, with the providers that the variables name
 */
export function applySettings(
  config: unknown,
  given: readonly GivenSetting[],
  schema: z.ZodType,
  report: Report,
): unknown {
  let result = config
  for (const { variable, path, text } of given)
    result = assign(result, path, text, schema, hint => report(variable, `is no setting${hint}`))
  return result
}

function isOfOthers(name: string, text: string): boolean {
  if (name === 'UPLOAD_SERVER_PORT') return SERVICE_ADDRESS.test(text)
  return name === 'UPLOAD_SERVER_CONFIG' || OF_KUBERNETES.test(name)
}

function assign(
  node: unknown,
  path: readonly string[],
  text: string,
  schema: z.ZodType,
  unknown: (hint: string) => void,
): unknown {
  const [segment, ...rest] = path
  if (segment === undefined) return coerce(text, schema)
  const object = isRecord(node) ? node : {}
  const name = memberName(segment, object, schema)
  const member = name === undefined ? undefined : memberOf(schema, name)
  if (name === undefined || !member) {
    const inner = unwrap(schema)
    unknown(inner instanceof z.ZodObject ? suggest(segment, Object.keys(inner.shape)) : '')
    return node
  }
  // Something else in the place of an object is a mistake in the file, which must not be hidden.
  if (node !== undefined && !isRecord(node)) return node
  const key = Object.hasOwn(object, name) ? name : (aliasOf(name, object) ?? name)
  return { ...object, [key]: assign(object[key], rest, text, member, unknown) }
}

/** The name under which a file has a provider that is known by several. */
function aliasOf(type: string, object: Record<string, unknown>): string | undefined {
  return Object.keys(object).find(name => canonicalType(name) === type)
}

/** Names match whatever their case: those of the schema, else those already in use, else `Default` or in lower case. */
function memberName(segment: string, object: Record<string, unknown>, schema: z.ZodType): string | undefined {
  const same = (name: string) => name.toLowerCase() === segment.toLowerCase()
  const inner = unwrap(schema)
  if (inner instanceof z.ZodObject) {
    const type = canonicalType(segment.toLowerCase())
    return Object.keys(inner.shape).find(name => same(name) || name === type)
  }
  if (inner instanceof z.ZodRecord)
    return [...Object.keys(object), 'Default'].find(same) ?? segment.toLowerCase()
  return undefined
}

/** Text stays text where the schema wants text; everything else is JSON, lists also with commas. */
export function coerce(text: string, schema: z.ZodType): unknown {
  const inner = unwrap(schema)
  if (inner instanceof z.ZodString || inner instanceof z.ZodEnum) return text
  if (inner instanceof z.ZodArray && !text.trimStart().startsWith('[')) {
    return text.split(',').map(item => coerce(item.trim(), inner.element as z.ZodType))
  }
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
