import { dirname, join } from 'node:path'
import { messageOf } from '../errors.ts'
import { secretsOfProxy } from '../http/proxy/address.ts'
import { listProxyVariables } from '../http/proxy/environment.ts'
import { membersOf } from '../members.ts'
import { canonicalType } from '../providers/registry.ts'
import { idOf, type LeftOut } from '../uploader/destinations.ts'
import { applySettings, findSettings, type GivenSetting, type Variables, withDotenv } from './environment.ts'
import { type ConfigFile, findConfigFile, parseJson, type WhereToLook } from './file.ts'
import type { Import } from './import.ts'
import { interpolate, type OnProblem } from './interpolate.ts'
import { kindOf } from './issues.ts'
import { isRecord, type Json } from './json.ts'
import { userConfigFile, userDataDirectory } from './paths.ts'
import { isPicGoConfig } from './picgo/recognise.ts'
import { loadPlugins, type Plugins } from './plugins.ts'
import { listNamed, mentionedTypes, wholeSchema } from './providers.ts'
import { configSchema } from './schema.ts'
import { flagSources, type Sources } from './sources.ts'

/** An error in a configuration. */
export interface Problem {
  /** Path of the option; empty if the error concerns the whole configuration. */
  readonly path: string
  readonly message: string
}

/** All errors in a configuration, one per line. */
export class ConfigError extends Error {
  /** The errors, without the locations that the message contains. */
  readonly problems: readonly string[]

  /** @param placeOf returns what to change: a line of the file, an environment variable or a flag */
  constructor(
    file: string | undefined,
    problems: readonly Problem[],
    placeOf: (path: string) => string | undefined = () => undefined,
  ) {
    const lines = problems.map(({ path, message }) => (path ? `${path}: ${message}` : message))
    const placed = problems.map(({ path, message }, index) => {
      // A message about a file of PicGo begins with the path in that file.
      const place = placeOf(path || (/^"([^"]*)"/.exec(message)?.[1] ?? ''))
      return place === undefined ? `  ${lines[index]}` : `  ${lines[index]} (${place})`
    })
    super([`Could not load ${file ?? 'the configuration'}:`, ...placed].join('\n'))
    this.name = 'ConfigError'
    this.problems = lines
  }
}

/** Settings of the command line, by section. They override the environment and the file. */
export type Flags = Record<string, Record<string, unknown>>

export interface LoadOptions extends WhereToLook {
  flags?: Flags
  /** Whether plugins are loaded, which runs their code. Default: true. */
  loadsPlugins?: boolean
}

/** A configuration that has been read but not checked. */
export interface RawConfig {
  value: Json
  file: string | undefined
  /** Directory that relative paths start at. */
  base: string
  /** Directory from which plugins are resolved and in which programs are started. */
  codeBase: string
  /** Directory for the embedded destination, the database and temporary files. */
  dataDirectory: string
  /** Every file that was read. */
  files: string[]
  /** Files that a reload would read: the configuration and the `.env` next to it, whether they exist or not. */
  places: string[]
  notes: string[]
  /** Its plugins, if they were loaded to apply settings of the environment. */
  plugins?: Plugins | undefined
  /** Passwords in the proxy URLs of the environment. */
  secrets: string[]
  /** Destinations of a PicGo or PicList file that can't be used. */
  leftOut: LeftOut[]
  sources: Sources
}

/**
 * Reads the file and overrides it with the environment and the flags.
 *
 * @throws ConfigError if an error leaves nothing to check
 */
