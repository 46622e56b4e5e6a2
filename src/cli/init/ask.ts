import { randomBytes } from 'node:crypto'
import * as prompts from '@clack/prompts'
import { coerce } from '../../config/override.ts'
import { configSchema } from '../../config/schema.ts'
import { collectMarked, unwrap } from '../../options.ts'
import * as z from '../../packages/zod.ts'
import type { InitChoice, Provider, UnknownHost } from '../../providers/contract.ts'
import { loadProviders } from '../../providers/registry.ts'
import { idOf } from '../../uploader/destinations.ts'
import { networkAddresses } from '../serve/banner.ts'

type Options = Record<string, unknown>

/** Everything that `init` writes into the configuration file. */
export interface Answers {
  readonly provider: Provider
  /** Name of the destination. */
  readonly name: string
  /** Options of the destination. */
  readonly options: Options
  /** Settings outside of the destination. */
  readonly settings: {
    readonly plugins?: readonly string[]
    readonly server?: { host?: string; port?: number; publicUrl?: string; key?: string }
    readonly auth?: { readonly loopbackExempt: boolean }
  }
}

/** The part of the answers that the command line already gives. */
export interface Preset extends Answers {
  /** Whether `--provider` was given, so that the question is skipped. */
  readonly isChosen: boolean
  /** The folder that is suggested for the files of `local`. */
  readonly directory: string
}

interface Choice {
  readonly value: string
  readonly label: string
  readonly hint?: string
}

/** Questions go to standard error, because standard output is for results. */
const output = process.stderr
/** Maximum number of visible lines in a list. */
const maxItems = 12

/** Waits for an answer. @throws Error if the user cancels with Ctrl-C or Esc */
async function answerOf<T>(question: Promise<T>): Promise<Exclude<T, symbol>> {
  const answer = await question
  if (prompts.isCancel(answer)) throw new Error(CANCELLED)
  return answer as Exclude<T, symbol> // which it is: no other symbol exists
}

const CANCELLED = 'Nothing was saved.'

/** Asks for one of several. Enter takes the first. */
const choose = (message: string, options: readonly Choice[]): Promise<string> =>
  answerOf(prompts.select({ message, options: [...options], maxItems, output }))

/**
 * Asks all questions.
 *
 * @param file the configuration file to create or change
 * @param added providers of plugins
 * @param ids destinations of the configuration to which one is added. Its other settings are not asked for
 * @throws Error if the user cancels
 */
export async function ask(
  given: Preset,
  file: string,
  added: readonly Provider[],
  ids: readonly string[] | undefined,
): Promise<Answers> {
  prompts.intro(`${ids ? 'New destination in' : 'New configuration:'} ${file}`, { output })
  const { provider, asks, where, ...choice } = await chooseProvider(
    given.isChosen ? [given.provider] : [...added, ...(await loadProviders())],
  )
  const { type } = provider
  let { name } = given
  while (ids?.includes(idOf({ type, name }))) {
    const about = `Name of the new destination. ${idOf({ type, name })} exists already.`
    name = String(await askValue('name', z.string().describe(about), false))
  }
  const options: Options = { ...given.options }
  if (where) prompts.log.info(`Credentials: ${where}`, { output })
  for (const entry of asks) {
    const option = entry.replace('?', '')
    const suggested = type === 'local' && option === 'directory' ? given.directory : undefined
    options[option] ??= await askValue(option, schemaOf(provider, option), option !== entry, suggested)
  }
  Object.assign(options, { ...choice.options, ...given.options })
  await review(provider, options, [{ value: '', label: 'Continue' }])
  return { provider, name, options, settings: ids ? {} : await askSettings(given.settings) }
}

async function chooseProvider(
  providers: readonly Provider[],
): Promise<InitChoice & { readonly provider: Provider }> {
  const choices = providers.flatMap(provider => {
    const { type, config, about } = provider
    const required = Object.keys(config.shape).filter(name => config.shape[name]?.safeParse(undefined).error)
    return (about?.choices ?? [{ label: type, asks: required }]).map(choice => ({ ...choice, provider }))
  })
  const [first] = choices
  if (!first) throw new Error('there is no provider to choose')
  if (choices.length === 1) return first
  const find = (label: string) => choices.find(choice => choice.label === label) ?? first
  const label = await answerOf(
    prompts.autocomplete({
      message: 'Where should files be stored?',
      placeholder: 'type to search',
      options: choices.map(({ label, hint = '' }) => ({ value: label, label, hint })),
      filter(text, { value }) {
        const { label, hint = '', provider } = find(value)
        return `${label} ${hint} ${provider.type}`.toLowerCase().includes(text.trim().toLowerCase())
      },
      maxItems,
      output,
    }),
  )
  return find(label)
}

/** @param option one of the provider's */
const schemaOf = ({ config }: Provider, option: string) => config.shape[option] as z.ZodType

/**
 * Shows the options of a destination, and asks for those that the user selects, until the user chooses an end. The ends are
 * only shown while the provider accepts the options.
 *
 * @returns the chosen end
 */
