import * as prompts from '@clack/prompts'
import { coerce } from '../../config/override.ts'
import { collectMarked, memberOf, unwrap } from '../../options.ts'
import * as z from '../../packages/zod.ts'
import type { InitChoice, Provider, UnknownHost } from '../../providers/contract.ts'
import { loadProviders } from '../../providers/registry.ts'
import { idOf } from '../../uploader/destinations.ts'
import type { Answers, Preset } from './answers.ts'
import { askSettings } from './ask-settings.ts'
import type { Existing } from './existing.ts'
import { answerOf, askText, Cancelled, maxItems, output, unlessCancelled } from './questions.ts'

type Options = Record<string, unknown>

/** An entry of the menu, with its provider. */
interface ProviderChoice extends InitChoice {
  readonly provider: Provider
}

/**
 * Asks all questions.
 *
 * @param file the configuration file to create or change
 * @param added providers of plugins
 * @param existing the configuration to which a destination is added. Its other settings are not asked for
 * @returns undefined if the user cancels
 */
export function ask(
  given: Preset,
  file: string,
  added: readonly Provider[],
  existing: Existing | undefined,
): Promise<Answers | undefined> {
  return unlessCancelled(async () => {
    prompts.intro(`${existing ? 'New destination in' : 'New configuration:'} ${file}`, { output })
    const choice = await chooseProvider(
      given.isChosen ? [given.provider] : [...added, ...(await loadProviders())],
    )
    const { provider } = choice
    const name = existing ? await askName(provider.type, given.name, existing) : given.name
    const options = await askOptions(choice, { ...given.options }, given.suggested)
    const settings = existing ? {} : await askSettings(given.settings)
    return { provider, name, options, settings }
  })
}

/** Asks for a name that no destination of this type has, unless the given one is free. */
async function askName(type: string, given: string, { ids }: Existing): Promise<string> {
  const idFor = (name: string) => idOf({ type, name })
  if (!ids.includes(idFor(given))) return given
  return askText(`name: Name of the new destination. ${idFor(given)} exists already.`, '', text => {
    if (text === '') return 'A value is required.'
    return ids.includes(idFor(text)) ? `${idFor(text)} exists already.` : undefined
  })
}

/** Asks whether to trust the host key of an unknown SFTP server. */
export async function askTrust({ shown }: UnknownHost): Promise<boolean> {
  prompts.log.info(`${shown}.`, { output })
  const message = 'Trust this host key? Compare it with the output of "ssh-keygen -lf" on that server.'
  return (await unlessCancelled(() => answerOf(prompts.confirm({ message, output })))) ?? false
}

/** How to go on after a failed test: the answers, and whether to test them. Undefined: quit. */
export type Next = { readonly answers: Answers; readonly isTested: boolean } | undefined

