import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { memberOf, unwrap } from '../options.ts'
import * as z from '../packages/zod.ts'
import { canonicalType } from '../providers/registry.ts'
import type { Report } from './interpolate.ts'
import { suggest } from './issues.ts'
import { isRecord } from './picgo/json.ts'

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

/** Adds what stands in `.env` files; the real environment wins, then the earlier directory. */
export async function withDotenv(
  env: Environment,
  directories: string[],
): Promise<{ env: Environment; files: string[] }> {
  const files: string[] = []
  let merged: Environment = env
  for (const directory of new Set(directories)) {
    const file = join(directory, '.env')
    try {
      const text = readFileSync(file)
      const { parse } = await import('dotenv')
      merged = { ...parse(text), ...merged }
      files.push(file)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code !== 'ENOENT' && code !== 'ENOTDIR' && code !== 'EISDIR') throw error
    }
  }
  return { env: merged, files }
}

/**
 * Lays settings from the environment over a configuration: `UPLOAD_SERVER_PORT` and its like, and for every other one
 * its path with double underscores (`UPLOAD_SERVER__LIMITS__FILESIZE`), upper or lower case. Empty values are not set.
 *
 * @param schema of the whole configuration, providers included
 * @param note gets a sentence for each variable that looks like one of ours and was not read
 */
export function applyEnvironment(
  config: unknown,
  env: Environment,
  schema: z.ZodType,
  report: Report,
  note: (sentence: string) => void,
): unknown {
  let result = config
  for (const [variable, text] of Object.entries(env)) {
    const name = variable.toUpperCase()
    if (!text || !name.startsWith('UPLOAD_SERVER_') || isOfOthers(name, text)) continue
    const path = SHORT_NAMES.get(name) ?? (name.startsWith(PREFIX) ? name.slice(PREFIX.length) : undefined)
    if (path !== undefined) {
      result = assign(result, path.split('__'), text, schema, hint =>
        report(variable, `is no setting${hint}`),
      )
    } else {
      const names = [...SHORT_NAMES.keys()].join(', ')
      note(
        `The variable ${variable} is not used: there are ${names}, and ${PREFIX}SECTION__NAME for the rest.`,
      )
    }
  }
  return result
}

function isOfOthers(name: string, text: string): boolean {
  if (name === 'UPLOAD_SERVER_PORT') return SERVICE_ADDRESS.test(text)
  return name === 'UPLOAD_SERVER_CONFIG' || OF_KUBERNETES.test(name)
}

function assign(
  node: unknown,
  path: string[],
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