async function review(provider: Provider, options: Options, ends: readonly Choice[]): Promise<string> {
  for (;;) {
    const problem = problemOf(provider, options) ?? ''
    if (problem !== '') prompts.log.warn(problem, { output })
    const rank = (name: string) =>
      Number(problem.includes(`"${name}"`)) * 2 + Number(options[name] !== undefined)
    const names = Object.keys(provider.config.shape).sort((one, other) => rank(other) - rank(one))
    const entries = names.map(name => {
      const schema = schemaOf(provider, name)
      const value = isSecret(schema) ? '•••' : showValue(options[name])
      const label = options[name] === undefined ? name : `${name}: ${value}`
      return { value: name, label, hint: schema.description ?? '' }
    })
    const chosen = await choose('Change an option?', [...(problem === '' ? ends : []), ...entries])
    if (!names.includes(chosen)) return chosen
    options[chosen] = await askValue(chosen, schemaOf(provider, chosen), true, options[chosen])
  }
}

function problemOf(provider: Provider, options: Options): string | undefined {
  const parsed = provider.config.safeParse(options)
  if (parsed.success) return provider.validate?.(parsed.data)
  return parsed.error.issues.map(issue => `${issue.path.join('.')}: ${issue.message}`).join('; ')
}

/**
 * Asks what to do after a failed test, so that one wrong answer does not discard the others. Corrects the options.
 *
 * @returns whether to test them
 * @throws Error if the user quits
 */
export async function askAgain({ provider, options }: Answers): Promise<boolean> {
  const end = await review(provider, options, [
    { value: '-test', label: 'Try again' },
    { value: '-save', label: 'Save it anyway', hint: 'test it later with upload-server check' },
    { value: '-quit', label: 'Quit', hint: 'nothing is saved' },
  ])
  if (end === '-quit') throw new Error(CANCELLED)
  return end === '-test'
}

/** Asks whether to trust the host key of an unknown SFTP server. */
export async function askTrust({ shown }: UnknownHost): Promise<boolean> {
  prompts.log.info(`${shown}.`, { output })
  const message = 'Trust this host key? Compare it with the output of "ssh-keygen -lf" on that server.'
  return answerOf(prompts.confirm({ message, output }))
}

const serverSchema = configSchema.shape.server
const SERVER = serverSchema.unwrap().shape

const CLIENTS: readonly Choice[] = [
  { value: 'here', label: 'Only programs on this machine', hint: 'without a key' },
  { value: 'network', label: 'Other machines too', hint: 'they need an upload key' },
  { value: 'proxy', label: 'Clients of a reverse proxy on this machine', hint: 'they need an upload key' },
]

/** Asks for settings of the server: its clients, its port, and its public URL. */
async function askSettings({ server: given, plugins }: Answers['settings']): Promise<Answers['settings']> {
  const clients = given?.key === undefined ? await choose('Who uploads to this server?', CLIENTS) : 'network'
  const server: Options = {}
  if (clients === 'network') server['host'] = '0.0.0.0'
  server['port'] = await askValue('port', SERVER.port, true)
  if (clients !== 'here') {
    const [address] = clients === 'network' ? networkAddresses() : []
    const guess = address && `http://${address}:${server['port'] ?? serverSchema.parse({}).port}`
    server['publicUrl'] = await askValue('publicUrl', SERVER.publicUrl, true, guess)
    server['key'] = given?.key ?? randomBytes(24).toString('base64url')
  }
  const isSet = Object.values(server).some(value => value !== undefined)
  // The schemas have checked the types.
  return {
    ...(plugins && { plugins }),
    ...(isSet && { server }),
    ...(clients === 'proxy' && { auth: { loopbackExempt: false } }),
  } as Answers['settings']
}

const isSecret = (schema: z.ZodType) => collectMarked(schema, 'x', 'secret').length > 0

const showValue = (value: unknown) =>
  typeof value === 'object' ? JSON.stringify(value) : String(value ?? '')

/**
 * Asks for the value of an option or a setting. Enter takes the current value, otherwise the default, which is not saved.
 *
 * @param current also what is suggested
 * @returns undefined for an optional value that is omitted, or that a space removes
 */
async function askValue(
  name: string,
  schema: z.ZodType,
  isOptional: boolean,
  current?: unknown,
): Promise<unknown> {
  const inner = unwrap(schema)
  const message = `${name}: ${schema.description ?? ''}`
  if (inner instanceof z.ZodBoolean)
    return answerOf(prompts.confirm({ message, initialValue: current !== true, output }))
  if (inner instanceof z.ZodEnum)
    return choose(
      message,
      inner.options.map(String).map(value => ({ value, label: value })),
    )
  const standard = schema.safeParse(undefined).data
  const mayBeEmpty = isOptional || standard !== undefined
  const isPath = collectMarked(schema, 'x', 'path').length > 0
  // Without the spaces of pasted text, and the quotes that a terminal adds to a dropped path.
  const bareOf = (text = '') => (isPath ? text.trim().replace(/^(["'])(.*)\1$/s, '$2') : text.trim())
  const validate = (typed: string | undefined) => {
    if (!typed && current !== undefined) return undefined
    const bare = bareOf(typed)
    if (bare === '') return mayBeEmpty ? undefined : 'A value is required.'
    return schema.safeParse(coerce(bare, schema)).error?.issues[0]?.message
  }
  const shown = showValue(current ?? standard)
  const removal = current !== undefined && mayBeEmpty ? ' A space removes the value.' : ''
  const question = { message: message + removal, validate, output }
  const typed = await answerOf(
    isSecret(schema)
      ? prompts.password(question)
      : prompts.text({ ...question, placeholder: shown || (isOptional ? 'optional' : '') }),
  )
  if (!typed) return current
  const bare = bareOf(typed)
  return bare === '' ? undefined : coerce(bare, schema)
}
