import { dirname, join } from 'node:path'
import { messageOf } from '../errors.ts'
import { secretsOfProxy } from '../http/proxy/address.ts'
import { listProxyVariables } from '../http/proxy/environment.ts'
import { isRecord, type Json } from '../members.ts'
import { canonicalType } from '../providers/registry.ts'
import { idOf, type LeftOut } from '../uploader/destinations.ts'
import { findConfigFile, type WhereToLook } from './file.ts'
import type { Import } from './import.ts'
import { interpolate } from './interpolate.ts'
import { kindOf } from './issues.ts'
import {
  type Flags,
  type Override,
  override,
  overridesOfFlags,
  overridesOfVariables,
  withDotenv,
} from './override.ts'
import { lineOf, type Parsed, parseJson } from './parse.ts'
import { userConfigFile, userDataDirectory } from './paths.ts'
import { isPicGoConfig } from './picgo/recognise.ts'
import { loadPlugins, NO_PLUGINS, type Plugins } from './plugins.ts'
import { ConfigError, type OnProblem } from './problems.ts'
import { listNamed, wholeSchema } from './providers.ts'
import { configSchema } from './schema.ts'

export interface LoadOptions extends WhereToLook {
  flags?: Flags
}

/** A configuration that has been read but not checked. */
export interface ReadConfig {
  readonly value: Json
  readonly file: string | undefined
  /** Directory that relative paths start at. */
  readonly base: string
  /** Directory from which plugins are resolved and in which programs are started. */
  readonly codeBase: string
  /** Directory for the embedded destination, the database and temporary files. */
  readonly dataDirectory: string
  /** Every file that was read. */
  readonly files: readonly string[]
  /** Files that a reload would read: the configuration and the `.env` next to it, whether they exist or not. */
  readonly places: readonly string[]
  readonly notes: readonly string[]
  readonly plugins: Plugins
  /** Passwords in the proxy URLs of the environment. */
  readonly secrets: readonly string[]
  /** Destinations of a PicGo or PicList file that can't be used. */
  readonly leftOut: readonly LeftOut[]
  /** Where a setting comes from: a flag, a variable or a line of the file. Undefined: it is a default. */
  placeOf(path: string): string | undefined
}

/**
 * Reads a configuration in stages: finds the file, parses it, converts it if it is of PicGo, fills in variables,
 * overrides it by the environment and flags, and loads the plugins.
 *
 * @param runsPlugins whether plugins are loaded, which runs their code
 * @throws ConfigError if an error leaves nothing to check
 */
export async function readConfig(
  options: LoadOptions,
  report: OnProblem,
  runsPlugins = true,
): Promise<ReadConfig> {
  const found = await orConfigError(undefined, () => findConfigFile(options))
  const place = found?.path ?? userConfigFile(options)
  const codeBase = dirname(place)
  const base = found ? codeBase : options.cwd
  const variables = found
    ? await withDotenv(options.env, codeBase)
    : { env: options.env, added: new Set<string>() }

  const { value, lines } = await orConfigError(found?.path, () => parse(found?.text, report))
  const imported = isPicGoConfig(value) ? await fromPicGo(value, report) : undefined
  const filled = interpolate(imported?.config ?? value, variables.env, base, report)

  const notes: string[] = []
  const overrides = [
    ...overridesOfVariables(variables, note => notes.push(note)),
    ...overridesOfFlags(options.flags ?? {}),
  ]
  const ofDestinations = overrides.filter(({ path: [section] }) => section?.toLowerCase() === 'providers')
  const ofServer = overrides.filter(one => !ofDestinations.includes(one))
  const settings = override(filled.value, ofServer, configSchema, report)
  const plugins = runsPlugins ? await loadPlugins(settings['plugins'], codeBase, report) : NO_PLUGINS
  const whole = await overrideDestinations(settings, ofDestinations, plugins, report)
  const left = imported && (await withoutUnusable({ ...imported, config: whole }, report))

  return {
    value: left?.config ?? whole,
    file: found?.path,
    base,
    codeBase,
    dataDirectory: userDataDirectory(options),
    files: [found?.path ?? [], variables.file ?? [], filled.files].flat(),
    places: [place, join(codeBase, '.env')],
    notes: [...(left?.notes ?? []), ...notes],
    plugins,
    secrets: listProxyVariables(variables.env).flatMap(secretsOfProxy),
    leftOut: left?.leftOut ?? [],
    placeOf: path => placeOf(path, overrides, imported?.moved ?? [], lines),
  }
}

/** @throws ConfigError instead of any other error */
async function orConfigError<T>(file: string | undefined, make: () => T | Promise<T>): Promise<T> {
  try {
    return await make()
  } catch (error) {
    throw new ConfigError(file, [{ path: '', message: messageOf(error) }])
  }
}

function parse(text: string | undefined, report: OnProblem): Parsed & { value: Json } {
  const { value, lines } = text === undefined ? { value: {}, lines: new Map() } : parseJson(text, report)
  if (!isRecord(value)) throw new Error(`must contain an object, not ${kindOf(value)}`)
  return { value, lines }
}

/**
 * Converts a PicGo or PicList file. It is an error if the uploader in use has no counterpart here, because files must not
 * be stored anywhere else.
 */
async function fromPicGo(old: Json, report: OnProblem): Promise<Import> {
  const { importPicGo } = await import('./import.ts')
  const imported = await importPicGo(old)
  const { config, notes } = imported
  const usable = listNamed(config['providers']).map(idOf)
  const current = config['default']
  if (typeof current !== 'string' || usable.includes(current)) return imported
  for (const note of notes) report('', note)
  return { ...imported, config: { ...config, default: usable[0] } }
}

async function withoutUnusable(imported: Import, report: OnProblem) {
  const { leaveOutUnusable } = await import('./unusable.ts')
  return leaveOutUnusable(imported, report)
}

/** Destinations have the options of their providers, also of those that are plugins. */
async function overrideDestinations(
  value: Json,
  overrides: readonly Override[],
  plugins: Plugins,
  report: OnProblem,
): Promise<Json> {
  if (overrides.length === 0) return value
  const types = [
    ...listNamed(value['providers']).map(({ type }) => type),
    ...overrides.flatMap(({ path: [, type] }) => (type ? canonicalType(type.toLowerCase()) : [])),
  ]
  return override(value, overrides, await wholeSchema(types, plugins), report)
}

function placeOf(
  path: string,
  overrides: readonly Override[],
  moved: Import['moved'],
  lines: Parsed['lines'],
): string | undefined {
  const wanted = plain(path)
  const over = overrides.findLast(one => isWithin(wanted.toLowerCase(), one.path.join('.').toLowerCase()))
  if (over) return over.name
  const move = moved.find(({ from }) => isWithin(wanted, from))
  const places = move?.to.map(to => plain(to) + wanted.slice(move.from.length)) ?? [wanted]
  const line = lineOf(lines, places.find(at => lines.has(at)) ?? places[0] ?? '')
  return line === undefined ? undefined : `line ${line}`
}

const isWithin = (path: string, around: string) => path === around || path.startsWith(`${around}.`)

/** Normalizes `a.b[0]`, `a["b"][0]` and `a.b.0` to the last spelling. */
const plain = (path: string) => path.replace(/\["?([^"[\]]*)"?\]/g, '.$1').replace(/^\./, '')
