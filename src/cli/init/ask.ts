import { randomBytes } from 'node:crypto'
import * as prompts from '@clack/prompts'
import { configSchema } from '../../config/schema.ts'
import { memberOf } from '../../options.ts'
import * as z from '../../packages/zod.ts'
import type { InitChoice, Provider, UnknownHost } from '../../providers/contract.ts'
import { loadProviders } from '../../providers/registry.ts'
import { idOf } from '../../uploader/destinations.ts'
import { networkAddresses } from '../serve/banner.ts'
import {
  answerOf,
  askValue,
  Cancelled,
  type Choice,
  choose,
  isSecret,
  maxItems,
  output,
  showValue,
  unlessCancelled,
} from './questions.ts'

type Options = Record<string, unknown>

/** Everything that `init` writes into the configuration file. */
export interface Answers {
  readonly provider: Provider
  /** Name of the destination. */
  readonly name: string
  /** Options of the destination. */
  readonly options: Readonly<Options>
  /** Settings outside of the destination. */
  readonly settings: {
    readonly plugins?: readonly string[]
    readonly server?: {
      readonly host?: string | undefined
      readonly port?: number | undefined
      readonly publicUrl?: string | undefined
      readonly key?: string | undefined
    }
    readonly auth?: { readonly loopbackExempt: boolean }
    readonly keyTemplate?: string | undefined
  }
}

/** The part of the answers that the command line already gives. */
export interface Preset extends Answers {
  /** Whether `--provider` was given, so that the question is skipped. */
  readonly isChosen: boolean
  /** Suggested values of options, by provider type. */
  readonly suggested: Readonly<Record<string, Readonly<Options>>>
}

/** An entry of the menu, with its provider. */
interface ProviderChoice extends InitChoice {
  readonly provider: Provider
}

/**
 * Asks all questions.
 *
 * @param file the configuration file to create or change
 * @param added providers of plugins
 * @param ids destinations of the configuration to which one is added. Its other settings are not asked for
 * @returns undefined if the user cancels
 */
export function ask(
  given: Preset,
  file: string,
  added: readonly Provider[],
  ids: readonly string[] | undefined,
): Promise<Answers | undefined> {
  return unlessCancelled(async () => {
    prompts.intro(`${ids ? 'New destination in' : 'New configuration:'} ${file}`, { output })
    const { provider, asks, where, ...choice } = await chooseProvider(
      given.isChosen ? [given.provider] : [...added, ...(await loadProviders())],
    )
    const name = await askName(provider.type, given.name, ids ?? [])
    const options: Options = { ...given.options }
    if (where) prompts.log.info(`Credentials: ${where}`, { output })
    for (const entry of asks) {
      const option = entry.replace('?', '')
      const suggested = given.suggested[provider.type]?.[option]
      options[option] ??= await askValue(option, schemaOf(provider, option), option !== entry, suggested)
    }
    Object.assign(options, { ...choice.options, ...given.options })
    await review(provider, options, [{ value: '', label: 'Continue' }])
    return { provider, name, options, settings: ids ? {} : await askSettings(given.settings) }
  })
}

async function chooseProvider(providers: readonly Provider[]): Promise<ProviderChoice> {
  const choices = providers.flatMap(provider =>
    (provider.about?.choices ?? [defaultChoice(provider)]).map(choice => ({ ...choice, provider })),
  )
  const [first, second] = choices
  if (!first) throw new Error('there is no provider to choose')
  if (!second) return first
  const label = await answerOf(
    prompts.autocomplete({
      message: 'Where should files be stored?',
      placeholder: 'type to search',
      options: choices.map(choice => ({ value: choice.label, label: choice.label, hint: choice.hint ?? '' })),
      filter: (text, { value }) => isMatch(text, choices.find(choice => choice.label === value) ?? first),
      maxItems,
      output,
    }),
  )
  return choices.find(choice => choice.label === label) ?? first
}

/** The menu entry of a plugin's provider that defines none: it asks for the required options. */
function defaultChoice({ type, config }: Provider): InitChoice {
  const required = Object.entries(config.shape).filter(([, option]) => !option.safeParse(undefined).success)
  return { label: type, asks: required.map(([name]) => name) }
}

function isMatch(text: string, { label, hint = '', provider }: ProviderChoice): boolean {
  return `${label} ${hint} ${provider.type}`.toLowerCase().includes(text.trim().toLowerCase())
}

