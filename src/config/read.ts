import { dirname, join } from 'node:path'
import { messageOf } from '../errors.ts'
import { secretsOfEnvironment } from '../http/proxy/outgoing.ts'
import { isRecord, type Json } from '../members.ts'
import { PROVIDER_TYPES } from '../providers/registry.ts'
import { idOf } from '../uploader/destinations.ts'
import { findConfigFile, type WhereToLook } from './file.ts'
import { interpolate } from './interpolate.ts'
import { kindOf } from './issues.ts'
import { type Flags, override, overridesOfFlags, overridesOfVariables, readDotenv } from './override.ts'
import { isPicGoConfig, lineOf, type Parsed, parseJson } from './parse.ts'
import { userConfigFile, userDataDirectory } from './paths.ts'
import type { Import } from './picgo/index.ts'
import { loadPlugins, NO_PLUGINS } from './plugins.ts'
import { ConfigError, type OnProblem } from './problems.ts'
import { listNamed, wholeSchema } from './providers.ts'
import { configSchema } from './schema.ts'

export interface LoadOptions extends WhereToLook {
  flags?: Flags
}

/**
 * Reads a configuration in stages: finds the file, parses it, converts it if it is of PicGo, fills in variables,
 * overrides it by the environment and flags, and loads the plugins. The result has not been checked.
 *
 * @param runsPlugins whether plugins are loaded, which runs their code
 * @throws ConfigError if an error leaves nothing to check
 */
export async function readConfig(options: LoadOptions, report: OnProblem, runsPlugins = true) {
  const { path, value, lines } = findAndParse(options, report)
  const place = path ?? userConfigFile(options)
  const codeBase = dirname(place)
  const base = path === undefined ? options.cwd : codeBase
  const picgo = isPicGoConfig(value) ? await import('./picgo/index.ts') : undefined
  const imported = await picgo?.importPicGo(value)

  const dotenv = join(codeBase, '.env')
  const added = path === undefined ? undefined : await readDotenv(dotenv)
  const filled = interpolate(
    imported ? checkInUse(imported, report) : value,
    { ...added, ...options.env },
    base,
    report,
  )

  const notes: string[] = []
  const note = (sentence: string) => notes.push(sentence)
  const overrides = [
    ...overridesOfVariables(added ?? {}, note, ` in ${dotenv}`),
    ...overridesOfVariables(options.env, note),
    ...overridesOfFlags(options.flags ?? {}),
  ]
  const ofDestinations = overrides.filter(one => one.path[0]?.toLowerCase() === 'providers')
  const ofServer = overrides.filter(one => !ofDestinations.includes(one))
  const settings = override(filled.value, ofServer, configSchema, report)
  const plugins = runsPlugins ? await loadPlugins(settings['plugins'], codeBase, report) : NO_PLUGINS
  // Destinations have the options of their providers, also of those that are plugins. For a wrong name, all are suggested.
  const types = ofDestinations.map(one => `${one.path[1]}`.toLowerCase())
  const areKnown = types.every(type => plugins.providers.has(type) || PROVIDER_TYPES.includes(type))
  const schema = await wholeSchema(areKnown ? types : PROVIDER_TYPES, plugins)
  const whole = override(settings, ofDestinations, schema, report)

  return {
    value: whole,
    /** The file that was read; undefined if there is none. */
    file: path,
    /** Directory that relative paths start at. */
    base,
    /** Directory from which plugins are resolved and in which programs are started. */
    codeBase,
    /** Directory for the embedded destination, the database and temporary files. */
    dataDirectory: userDataDirectory(options),
    /** Every file that was read. */
    files: [path ?? [], added ? dotenv : [], filled.files].flat(),
    /** Files that a reload would read, whether they exist or not. */
    places: [place, dotenv],
    notes: [...(imported?.notes ?? []), ...notes],
    plugins,
    /** Passwords in the proxy URLs of the environment. */
    secrets: secretsOfEnvironment({ ...added, ...options.env }),
    /** Destinations of a PicGo or PicList file that can't be used. */
    leftOut: imported?.leftOut ?? [],
    /** Where a setting comes from: a flag, a variable or a line of the file. Undefined: it is a default. */
    placeOf(setting: string): string | undefined {
      const isAround = (around: string) => isWithin(setting.toLowerCase(), around.toLowerCase())
      const over = overrides.findLast(one => isAround(one.path.join('.')))
      const [, moved] = [...(imported?.places ?? [])].find(([ours]) => isWithin(setting, ours)) ?? []
      const line = lineOf(lines, moved ?? setting)
      return over?.name ?? (line === undefined ? undefined : `line ${line}`)
    },
  }
}

/** @throws ConfigError */
function findAndParse(
  options: LoadOptions,
  report: OnProblem,
): { readonly path?: string; readonly value: Json; readonly lines: Parsed['lines'] } {
  let path: string | undefined
  try {
    const found = findConfigFile(options)
    if (!found) return { value: {}, lines: new Map() }
    path = found.path
    const { value, lines } = parseJson(found.text, report)
    if (!isRecord(value)) throw new Error(`must contain an object, not ${kindOf(value)}`)
    return { path, value, lines }
  } catch (error) {
    throw new ConfigError(path, [{ path: '', message: messageOf(error) }])
  }
}

/**
 * It is an error if the uploader in use of a PicGo or PicList file has no counterpart here, because files must not be stored
 * anywhere else.
 */
function checkInUse({ config, problem }: Import, report: OnProblem): Json {
  const usable = listNamed(config['providers']).map(idOf)
  if (problem === undefined || usable.some(id => id === config['default'])) return config
  report('', problem)
  return { ...config, default: usable[0] }
}

const isWithin = (path: string, around: string) =>
  path === around || (path.startsWith(around) && /^[.[]/.test(path.slice(around.length)))
