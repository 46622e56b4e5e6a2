import { dirname } from 'node:path'
import { secretsOfProxy } from '../http/proxy/address.ts'
import { listProxyVariables } from '../http/proxy/environment.ts'
import { canonicalType } from '../providers/registry.ts'
import { idOf, type LeftOut } from '../uploader/delivery/destinations.ts'
import { applySettings, findSettings, type GivenSetting, type Variables, withDotenv } from './environment.ts'
import { findConfigFile, parseJson } from './file.ts'
import type { Import } from './import.ts'
import { interpolate, type Report } from './interpolate.ts'
import { kindOf } from './issues.ts'
import { isRecord, type Json } from './json.ts'
import { type PathContext, userDataDirectory } from './paths.ts'
import { isPicGoConfig } from './picgo/recognise.ts'
import { loadPlugins } from './plugins.ts'
import { listNamed, mentionedTypes, wholeSchema } from './providers.ts'
import { configSchema } from './schema.ts'
import { flagSources, type Sources } from './sources.ts'

/** Something wrong with a configuration. */
export interface Problem {
  /** Of the option; empty for the whole. */
  readonly path: string
  readonly message: string
}

/** Everything wrong with a configuration, a line for each mistake. */
export class ConfigError extends Error {
  /** Without the places, which the message names. */
  readonly problems: readonly string[]

  /** @param placeOf what a person has to change: a line of the file, a variable or a flag */
  constructor(
    file: string | undefined,
    problems: readonly Problem[],
    placeOf: (path: string) => string | undefined = () => undefined,
  ) {
    const lines = problems.map(({ path, message }) => (path ? `${path}: ${message}` : message))
    const placed = problems.map(({ path, message }, index) => {
      // What is said of a file of PicGo begins with the path there.
      const place = placeOf(path || (/^"([^"]*)"/.exec(message)?.[1] ?? ''))
      return place === undefined ? `  ${lines[index]}` : `  ${lines[index]} (${place})`
    })
    super([`${file ?? 'The configuration'} can't be used:`, ...placed].join('\n'))
    this.name = 'ConfigError'
    this.problems = lines
  }
}

/** Settings given on the command line, by section; they win over the environment and the file. */
export type Flags = Record<string, Record<string, unknown>>

export interface LoadOptions extends PathContext {
  /** `--config`. */
  file?: string | undefined
  flags?: Flags
}

/** A configuration before it is checked: plain data. */
export interface RawConfig {
  value: Json
  file: string | undefined
  /** Directory that relative paths start at. */
  base: string
  /** For what the program keeps: the embedded destination, the store, temporary files. */
  dataDirectory: string
  /** Every file that was read. */
  files: string[]
  notes: string[]
  /** Of the environment, which holds the addresses of proxies. */
  secrets: string[]
  /** Destinations of a PicGo or PicList file that can't be used. */
  leftOut: LeftOut[]
  sources: Sources
}

/**
 * Lays file, variables, environment and flags over each other.
 *
 * @throws ConfigError when there is nothing to look for further mistakes in
 */
