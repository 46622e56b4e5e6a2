import { randomBytes } from 'node:crypto'
import { access, constants, link, rm, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { coerce } from '../../config/environment.ts'
import { ConfigError, loadConfig } from '../../config/load.ts'
import { resolveLocalPath, userConfigFile, userDataDirectory } from '../../config/paths.ts'
import { isFile, loadPlugins } from '../../config/plugins.ts'
import { suggest } from '../../config/suggest.ts'
import { systemCode } from '../../errors.ts'
import { makePath } from '../../files/make-path.ts'
import { mapPaths, memberOf } from '../../options.ts'
import type { Provider } from '../../providers/contract.ts'
import { loadProvider, PROVIDER_TYPES } from '../../providers/registry.ts'
import { check } from '../check/run.ts'
import type { Call, OptionsOf } from '../define.ts'
import { openForCommand } from '../open.ts'
import { startProgress } from '../progress.ts'
import { quote, type Terminal } from '../terminal.ts'
import type { Answers, Preset } from './answers.ts'
import { describeEditors } from './editors.ts'
import type { flags } from './index.ts'

type Options = OptionsOf<typeof flags>

/** Time limit for reading the host keys of SFTP servers, in milliseconds. */
const HOST_KEY_TIMEOUT_MS = 20_000

/** `upload-server init`: creates a configuration, tests it, and saves it with mode 0600. @returns the exit code */
export async function run({ options }: Call<typeof flags>, terminal: Terminal): Promise<number> {
  const { env, cwd } = terminal
  const named = options.config ?? (env['UPLOAD_SERVER_CONFIG'] || undefined)
  const file = named === undefined ? userConfigFile(terminal) : resolve(cwd, named)
  if (!options.yes && !terminal.canAsk) {
    throw new Error(
      'init asks questions, which needs a terminal. In a script, run: upload-server init --yes --provider local --set directory=/srv/pictures --set serve=true',
    )
  }
  await assertCreatable(file)
  const plugins = (options.plugin ?? []).map(name => (isFile(name) ? resolveLocalPath(name, cwd) : name))
  const added = await loadPlugins(plugins, dirname(file), (_, message) => {
    throw new Error(`--plugin: ${message}`)
  })
  const given = await readPreset(options, plugins, [...added.providers.values()], terminal)
  let answers = options.yes
    ? given
    : await (await import('./ask.ts')).ask(given, file, [...added.providers.values()])
  let isTested = options.check
  while (answers !== undefined) {
    const problem = await write(file, answers, { isTested, isAsked: !options.yes }, terminal)
    if (problem === undefined) {
      terminal.print(file)
      terminal.note(describeNextSteps(file, answers, options, terminal))
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

function describeNextSteps(
  file: string,
  { settings, options }: Answers,
  { config }: Options,
  { platform }: Terminal,
): string {
  const flag = config === undefined ? '' : ` --config ${quote(config, platform)}`
  // An editor runs the command in another working directory.
  const flagOfEditor = flag && ` --config ${quote(file, platform)}`
  const key =
    settings.server?.key === undefined
      ? ''
      : `\n\nKEY is the upload key for remote clients. See server.key in ${file}`
  const isLocal = options['serve'] === true && options['urlPrefix'] === undefined
  const local =
    isLocal && settings.server?.publicUrl === undefined
      ? '\n\nLinks begin with http://127.0.0.1 and only work on this machine. For links that others can open, set server.publicUrl, or choose another destination.'
      : ''
  return `Configuration saved, readable only by you (mode 0600). Next:

  upload-server${flag}              starts the server
  upload-server upload${flag} FILE  uploads a file without the server

Editor settings:
${describeEditors(settings, flagOfEditor, platform)}${key}${local}`
}

/** Checks before any question that the file does not exist yet and that its directory is writable. */
async function assertCreatable(file: string): Promise<void> {
  if (await isThere(file)) throw alreadyExists(file)
  let folder = dirname(file)
  while (!(await isThere(folder)) && dirname(folder) !== folder) folder = dirname(folder)
  await access(folder, constants.W_OK | constants.X_OK).catch(error => {
    throw new Error(
      `Could not create ${file}: ${systemCode(error)} at ${folder}. Choose another file with --config.`,
    )
  })
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

function alreadyExists(file: string): Error {
  return new Error(
    `${file} already exists and was not changed. Edit it and run upload-server check, or choose another file with --config.`,
  )
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
  const suggested = { local: { directory } }
  return { provider, isChosen: wanted !== undefined, name, options, settings, suggested }
}

/**
 * Tests the configuration in a draft file, then links the draft to its final name. An existing file is never overwritten.
 *
 * @returns why it was not saved, or undefined
 */
async function write(
  file: string,
  answers: Answers,
  { isTested, isAsked }: { isTested: boolean; isAsked: boolean },
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
    const problems = await validateDraft(draft, terminal)
    if (problems.length > 0) return ['The configuration is not valid:', ...problems].join('\n  ')
    if (isTested && isAsked && !(await trustHostKeys(draft, terminal)))
      return 'The host key is not trusted. Nothing was sent, and the configuration was not saved.'
    if (isTested && !(await testDestination(id, draft, terminal))) return 'The configuration was not saved.'
    await link(draft, file).catch(error => {
      throw systemCode(error) === 'EEXIST' ? alreadyExists(file) : error
    })
    return undefined
  } finally {
    await rm(draft, { force: true })
  }
}

async function testDestination(id: string, draft: string, terminal: Terminal): Promise<boolean> {
  const progress = startProgress('Uploading a test image and downloading it again', terminal)
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

/** Asks about each unknown host key. An unreachable server is left to the test that follows. @returns false if one is refused */
async function trustHostKeys(draft: string, terminal: Terminal): Promise<boolean> {
  const { uploader } = await openForCommand({ config: draft }, terminal, { warn: () => {} })
  try {
    for (const { target } of uploader.destinations) {
      const unknownHost = await target.findUnknownHost?.(AbortSignal.timeout(HOST_KEY_TIMEOUT_MS))
      if (unknownHost === undefined) continue
      if (!(await (await import('./ask.ts')).askTrust(unknownHost))) return false
      await unknownHost.trust()
    }
    return true
  } finally {
    await uploader.close()
  }
}

async function validateDraft(draft: string, terminal: Terminal): Promise<readonly string[]> {
  try {
    await loadConfig({ ...terminal, file: draft })
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
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
