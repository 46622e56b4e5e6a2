import { randomBytes } from 'node:crypto'
import { access, constants, link, rm, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { ConfigError, loadConfig } from '../../config/load.ts'
import { coerce } from '../../config/override.ts'
import { resolveLocalPath, userConfigFile, userDataDirectory } from '../../config/paths.ts'
import { isFile, loadPlugins } from '../../config/plugins.ts'
import { suggest } from '../../config/suggest.ts'
import { describeFileError, systemCode } from '../../errors.ts'
import { makePath } from '../../files/make-path.ts'
import { mapPaths, memberOf } from '../../options.ts'
import type { Provider } from '../../providers/contract.ts'
import { loadProvider, PROVIDER_TYPES } from '../../providers/registry.ts'
import { idOf } from '../../uploader/destinations.ts'
import { check } from '../check/run.ts'
import type { Call, OptionsOf } from '../define.ts'
import { openForCommand } from '../open.ts'
import { startProgress } from '../progress.ts'
import { quote, type Terminal } from '../terminal.ts'
import type { Answers, Preset } from './answers.ts'
import { describeEditors } from './editors.ts'
import { addDestination, type Existing, readExisting } from './existing.ts'
import type { flags } from './index.ts'

type Options = OptionsOf<typeof flags>

/** Time limit for reading the host keys of SFTP servers, in milliseconds. */
const HOST_KEY_TIMEOUT_MS = 20_000

/**
 * `upload-server init`: creates a configuration, or adds a destination to one, tests it, and saves it. A new file has mode 0600.
 *
 * @returns the exit code
 */
export async function run({ options }: Call<typeof flags>, terminal: Terminal): Promise<number> {
  const { env, cwd } = terminal
  const named = options.config ?? (env['UPLOAD_SERVER_CONFIG'] || undefined)
  const file = named === undefined ? userConfigFile(terminal) : resolve(cwd, named)
  if (!options.yes && !terminal.canAsk) {
    throw new Error(
      'init asks questions, which needs a terminal. In a script, run: upload-server init --yes --provider local --set directory=/srv/pictures --set serve=true',
    )
  }
  const existing = options.add ? await readExisting(file) : undefined
  if (!existing) await assertCreatable(file)
  const plugins =
    existing?.plugins ??
    (options.plugin ?? []).map(name => (isFile(name) ? resolveLocalPath(name, cwd) : name))
  const added = await loadPlugins(plugins, dirname(file), (_, message) => {
    throw new Error(`${existing ? 'plugins' : '--plugin'}: ${message}`)
  })
  const given = await readPreset(options, existing ? [] : plugins, [...added.providers.values()], terminal)
  const id = idOf({ type: given.provider.type, name: given.name })
  if (options.yes && existing?.ids.includes(id))
    throw new Error(`${id} is already in ${file}. Choose another name with --name.`)
  let answers = options.yes
    ? given
    : await (await import('./ask.ts')).ask(given, file, [...added.providers.values()], existing)
  let isTested = options.check
  while (answers !== undefined) {
    const problem = await write(file, existing, answers, { isTested, isAsked: !options.yes }, terminal)
    if (problem === undefined) {
      terminal.print(file)
      terminal.note(
        existing
          ? describeUse(answers, options, terminal)
          : describeNextSteps(file, answers, options, terminal),
      )
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

function describeUse({ provider, name }: Answers, { config }: Options, { platform }: Terminal): string {
  const flag = config === undefined ? '' : ` --config ${quote(config, platform)}`
  return `Destination added. A running server reloads its configuration. Next:

  upload-server upload${flag} --destination ${quote(idOf({ type: provider.type, name }), platform)} FILE`
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
      `Could not create ${file} below ${folder}: ${describeFileError(error)}. Choose another file with --config.`,
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
    `${file} already exists and was not changed. To add a destination to it, use --add. To create another file, use --config.`,
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
 * Tests the configuration in a draft file, then gives the draft its final name. A file that was not read is never overwritten.
 *
 * @returns why it was not saved, or undefined
 */
async function write(
  file: string,
  existing: Existing | undefined,
  answers: Answers,
  { isTested, isAsked }: { isTested: boolean; isAsked: boolean },
  terminal: Terminal,
): Promise<string | undefined> {
  const { provider, name, settings } = answers
  const id = `${provider.type}/${name}`
  const absolute = mapPaths(provider.config, answers.options, path => resolveLocalPath(path, terminal.cwd))
  const text = existing
    ? addDestination(existing, provider.type, name, escapeVariables(absolute))
    : toText({ ...settings, default: id, providers: { [provider.type]: { [name]: absolute } } })
  await makePath(dirname(file), 0o700)
  const draft = `${existing?.file ?? file}.${randomBytes(4).toString('hex')}.new`
  try {
    await writeFile(draft, text, { mode: 0o600, flag: 'wx' }).catch(error => {
      throw new Error(`Could not write ${file}: ${describeFileError(error)}.`)
    })
    const problems = await validateDraft(draft, terminal)
    if (problems.length > 0) return ['The configuration is not valid:', ...problems].join('\n  ')
    if (isTested && isAsked && !(await trustHostKeys(id, draft, terminal)))
      return 'The host key is not trusted. Nothing was sent, and the configuration was not saved.'
    if (isTested && !(await testDestination(id, draft, terminal))) return 'The configuration was not saved.'
    if (existing) await existing.replace(draft)
    else
      await link(draft, file).catch(error => {
        throw systemCode(error) === 'EEXIST' ? alreadyExists(file) : error
      })
    return undefined
  } finally {
    await rm(draft, { force: true })
  }
}

const toText = (config: object) => `${JSON.stringify(escapeVariables(config), undefined, 2)}\n`

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
async function trustHostKeys(id: string, draft: string, terminal: Terminal): Promise<boolean> {
  const { uploader } = await openForCommand({ config: draft }, terminal, { warn: () => {} })
  try {
    for (const destination of uploader.destinations.filter(one => idOf(one) === id)) {
      const { target } = destination
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
