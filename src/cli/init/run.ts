import { dirname, join, resolve } from 'node:path'
import { ConfigError, loadConfig } from '../../config/load.ts'
import { coerce } from '../../config/override.ts'
import { resolveLocalPath, userConfigFile, userDataDirectory } from '../../config/paths.ts'
import { isFile, loadPlugins } from '../../config/plugins.ts'
import { suggest } from '../../config/suggest.ts'
import { mapPaths, memberOf } from '../../options.ts'
import type { Provider } from '../../providers/contract.ts'
import { loadProvider, PROVIDER_TYPES } from '../../providers/registry.ts'
import { type Destination, idOf } from '../../uploader/destinations.ts'
import { check } from '../check/run.ts'
import type { Call, OptionsOf } from '../define.ts'
import { startProgress } from '../progress.ts'
import { quote, type Terminal } from '../terminal.ts'
import type { Answers, Preset } from './ask.ts'
import { addDestination, type ConfigFile, openConfigFile, saveConfig } from './config-file.ts'
import { describeEditors } from './editors.ts'
import type { flags } from './index.ts'

type Options = OptionsOf<typeof flags>

/** Time limit for reading the host keys of SFTP servers, in milliseconds. */
const HOST_KEY_TIMEOUT_MS = 20_000

/**
 * `upload-server init`: creates a configuration, or adds a destination to one, tests it, and saves it.
 *
 * @returns the exit code
 */
export async function run({ options }: Call<typeof flags>, terminal: Terminal): Promise<number> {
  const { env, cwd } = terminal
  const named = options.config ?? (env['UPLOAD_SERVER_CONFIG'] || undefined)
  if (!options.yes && !terminal.canAsk) {
    throw new Error(
      'init asks questions, which needs a terminal. In a script, run: upload-server init --yes --provider local --set directory=/srv/pictures --set serve=true',
    )
  }
  const file = await openConfigFile(
    named === undefined ? userConfigFile(terminal) : resolve(cwd, named),
    options.add === true,
  )
  const { existing } = file
  const plugins = (options.plugin ?? []).map(name => (isFile(name) ? resolveLocalPath(name, cwd) : name))
  const { providers } = await loadPlugins(existing?.plugins ?? plugins, dirname(file.named), (_, message) => {
    throw new Error(`${existing ? 'plugins' : '--plugin'}: ${message}`)
  })
  const added = [...providers.values()]
  const given = await readPreset(options, plugins, added, terminal)
  const id = idOf({ type: given.provider.type, name: given.name })
  if (options.yes && existing?.ids.includes(id))
    throw new Error(`${id} is already in ${file.named}. Choose another name with --name.`)
  let answers = options.yes
    ? given
    : await (await import('./ask.ts')).ask(given, file.named, added, existing?.ids)
  let isTested = options.check
  while (answers !== undefined) {
    const id = idOf({ type: answers.provider.type, name: answers.name })
    const problem = await saveConfig(file, toText(answers, file, cwd), draft =>
      findProblem(draft, isTested ? id : undefined, options, terminal),
    )
    if (problem === undefined) {
      terminal.print(file.named)
      terminal.note(describeNextSteps(file, id, answers, options, terminal))
      return 0
    }
    if (options.yes) throw new Error(`${problem} --no-check saves the configuration without testing it.`)
    terminal.note(problem)
    const next = await (await import('./ask.ts')).askAgain(answers)
    answers = next?.answers
    isTested = next?.isTested ?? false
  }
  terminal.note('Nothing was saved.')
  return 1
}

async function readPreset(
  { provider: wanted, name, set = [], key, yes }: Options,
  plugins: readonly string[],
  added: readonly Provider[],
  terminal: Terminal,
): Promise<Preset> {
  const type = wanted ?? (added.length === 1 ? added[0]?.type : undefined) ?? 'local'
  const provider = added.find(one => one.type === type) ?? (await loadProvider(type))
  const known = [...PROVIDER_TYPES, ...added.map(one => one.type)]
  if (!provider) throw new Error(`"${type}" is not a provider${suggest(type, known)}`)
  const options: Record<string, unknown> = {}
  for (const entry of set) {
    const [, option = '', text = ''] = /^([^=]+)=(.*)$/s.exec(entry) ?? []
    const schema = memberOf(provider.config, option)
    if (!schema) {
      const known = Object.keys(provider.config.shape)
      throw new Error(`--set ${option || entry}: not an option of ${provider.type}${suggest(option, known)}`)
    }
    options[option] = coerce(text, schema)
  }
  const settings = { ...(plugins.length > 0 && { plugins }), ...(key !== undefined && { server: { key } }) }
  const directory = join(userDataDirectory(terminal), 'files')
  if (yes && type === 'local') {
    options['directory'] ??= directory
    if (options['urlPrefix'] === undefined) options['serve'] ??= true
  }
  return {
    provider,
    isChosen: wanted !== undefined,
    name,
    options,
    settings,
    suggested: { local: { directory } },
  }
}