/** Asks for a name that no destination of this type has, unless the given one is free. */
async function askName(type: string, given: string, ids: readonly string[]): Promise<string> {
  const isTaken = (name: string) => ids.includes(idOf({ type, name }))
  if (!isTaken(given)) return given
  const exists = (name: string) => `${idOf({ type, name })} exists already.`
  const schema = z
    .string()
    .refine(name => !isTaken(name), { error: ({ input }) => exists(String(input)) })
    .describe(`Name of the new destination. ${exists(given)}`)
  return String(await askValue('name', schema, false))
}

/** @param option one of the provider's */
function schemaOf(provider: Provider, option: string): z.ZodType {
  const schema = memberOf(provider.config, option)
  if (!schema) throw new Error(`${provider.type} has no option "${option}"`)
  return schema
}

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

/** How to go on after a failed test: the answers, and whether to test them. Undefined: quit. */
export type Next = { readonly answers: Answers; readonly isTested: boolean } | undefined

/** Asks what to do after a failed test, so that one wrong answer does not discard the others. */
export function askAgain(answers: Answers): Promise<Next> {
  return unlessCancelled(async () => {
    const options = { ...answers.options }
    const end = await review(answers.provider, options, [
      { value: '', label: 'Try again' },
      { value: '-save', label: 'Save it anyway', hint: 'test it later with upload-server check' },
      { value: '-quit', label: 'Quit', hint: 'nothing is saved' },
    ])
    if (end === '-quit') throw new Cancelled()
    return { answers: { ...answers, options }, isTested: end === '' }
  })
}

/** Asks whether to trust the host key of an unknown SFTP server. */
export async function askTrust({ shown }: UnknownHost): Promise<boolean> {
  prompts.log.info(`${shown}.`, { output })
  const message = 'Trust this host key? Compare it with the output of "ssh-keygen -lf" on that server.'
  return (await unlessCancelled(() => answerOf(prompts.confirm({ message, output })))) ?? false
}

const { server: serverSchema, keyTemplate: templateSchema } = configSchema.shape
const SERVER = serverSchema.unwrap().shape

const CLIENTS: readonly Choice[] = [
  { value: 'here', label: 'Only programs on this machine', hint: 'without a key' },
  { value: 'network', label: 'Other machines too', hint: 'they need an upload key' },
  { value: 'proxy', label: 'Clients of a reverse proxy on this machine', hint: 'they need an upload key' },
]

const TEMPLATES: readonly Choice[] = [
  { value: '', label: '2026/11/picture-7a935802.png', hint: 'by month' },
  {
    value: '{path}/{filename}-{sha256-8}{extname}',
    label: 'picture-7a935802.png',
    hint: 'in the folder that the request names, if any',
  },
  {
    value: '{Y}/{m}/{d}/{sha256-32}{extname}',
    label: '2026/11/22/7a935802….png',
    hint: 'by day, without the original name',
  },
  { value: '-own', label: 'A template of your own' },
]

/** Asks for settings of the server: its clients, where it listens, its public URL, and how files are named. */
async function askSettings({ server }: Answers['settings']): Promise<Answers['settings']> {
  const clients = server?.key === undefined ? await choose('Who uploads to this server?', CLIENTS) : 'network'
  const isOpen = clients === 'network'
  const key = clients === 'here' ? undefined : (server?.key ?? randomBytes(24).toString('base64url'))
  // The schemas check the types of what is asked.
  const host = isOpen ? ((await askValue('host', SERVER.host, true, '0.0.0.0')) as string) : undefined
  const port = (await askValue('port', SERVER.port, true)) as number | undefined
  const guess = isOpen ? guessPublicUrl(port ?? serverSchema.parse({}).port) : undefined
  const publicUrl =
    key === undefined
      ? undefined
      : ((await askValue('publicUrl', SERVER.publicUrl, true, guess)) as string | undefined)
  const template = await choose('keyTemplate: How should stored files be named?', TEMPLATES)
  const own = template === '-own' ? await askValue('keyTemplate', templateSchema, true) : template
  const given = Object.entries({ host, port, publicUrl, key }).filter(([, value]) => value !== undefined)
  return {
    ...(given.length > 0 && { server: Object.fromEntries(given) }),
    ...(clients === 'proxy' && { auth: { loopbackExempt: false } }),
    keyTemplate: (own || undefined) as string | undefined,
  }
}

/** A URL with the first IPv4 address of this machine in the network. */
function guessPublicUrl(port: number): string | undefined {
  const [address] = networkAddresses()
  return address && `http://${address}:${port}`
}
