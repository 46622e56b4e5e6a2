import { rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { ConfigError, loadConfig } from '../../config/load.ts'
import { coerce } from '../../config/override.ts'
import { resolveLocalPath, userConfigFile, userDataDirectory } from '../../config/paths.ts'
import { isFile, loadPlugins } from '../../config/plugins.ts'
import { suggest } from '../../config/suggest.ts'
import { mapPaths, memberOf } from '../../options.ts'
import { editorsFor } from '../../page/editors.ts'
import { en } from '../../page/words-en.ts'
import type { Provider } from '../../providers/contract.ts'
import { loadProvider, PROVIDER_TYPES } from '../../providers/registry.ts'
import { type Destination, idOf } from '../../uploader/destinations.ts'
import { check } from '../check/run.ts'
import type { Call, OptionsOf } from '../define.ts'
import { quote, type Terminal } from '../terminal.ts'
import type { Answers, Preset } from './ask.ts'
import { addDestination, nameDraft, readExisting, saveDraft, writeDraft } from './config-file.ts'
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
  if (!options.yes && !terminal.canAsk)
    throw new Error(
      'init asks questions, which needs a terminal. In a script, run: upload-server init --yes --provider local --set directory=/srv/pictures --set serve=true',
    )
  const named = options.config ?? (env['UPLOAD_SERVER_CONFIG'] || undefined)
  const file = named === undefined ? userConfigFile(terminal) : resolve(cwd, named)
  const existing = options.add ? readExisting(file) : undefined
  const draft = nameDraft(file, !existing)
  try {
    await writeDraft(draft, file)
    const plugins = (options.plugin ?? []).map(name => (isFile(name) ? resolveLocalPath(name, cwd) : name))
    const { providers } = await loadPlugins(existing?.plugins ?? plugins, dirname(file), (_, message) => {
      throw new Error(`${existing ? 'plugins' : '--plugin'}: ${message}`)
    })
    const added = [...providers.values()]
    const given = await readPreset(options, plugins, added, terminal)
    const questions = options.yes ? undefined : await import('./ask.ts')
    const answers = questions ? await questions.ask(given, file, added, existing?.ids) : given
    const { type } = answers.provider
    const id = idOf({ type, name: answers.name })
    if (existing?.ids.includes(id))
      throw new Error(`${id} is already in ${file}. Choose another name with --name.`)
    for (let isTested = options.check; ; ) {
      const { config } = answers.provider
      const own = escapeVariables(mapPaths(config, answers.options, path => resolveLocalPath(path, cwd)))
      const text = existing
        ? addDestination(existing, type, answers.name, own)
        : toText(escapeVariables(answers.settings), id, { [type]: { [answers.name]: own } })
      await writeDraft(draft, file, text)
      const problem = await findProblem(draft, isTested ? id : undefined, questions?.askTrust, terminal)
      if (problem === undefined) break
      if (!questions) throw new Error(problem)
      terminal.note(problem)
      isTested = await questions.askAgain(answers)
    }
    await saveDraft(draft, file, !existing)
    terminal.print(file)
    terminal.note(describeNextSteps(file, existing && id, answers, options, terminal))
    return 0
  } finally {
    await rm(draft, { force: true }).catch(() => {}) // It may not exist.
  }
}

const toText = (settings: unknown, id: string, providers: object) =>
  `${JSON.stringify({ ...(settings as object), default: id, providers }, undefined, 2)}\n`

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
  const directory = join(userDataDirectory(terminal), 'files')
  if (yes && type === 'local') {
    options['directory'] ??= directory
    if (options['urlPrefix'] === undefined) options['serve'] ??= true
  }
  const settings = { ...(plugins.length > 0 && { plugins }), ...(key !== undefined && { server: { key } }) }
  return { provider, isChosen: wanted !== undefined, name, options, settings, directory }
}

/** Escapes `${` in the texts of a value, unless the whole text is a variable such as `${NAME}`. */
const escapeVariables = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (_, item: unknown) =>
      typeof item === 'string' && !/^\$\{(\w+|file:[^}]+)\}$/.test(item)
        ? item.replaceAll('${', () => '$${')
        : item,
    ),
  )

/**
 * Why a configuration must not be saved: it is not valid, or its destination failed the test.
 *
 * @param id destination to test. Undefined: none
 * @param askTrust asks about the key of an unknown host. Undefined: it is trusted
 */
async function findProblem(
  draft: string,
  id: string | undefined,
  askTrust: typeof import('./ask.ts').askTrust | undefined,
  terminal: Terminal,
): Promise<string | undefined> {
  /** An unreachable server is left to the test that follows. */
  const prepare = async ({ target }: Destination) => {
    const unknownHost = await target.findUnknownHost?.(AbortSignal.timeout(HOST_KEY_TIMEOUT_MS))
    if (unknownHost === undefined) return
    if (!(await askTrust?.(unknownHost))) throw new Error('The host key is not trusted. Nothing was sent.')
    await unknownHost.trust()
  }
  if (id !== undefined && terminal.isInteractive)
    terminal.note('Uploading a test image and downloading it again …')
  try {
    if (id === undefined) await loadConfig({ ...terminal, file: draft })
    else if (await check(id, { config: draft }, { ...terminal, print: terminal.note }, askTrust && prepare))
      return 'The configuration was not saved. To save it without the test, use --no-check.'
    return undefined
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return ['The configuration is not valid:', ...error.problems].join('\n  ')
  }
}

/**
 * The commands that come next, the settings of editors, and what limits the links.
 *
 * @param id the destination that was added to a configuration. Undefined: it is a new one
 */
function describeNextSteps(
  file: string,
  id: string | undefined,
  { settings: { server = {}, auth }, options }: Answers,
  { config }: Options,
  { platform }: Terminal,
): string {
  const flag = config === undefined ? '' : ` --config ${quote(config, platform)}`
  if (id !== undefined)
    return `Destination added. A running server reloads its configuration. Next:

  upload-server upload${flag} --destination ${quote(id, platform)} FILE`
  const { port = 36677, publicUrl, key } = server
  const editors = editorsFor(
    {
      base: `http://127.0.0.1:${port}`,
      key: auth?.loopbackExempt === false ? 'KEY' : undefined,
      // An editor has another working directory.
      command: `upload-server upload${flag && ` --config ${quote(file, platform)}`}`,
    },
    en,
  )
  const rows = editors.flatMap(({ name, text, code }) => [
    [name, text.replace(/\*\*|`/g, '')],
    ...code.split('\n').map(line => ['', line]),
  ])
  if (publicUrl !== undefined)
    rows.push(['Remote', `${publicUrl.replace(/\/$/, '')}/upload${key === undefined ? '' : '?key=KEY'}`])
  const isLocal = options['serve'] === true && options['urlPrefix'] === undefined && publicUrl === undefined
  return [
    `Configuration saved, readable only by you (mode 0600). Next:

  upload-server${flag}              starts the server
  upload-server upload${flag} FILE  uploads a file without the server

Editor settings:
${rows.map(([name = '', text]) => `  ${name.padEnd(9)}  ${text}`).join('\n')}`,
    ...(key === undefined ? [] : [`KEY is the upload key for remote clients. See server.key in ${file}`]),
    ...(isLocal
      ? [
          'Links begin with http://127.0.0.1 and only work on this machine. For links that others can open, set server.publicUrl, or choose another destination.',
        ]
      : []),
  ].join('\n\n')
}