export async function readRaw(options: LoadOptions, report: OnProblem): Promise<RawConfig> {
  let found: ConfigFile | undefined
  try {
    found = findConfigFile(options)
  } catch (error) {
    throw new ConfigError(undefined, [{ path: '', message: messageOf(error) }])
  }
  const place = found?.path ?? userConfigFile(options)
  const codeBase = dirname(place)
  const base = found ? codeBase : options.cwd
  const variables: Variables = found
    ? await withDotenv(options.env, codeBase)
    : { env: options.env, added: new Set() }
  const { env } = variables

  let value: unknown = {}
  let notes: string[] = []
  let imported: Import | undefined
  if (found) {
    value = await parseJson(found.text, report).catch((error: Error) => {
      throw new ConfigError(found.path, [{ path: '', message: error.message }])
    })
    if (!isRecord(value))
      throw new ConfigError(found.path, [
        { path: '', message: `must contain an object, not ${kindOf(value)}` },
      ])
    if (isPicGoConfig(value)) {
      imported = await fromPicGo(value, report)
      value = imported.config
      notes = imported.notes
    }
  }
  const filled = interpolate(value, env, base, report)
  value = filled.value
  const given = findSettings(env, note => notes.push(note))
  let plugins: Plugins | undefined
  if (given.length > 0) {
    const types = given.flatMap(({ path: [section, type = ''] }) =>
      section?.toLowerCase() === 'providers' ? canonicalType(type.toLowerCase()) : [],
    )
    // Plugins add settings of their own, so they are loaded first.
    const isOfPlugins = ({ path: [section] }: GivenSetting) => section?.toLowerCase() === 'plugins'
    value = applySettings(value, given.filter(isOfPlugins), configSchema, report)
    if (options.loadsPlugins !== false)
      plugins = await loadPlugins(membersOf(value)['plugins'], codeBase, report)
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
    const left = await leaveOutUnusable({ ...imported, config: membersOf(value) }, report)
    value = left.config
    notes = left.notes
    leftOut = left.leftOut
  }
  return {
    value: applyFlags(membersOf(value), options.flags ?? {}),
    file: found?.path,
    base,
    codeBase,
    dataDirectory: userDataDirectory(options),
    files: [found?.path ?? [], variables.file ?? [], filled.files].flat(),
    places: [place, join(codeBase, '.env')],
    notes,
    plugins,
    secrets: listProxyVariables(env).flatMap(secretsOfProxy),
    leftOut,
    sources: {
      text: found?.text,
      moved: imported && movesOf(imported.places),
      given: [...flagSources(options.flags ?? {}), ...given.flatMap(one => variableSources(one, variables))],
    },
  }
}

/** Paths of our settings in a file of PicGo. Of several, the first that the file has is used. */
const MOVED = {
  default: ['picBed.uploader', 'picBed.current'],
  keyTemplate: ['buildIn.rename', 'settings.autoRename'],
  'log.level': ['settings.logLevel'],
  images: ['buildIn'],
  'server.key': ['settings.serverKey', 'settings.server.secret', 'settings.server.key', 'server.key'],
  server: ['settings.server', 'server'],
}

function movesOf(places: Import['places']): Sources['moved'] {
  const destinations = [...places].map(([id, path]) => ({
    from: `providers.${id.replace('/', '.')}`,
    to: [path],
  }))
  return [...destinations, ...Object.entries(MOVED).map(([from, to]) => ({ from, to }))]
}

/** The variable as the location of its setting, and the `.env` file as the location of the variable. */
function variableSources(
  { variable, path }: GivenSetting,
  { added, file: dotenv }: Variables,
): Sources['given'] {
  const file = added.has(variable) ? dotenv : undefined
  const name = file === undefined ? variable : `${variable} in ${file}`
  return [{ path: path.join('.'), name }, ...(file === undefined ? [] : [{ path: variable, name: file }])]
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

function applyFlags(value: Json, flags: Flags): Json {
  const result = { ...value }
  for (const [section, members] of Object.entries(flags)) {
    const given = Object.entries(members).filter(([, member]) => member !== undefined)
    const before = result[section] ?? {}
    if (given.length > 0 && isRecord(before)) result[section] = { ...before, ...Object.fromEntries(given) }
  }
  return result
}