/** Asks what to do after a failed test, so that one wrong answer does not discard the others. */
export function askAgain(answers: Answers): Promise<Next> {
  return unlessCancelled(async () => {
    const next = await answerOf(
      prompts.select({
        message: 'What do you want to do?',
        options: [
          { value: 'change', label: 'Change an answer' },
          { value: 'again', label: 'Try again' },
          { value: 'write', label: 'Save it anyway', hint: 'test it later with upload-server check' },
          { value: 'quit', label: 'Quit', hint: 'nothing is saved' },
        ],
        output,
      }),
    )
    if (next === 'quit') throw new Cancelled()
    const options = { ...answers.options }
    if (next === 'change') {
      const { provider } = answers
      await changeOption(provider, options, [...new Set([...Object.keys(options), ...namesOf(provider)])])
      await askUntilValid(provider, options)
    }
    return { answers: { ...answers, options }, isTested: next !== 'write' }
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

/** @param suggested initial values of options, by provider type */
async function askOptions(
  { provider, asks, where, ...choice }: ProviderChoice,
  given: Options,
  suggested: Preset['suggested'],
): Promise<Options> {
  const options: Options = { ...given }
  if (where) prompts.log.info(`Credentials: ${where}`, { output })
  for (const entry of asks) {
    const name = entry.replace('?', '')
    const before = suggested[provider.type]?.[name]
    if (options[name] === undefined) options[name] = await askOption(provider, name, name !== entry, before)
  }
  Object.assign(options, { ...choice.options, ...given })
  const wantsMore = await answerOf(
    prompts.confirm({ message: 'Set more options?', initialValue: false, output }),
  )
  for (const name of wantsMore ? await chooseOptions(provider, options) : [])
    options[name] = await askOption(provider, name, true)
  return askUntilValid(provider, options)
}

async function chooseOptions(provider: Provider, options: Options): Promise<string[]> {
  const names = namesOf(provider).filter(name => options[name] === undefined)
  return answerOf(
    prompts.multiselect({
      message: 'Which options? Space selects, Enter confirms.',
      options: names.map(name => ({ value: name, label: name, hint: describe(provider, name) })),
      required: false,
      maxItems,
      output,
    }),
  )
}

/** Asks for changes until the provider accepts the options. */
async function askUntilValid(provider: Provider, options: Options): Promise<Options> {
  for (;;) {
    const problem = problemOf(provider, options)
    if (problem === undefined) return options
    prompts.log.warn(problem, { output })
    const isNamed = (name: string) => problem.includes(`"${name}"`)
    await changeOption(
      provider,
      options,
      [...namesOf(provider)].sort((a, b) => +isNamed(b) - +isNamed(a)),
    )
  }
}

/** Asks for one option and its new value. @param names the options to choose from */
async function changeOption(provider: Provider, options: Options, names: readonly string[]): Promise<void> {
  const label = (name: string) => {
    const value = options[name]
    if (value === undefined) return name
    return `${name}: ${isSecret(provider, name) ? '•••' : showValue(value)}`
  }
  const name = await answerOf(
    prompts.select({
      message: 'Which option?',
      options: names.map(name => ({ value: name, label: label(name), hint: describe(provider, name) })),
      maxItems,
      output,
    }),
  )
  options[name] = await askOption(provider, name, true, options[name])
}

const namesOf = (provider: Provider) => Object.keys(provider.config.shape)

/** @param name one of `namesOf` */
function schemaOf(provider: Provider, name: string): z.ZodType {
  const schema = memberOf(provider.config, name)
  if (!schema) throw new Error(`${provider.type} has no option "${name}"`)
  return schema
}

const isSecret = (provider: Provider, name: string) =>
  collectMarked(schemaOf(provider, name), 'x', 'secret').length > 0

const showValue = (value: unknown) =>
  typeof value === 'object' ? JSON.stringify(value) : String(value ?? '')

function problemOf(provider: Provider, options: Options): string | undefined {
  const parsed = provider.config.safeParse(options)
  if (parsed.success) return provider.validate?.(parsed.data)
  return parsed.error.issues.map(issue => `${issue.path.join('.')}: ${issue.message}`).join('; ')
}

/** Asks for one option. @returns undefined if an optional answer is empty */
async function askOption(
  provider: Provider,
  name: string,
  mayBeEmpty: boolean,
  current?: unknown,
): Promise<unknown> {
  const schema = schemaOf(provider, name)
  const inner = unwrap(schema)
  const message = `${name}: ${describe(provider, name)}`
  if (inner instanceof z.ZodBoolean)
    return answerOf(prompts.confirm({ message, initialValue: current !== true, output }))
  if (inner instanceof z.ZodEnum) {
    const options = inner.options.map(value => ({ value: String(value), label: String(value) }))
    return answerOf(prompts.select({ message, options, maxItems, output }))
  }
  const standard = schema.safeParse(undefined)
  const initial = current ?? (standard.success ? standard.data : undefined)
  const read = (text: string | undefined) => {
    const bare = unquote(text ?? '', collectMarked(schema, 'x', 'path').length > 0)
    return bare === '' ? undefined : coerce(bare, schema)
  }
  const validate = (text: string | undefined) => {
    const value = read(text)
    if (value === undefined) return mayBeEmpty ? undefined : 'A value is required.'
    const parsed = schema.safeParse(value)
    return parsed.success ? undefined : parsed.error.issues[0]?.message
  }
  if (isSecret(provider, name)) return read(await answerOf(prompts.password({ message, validate, output })))
  const placeholder = mayBeEmpty ? 'optional' : ''
  return read(
    await answerOf(
      prompts.text({ message, placeholder, initialValue: showValue(initial), validate, output }),
    ),
  )
}

/** Removes the spaces of pasted text, and the quotes that a terminal adds to a dropped path. */
function unquote(text: string, isPath: boolean): string {
  const bare = text.trim()
  return isPath ? bare.replace(/^(["'])(.*)\1$/s, '$2') : bare
}

const describe = (provider: Provider, name: string) => provider.config.shape[name]?.description ?? ''