export async function readRaw(options: LoadOptions, report: Report): Promise<RawConfig> {
  const nearby = await withDotenv({ env: options.env, files: [], from: {} }, options.cwd)
  let found: ReturnType<typeof findConfigFile>
  try {
    found = findConfigFile(options.file, nearby.env, options)
  } catch (error) {
    throw new ConfigError(undefined, [{ path: '', message: (error as Error).message }])
  }
  const base = found ? dirname(found.path) : options.cwd
  const { env, files, from } = await withDotenv(nearby, base)

  let value: unknown = {}
  let notes: string[] = []
  let imported: Import | undefined
  if (found) {
    value = await parseJson(found.text, report).catch((error: Error) => {
      throw new ConfigError(found.path, [{ path: '', message: error.message }])
    })
    if (!isRecord(value))
      throw new ConfigError(found.path, [{ path: '', message: `must hold an object, not ${kindOf(value)}` }])
    if (isPicGoConfig(value)) {
      imported = await fromPicGo(value, report)
      value = imported.config
      notes = imported.notes
    }
  }
  const filled = interpolate(value, env, base, report)
  value = filled.value
  const given = findSettings(env, note => notes.push(note))
  if (given.length > 0) {
    const types = given.flatMap(({ path: [section, type = ''] }) =>
      section?.toLowerCase() === 'providers' ? canonicalType(type.toLowerCase()) : [],
    )
    // Which plugins there are says what else can be set.
    const isOfPlugins = ({ path: [section] }: GivenSetting) => section?.toLowerCase() === 'plugins'
    value = applySettings(value, given.filter(isOfPlugins), configSchema, report)
    const plugins = await loadPlugins((value as Json)['plugins'], base, report)
    const schema = await wholeSchema([...mentionedTypes(value), ...types], plugins)
    value = applySettings(
      value,
      given.filter(one => !isOfPlugins(one)),
      schema,
      report,
    )
  }
  let leftOut: LeftOut[] = []
  if (imported) {
    const { leaveOutUnusable } = await import('./unusable.ts')
    const left = await leaveOutUnusable({ ...imported, config: value as Json }, report)
    value = left.config
    notes = left.notes
    leftOut = left.leftOut
  }
  return {
    value: applyFlags(value as Json, options.flags ?? {}),
    file: found?.path,
    base,
    dataDirectory: userDataDirectory({ ...options, env }),
    files: [...(found ? [found.path] : []), ...files, ...filled.files],
    notes,
    secrets: listProxyVariables(env).flatMap(secretsOfProxy),
    leftOut,
    sources: {
      text: found?.text,
      moved: imported && movesOf(imported.places),
      given: [...flagSources(options.flags ?? {}), ...given.flatMap(one => variableSources(one, from))],
    },
  }
}

/** Where parts of our configuration stand in a file of PicGo; several: the first that is there. */
const MOVED = {
  default: ['picBed.uploader', 'picBed.current'],
  keyTemplate: ['buildIn.rename', 'settings.autoRename'],
  'log.level': ['settings.logLevel'],
  pictures: ['buildIn'],
  'server.key': ['settings.serverKey', 'settings.server.secret', 'settings.server.key'],
  server: ['settings.server'],
}

function movesOf(places: Import['places']): Sources['moved'] {
  const destinations = [...places].map(([id, path]) => ({
    from: `providers.${id.replace('/', '.')}`,
    to: [path],
  }))
  return [...destinations, ...Object.entries(MOVED).map(([from, to]) => ({ from, to }))]
}

/** A variable stands for its setting, and one that names none for itself. */
function variableSources({ variable, path }: GivenSetting, from: Variables['from']): Sources['given'] {
  const file = from[variable]
  const name = file === undefined ? variable : `${variable} in ${file}`
  return [{ path: path.join('.'), name }, ...(file === undefined ? [] : [{ path: variable, name: file }])]
}

/**
 * A PicGo or PicList file as if it were ours. That the uploader in use can't be used here is a mistake: files must not
 * go anywhere else.
 */
async function fromPicGo(old: Json, report: Report): Promise<Import> {
  const { importPicGo } = await import('./import.ts')
  const imported = await importPicGo(old)
  const { config, notes } = imported
  const usable = listNamed(config['providers']).map(idOf)
  const current = config['default']
  if (typeof current !== 'string' || usable.includes(current)) return imported
  for (const note of notes) report('', note)
  return { ...imported, config: { ...config, default: usable[0] } }
}

function applyFlags(value: Json, flags: Flags): Json {
  const result = { ...value }
  for (const [section, members] of Object.entries(flags)) {
    const given = Object.entries(members).filter(([, member]) => member !== undefined)
    const before = result[section] ?? {}
    if (given.length > 0 && isRecord(before)) result[section] = { ...before, ...Object.fromEntries(given) }
  }
  return result
}