/** The text of the configuration with the destination. */
function toText(
  { provider, name, options, settings }: Answers,
  { existing }: ConfigFile,
  cwd: string,
): string {
  const { type } = provider
  const absolute = escapeVariables(mapPaths(provider.config, options, path => resolveLocalPath(path, cwd)))
  if (existing) return addDestination(existing, type, name, absolute)
  const others = escapeVariables(settings) as object // as it was before
  const whole = { ...others, default: idOf({ type, name }), providers: { [type]: { [name]: absolute } } }
  return `${JSON.stringify(whole, undefined, 2)}\n`
}

/** Escapes `${` in values, unless the whole value is a variable such as `${NAME}`. */
function escapeVariables(value: unknown): unknown {
  if (typeof value === 'string') {
    return /^\$\{(\w+|file:[^}]+)\}$/.test(value) ? value : value.replaceAll('${', () => '$${')
  }
  if (Array.isArray(value)) return value.map(escapeVariables)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, escapeVariables(item)]))
}

/**
 * Why a configuration must not be saved: it is not valid, or its destination failed the test.
 *
 * @param id destination to test. Undefined: none
 */
async function findProblem(
  draft: string,
  id: string | undefined,
  { yes }: Options,
  terminal: Terminal,
): Promise<string | undefined> {
  const progress = startProgress('Uploading a test image and downloading it again', terminal)
  const print = (line: string) => {
    progress.stop()
    terminal.note(line)
  }
  /** Asks about an unknown host key. An unreachable server is left to the test that follows. */
  const askForTrust = async ({ target }: Destination) => {
    const unknownHost = await target.findUnknownHost?.(AbortSignal.timeout(HOST_KEY_TIMEOUT_MS))
    if (unknownHost === undefined) return
    progress.stop()
    if (!(await (await import('./ask.ts')).askTrust(unknownHost)))
      throw new Error('The host key is not trusted. Nothing was sent.')
    await unknownHost.trust()
  }
  try {
    if (id === undefined) await loadConfig({ ...terminal, file: draft })
    else if (
      (await check(id, { config: draft }, { ...terminal, print }, yes ? undefined : askForTrust)) !== 0
    )
      return 'The configuration was not saved.'
    return undefined
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return ['The configuration is not valid:', ...error.problems].join('\n  ')
  } finally {
    progress.stop()
  }
}

function describeNextSteps(
  { named, existing }: ConfigFile,
  id: string,
  { settings, options }: Answers,
  { config }: Options,
  { platform }: Terminal,
): string {
  const flag = config === undefined ? '' : ` --config ${quote(config, platform)}`
  if (existing)
    return `Destination added. A running server reloads its configuration. Next:

  upload-server upload${flag} --destination ${quote(id, platform)} FILE`
  const { key, publicUrl } = settings.server ?? {}
  const isLocal = options['serve'] === true && options['urlPrefix'] === undefined && publicUrl === undefined
  return [
    `Configuration saved, readable only by you (mode 0600). Next:

  upload-server${flag}              starts the server
  upload-server upload${flag} FILE  uploads a file without the server

Editor settings:
${describeEditors(settings, flag && ` --config ${quote(named, platform)}`, platform)}`, // An editor has another working directory.
    ...(key === undefined ? [] : [`KEY is the upload key for remote clients. See server.key in ${named}`]),
    ...(isLocal
      ? [
          'Links begin with http://127.0.0.1 and only work on this machine. For links that others can open, set server.publicUrl, or choose another destination.',
        ]
      : []),
  ].join('\n\n')
}
