import { randomBytes } from 'node:crypto'
import { access, constants, link, rm, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { Command } from 'commander'
import { coerce } from '../config/environment.ts'
import { suggest } from '../config/issues.ts'
import { ConfigError, loadConfig } from '../config/load.ts'
import { resolveLocalPath, userConfigFile, userDataDirectory } from '../config/paths.ts'
import { isFile, loadPlugins } from '../config/plugins.ts'
import { systemCode } from '../errors.ts'
import { makePath } from '../files/make-path.ts'
import { mapPaths, memberOf } from '../options.ts'
import type { Provider } from '../providers/contract.ts'
import { loadProvider, PROVIDER_TYPES } from '../providers/registry.ts'
import type { Answers, Given } from './answers.ts'
import { check } from './check.ts'
import { collect, configOption, endWith } from './command.ts'
import { describeEditors } from './editors.ts'
import { openForCommand } from './open.ts'
import { startProgress } from './progress.ts'
import { type CommonOptions, quote, type Terminal } from './terminal.ts'

/** For looking at a server before anything is sent to it. */
const MEET_MS = 20_000

interface InitOptions extends CommonOptions {
  provider?: string
  /** Name of the saved configuration. */
  name?: string
  /** Packages or files with further providers. */
  plugin?: readonly string[]
  /** `option=value`. */
  set?: readonly string[]
  /** Upload key for other machines. */
  key?: string
  /** Whether nothing is asked. */
  yes?: boolean
  /** False: --no-check. */
  check: boolean
}

export function register(program: Command, terminal: Terminal): void {
  program
    .command('init')
    .description('make a first configuration: ask, try it, write it')
    .addOption(configOption())
    .option('--provider <type>', 'provider of the destination (default: asked; local with --yes)')
    .option('--plugin <name>', 'package or file with further providers; may be repeated', collect)
    .option('--name <name>', 'name of its configuration', 'Default')
    .option('--set <option=value>', 'an option of the provider; may be repeated', collect)
    .option('-k, --key <key>', 'upload key for other machines')
    .option('-y, --yes', 'ask nothing')
    .option('--no-check', 'write it without trying it')
    .addHelpText(
      'after',
      `
Examples:
  upload-server init                         asks
  upload-server init --yes --provider local --set directory=/srv/pictures --set serve=true
  upload-server init --yes --provider github --set repo=me/img --set 'token=\${GITHUB_TOKEN}'`,
    )
    .action((options: InitOptions) => endWith(terminal, init(options, terminal)))
}

/** `upload-server init`: makes a first configuration, tries it, and writes it for its owner alone. */
async function init(options: InitOptions, terminal: Terminal): Promise<number> {
  const { env, cwd } = terminal
  const named = options.config ?? (env['UPLOAD_SERVER_CONFIG'] || undefined)
  const file = named === undefined ? userConfigFile(terminal) : resolve(cwd, named)
  if (!options.yes && !terminal.canAsk) {
    throw new Error(
      'init asks questions, which needs a terminal. In a script: upload-server init --yes --provider local --set directory=/srv/pictures --set serve=true',
    )
  }
  await assertFree(file)
  const plugins = (options.plugin ?? []).map(name => (isFile(name) ? resolveLocalPath(name, cwd) : name))
  const added = await loadPlugins(plugins, dirname(file), (_, message) => {
    throw new Error(`--plugin ${message}`)
  })
  const given = await readGiven(options, plugins, [...added.providers.values()], terminal)
  let answers = options.yes
    ? given
    : await (await import('./ask.ts')).ask(given, file, [...added.providers.values()])
  let isTried = options.check
  while (answers !== undefined) {
    const problem = await write(file, answers, { isTried, isAsked: !options.yes }, terminal)
    if (problem === undefined) {
      terminal.print(file)
      terminal.note(whatNext(file, answers, options, terminal))
      return 0
    }
    if (options.yes) throw new Error(`${problem} --no-check writes a configuration without trying it.`)
    terminal.note(problem)
    const next = await (await import('./ask.ts')).askAgain(answers)
    answers = next?.answers
    isTried = next?.isTried ?? false
  }
  terminal.note('Nothing was written.')
  return 1
}

function whatNext(
  file: string,
  { settings }: Answers,
  { config }: InitOptions,
  { platform }: Terminal,
): string {
  const flag = config === undefined ? '' : ` --config ${quote(config, platform)}`
  const key =
    settings.server?.key === undefined ? '' : `\nKEY is the key for other machines: server.key in ${file}`
  return `Written, for your eyes only. Start the server: upload-server${flag}
Or upload right now: upload-server upload${flag} FILE

Type into
${describeEditors(settings, flag, platform)}${key}`
}

/** Before anything is asked: the file must not be there, and its folder must take one. */
async function assertFree(file: string): Promise<void> {
  if (await isThere(file)) throw occupied(file)
  let folder = dirname(file)
  while (!(await isThere(folder)) && dirname(folder) !== folder) folder = dirname(folder)
  await access(folder, constants.W_OK | constants.X_OK).catch(error => {
    throw new Error(
      `${file} can't be written: ${systemCode(error)} at ${folder}. Name another file with --config.`,
    )
  })
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

function occupied(file: string): Error {
  return new Error(
    `${file} is there already, and nothing was changed. Change it by hand and ask upload-server check, or name another file with --config.`,
  )
}

async function readGiven(
  { provider: wanted, name = 'Default', set = [], key, yes }: InitOptions,
  plugins: readonly string[],
  added: readonly Provider[],
  terminal: Terminal,
): Promise<Given> {
  const type = wanted ?? (added.length === 1 ? added[0]?.type : undefined) ?? 'local'
  const provider = added.find(one => one.type === type) ?? (await loadProvider(type))
  const known = [...PROVIDER_TYPES, ...added.map(one => one.type)]
  if (!provider) throw new Error(`"${type}" is no provider${suggest(type, known)}`)
  const options: Record<string, unknown> = {}
  for (const entry of set) {
    const [, option = '', text = ''] = /^([^=]+)=(.*)$/s.exec(entry) ?? []
    const schema = memberOf(provider.config, option)
    if (!schema) {
      const known = Object.keys(provider.config.shape)
      throw new Error(
        `--set ${option || entry}: ${provider.type} has no such option${suggest(option, known)}`,
      )
    }
    options[option] = coerce(text, schema)
  }
  const settings = { ...(plugins.length > 0 && { plugins }), ...(key !== undefined && { server: { key } }) }
  const directory = join(userDataDirectory(terminal), 'files')
  if (yes && type === 'local') {
    options['directory'] ??= directory
    if (options['urlPrefix'] === undefined) options['serve'] ??= true
  }
  const suggested = { local: { directory } }
  return { provider, isChosen: wanted !== undefined, name, options, settings, suggested }
}

/**
 * Tries the configuration where it will not be found, then puts it in its place.
 *
 * @returns why it is not there, in words
 */
async function write(
  file: string,
  answers: Answers,
  { isTried, isAsked }: { isTried: boolean; isAsked: boolean },
  terminal: Terminal,
): Promise<string | undefined> {
  const { provider, name, settings } = answers
  const id = `${provider.type}/${name}`
  const absolute = mapPaths(provider.config, answers.options, path => resolveLocalPath(path, terminal.cwd))
  const config = { ...settings, default: id, providers: { [provider.type]: { [name]: absolute } } }
  await makePath(dirname(file), 0o700)
  const draft = `${file}.${randomBytes(4).toString('hex')}.new`
  await writeFile(draft, `${JSON.stringify(escapeVariables(config), undefined, 2)}\n`, {
    mode: 0o600,
    flag: 'wx',
  })
  try {
    const problems = await problemsOf(draft, terminal)
    if (problems.length > 0) return ["This can't be used:", ...problems].join('\n  ')
    if (isTried && isAsked && !(await areTrusted(draft, terminal)))
      return 'Nothing was sent there, and it was not written.'
    if (isTried && !(await isFine(id, draft, terminal))) return 'It was not written.'
    await link(draft, file).catch(error => {
      throw systemCode(error) === 'EEXIST' ? occupied(file) : error
    })
    return undefined
  } finally {
    await rm(draft, { force: true })
  }
}

async function isFine(id: string, draft: string, terminal: Terminal): Promise<boolean> {
  const progress = startProgress('Storing a picture there and fetching it back', terminal)
  const print = (line: string) => {
    progress.stop()
    terminal.note(line)
  }
  try {
    return (await check(id, { config: draft }, { ...terminal, print })) === 0
  } finally {
    progress.stop()
  }
}

/** Whether the person trusts the servers that nobody has met before. One that can't be reached is no matter of trust. */
async function areTrusted(draft: string, terminal: Terminal): Promise<boolean> {
  const { uploader } = await openForCommand({ config: draft }, terminal, () => {})
  try {
    for (const { target } of uploader.destinations) {
      const stranger = await target.meet?.(AbortSignal.timeout(MEET_MS))
      if (stranger === undefined) continue
      if (!(await (await import('./ask.ts')).askTrust(stranger))) return false
      await stranger.trust()
    }
    return true
  } finally {
    await uploader.close()
  }
}

async function problemsOf(draft: string, terminal: Terminal): Promise<readonly string[]> {
  try {
    await loadConfig({ ...terminal, file: draft })
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

/** A whole `${NAME}` is a variable; within other text the two characters are what they are. */
function escapeVariables(value: unknown): unknown {
  if (typeof value === 'string') {
    return /^\$\{(\w+|file:[^}]+)\}$/.test(value) ? value : value.replaceAll('${', () => '$${')
  }
  if (Array.isArray(value)) return value.map(escapeVariables)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, escapeVariables(item)]))
}
