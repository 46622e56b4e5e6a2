import { randomBytes } from 'node:crypto'
import { access, link, rm, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { z } from 'zod'
import { coerce } from '../config/environment.ts'
import { ConfigError, loadConfig } from '../config/load.ts'
import { resolveLocalPath, userConfigFile } from '../config/paths.ts'
import { systemCode } from '../errors.ts'
import { makePath } from '../uploader/make-path.ts'
import { mapMarked, memberOf } from '../uploader/options.ts'
import type { Provider } from '../uploader/provider.ts'
import { loadProvider, PROVIDER_TYPES } from '../uploader/registry.ts'
import { check } from './check.ts'
import type { CommonOptions, Terminal } from './terminal.ts'

export interface InitOptions extends CommonOptions {
  provider?: string
  /** Name of the saved configuration. */
  name?: string
  /** `option=value`. */
  set: readonly string[]
  /** Upload key for other machines. */
  key?: string
  /** Whether nothing is asked. */
  yes?: boolean
  /** False: --no-check. */
  check: boolean
}

/** What a first configuration is made of. */
export interface Answers {
  readonly provider: Provider
  readonly name: string
  readonly options: Readonly<Record<string, unknown>>
  readonly key: string | undefined
}

/** What of that stands on the command line. */
export interface Given extends Answers {
  /** Whether the provider was named. */
  readonly isChosen: boolean
}

/** `upload-server init`: makes a first configuration, tries it, and writes it for its owner alone. */
export async function init(options: InitOptions, terminal: Terminal): Promise<number> {
  const { env, cwd } = terminal
  const named = options.config ?? (env['UPLOAD_SERVER_CONFIG'] || undefined)
  const file = named === undefined ? userConfigFile(terminal) : resolve(cwd, named)
  if (!options.yes && !terminal.canAsk) {
    throw new Error(
      'init asks questions, which needs a terminal. In a script: upload-server init --yes --provider local --set directory=/srv/pictures --set serve=true',
    )
  }
  await assertFree(file)
  const given = await readGiven(options)
  const answers = options.yes ? given : await (await import('./ask.ts')).ask(given)
  if (answers === undefined) {
    terminal.note('Nothing was written.')
    return 1
  }
  return write(file, answers, options, terminal)
}

async function assertFree(file: string): Promise<void> {
  const isThere = await access(file).then(
    () => true,
    () => false,
  )
  if (isThere) throw occupied(file)
}

function occupied(file: string): Error {
  return new Error(`${file} is there already, and nothing was changed. Name another file with --config.`)
}

async function readGiven({ provider: wanted, name = 'Default', set, key }: InitOptions): Promise<Given> {
  const type = wanted ?? 'local'
  const provider = await loadProvider(type)
  if (!provider) throw new Error(`"${type}" is no provider. There are ${PROVIDER_TYPES.join(', ')}.`)
  const options: Record<string, unknown> = {}
  for (const entry of set) {
    const [, option = '', text = ''] = /^([^=]+)=(.*)$/s.exec(entry) ?? []
    const schema = memberOf(provider.config, option)
    if (!schema) {
      const known = Object.keys(provider.config.shape).join(', ')
      throw new Error(`--set ${option || entry}: ${provider.type} has no such option. It has ${known}.`)
    }
    options[option] = coerce(text, schema)
  }
  return { provider, isChosen: wanted !== undefined, name, options, key }
}

/** Tries the configuration where it will not be found, then puts it in its place. */
async function write(
  file: string,
  answers: Answers,
  options: InitOptions,
  terminal: Terminal,
): Promise<number> {
  const { provider, name, key } = answers
  const id = `${provider.type}/${name}`
  const absolute = mapMarked(provider.config, answers.options, (text, is) =>
    is === 'secret' ? text : resolveLocalPath(text, terminal.cwd),
  )
  const config = {
    ...(key !== undefined && { server: { key } }),
    default: id,
    providers: { [provider.type]: { [name]: absolute } },
  }
  await makePath(dirname(file), 0o700)
  const draft = `${file}.${randomBytes(4).toString('hex')}.new`
  await writeFile(draft, `${JSON.stringify(escapeVariables(config), undefined, 2)}\n`, {
    mode: 0o600,
    flag: 'wx',
  })
  try {
    await loadConfig({ ...terminal, file: draft }).catch(error => {
      if (error instanceof ConfigError)
        throw new Error(["This can't be used:", ...error.problems].join('\n  '))
      throw error
    })
    if (options.check && (await check(id, { config: draft }, { ...terminal, print: terminal.note })) !== 0) {
      terminal.note('Nothing was written. --no-check writes it all the same.')
      return 1
    }
    await link(draft, file).catch(error => {
      throw systemCode(error) === 'EEXIST' ? occupied(file) : error
    })
  } finally {
    await rm(draft, { force: true })
  }
  terminal.print(file)
  terminal.note(
    'Written, for your eyes only. Start the server: upload-server. Or upload right now: upload-server upload FILE',
  )
  return 0
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

/** The options that must be given. */
export function requiredOptions(provider: Provider): string[] {
  return Object.entries(provider.config.shape)
    .filter(([, schema]) => !(schema as z.ZodType).safeParse(undefined).success)
    .map(([name]) => name)
}
