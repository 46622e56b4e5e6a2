import * as prompts from '@clack/prompts'
import { coerce } from '../config/environment.ts'
import { collectMarked, unwrap } from '../options.ts'
import * as z from '../packages/zod.ts'
import type { InitChoice, Provider, Stranger } from '../providers/contract.ts'
import { loadProviders } from '../providers/registry.ts'
import type { Answers, Given } from './answers.ts'
import { askSettings } from './ask-settings.ts'
import { answered, Left, maxItems, output, unlessLeft } from './questions.ts'

type Options = Record<string, unknown>

/** Where files may go, and the provider that takes them there. */
interface ProviderChoice extends InitChoice {
  readonly provider: Provider
}

/**
 * Asks for what a first configuration needs.
 *
 * @param file where it will be written
 * @param added providers of plugins
 * @returns undefined when the person leaves
 */
export function ask(given: Given, file: string, added: readonly Provider[]): Promise<Answers | undefined> {
  return unlessLeft(async () => {
    prompts.intro(`A first configuration: ${file}`, { output })
    const choice = await chooseProvider(
      given.isChosen ? [given.provider] : [...added, ...(await loadProviders())],
    )
    const { provider } = choice
    const options = await askOptions(choice, { ...given.options }, given.suggested)
    const settings = await askSettings(given.settings)
    return { provider, name: given.name, options, settings }
  })
}

/** Asks about a server that nobody has met before. */
export async function askTrust({ shown }: Stranger): Promise<boolean> {
  prompts.log.info(`${shown}.`, { output })
  const message = 'Trust this host key? "ssh-keygen -lf" prints the right one on that server.'
  return (await unlessLeft(() => answered(prompts.confirm({ message, output })))) ?? false
}

/** What to do about a configuration that failed when it was tried. */
export type Next = { readonly answers: Answers; readonly isTried: boolean } | undefined

/** Asks what to do after a failure, so that a mistyped key does not cost all the other answers. */
export function askAgain(answers: Answers): Promise<Next> {
  return unlessLeft(async () => {
    const next = await answered(
      prompts.select({
        message: 'What now?',
        options: [
          { value: 'change', label: 'Change an answer' },
          { value: 'again', label: 'Try it again' },
          { value: 'write', label: 'Write it all the same', hint: 'upload-server check tries it later' },
          { value: 'leave', label: 'Leave', hint: 'nothing is written' },
        ],
        output,
      }),
    )
    if (next === 'leave') throw new Left()
    const options = { ...answers.options }
    if (next === 'change') {
      const { provider } = answers
      await changeOption(provider, options, [...new Set([...Object.keys(options), ...namesOf(provider)])])
      await completeOptions(provider, options)
    }
    return { answers: { ...answers, options }, isTried: next !== 'write' }
  })
}

async function chooseProvider(providers: readonly Provider[]): Promise<ProviderChoice> {
  const choices = providers.flatMap(provider =>
    (provider.about?.choices ?? [plainChoice(provider)]).map(choice => ({ ...choice, provider })),
  )
  const [first, second] = choices as [ProviderChoice, ...ProviderChoice[]]
  if (!second) return first
  const label = await answered(
    prompts.autocomplete({
      message: 'Where do files go?',
      placeholder: 'type to search',
      options: choices.map(choice => ({ value: choice.label, label: choice.label, hint: choice.hint ?? '' })),
      filter: (text, { value }) => isMatch(text, choices.find(choice => choice.label === value) ?? first),
      maxItems,
      output,
    }),
  )
  return choices.find(choice => choice.label === label) ?? first
}

/** For a provider of a plugin that says nothing of itself. */
function plainChoice({ type, config }: Provider): InitChoice {
  const needed = Object.entries(config.shape).filter(([, option]) => !option.safeParse(undefined).success)
  return { label: type, asks: needed.map(([name]) => name) }
}

function isMatch(text: string, { label, hint = '', provider }: ProviderChoice): boolean {
  return `${label} ${hint} ${provider.type}`.toLowerCase().includes(text.trim().toLowerCase())
}

/** @param suggested what a question begins with */
async function askOptions(
  { provider, asks, where, ...choice }: ProviderChoice,
  given: Options,
  suggested: Given['suggested'],
): Promise<Options> {
  const options: Options = { ...given }
  if (where) prompts.log.info(`Credentials: ${where}`, { output })
  for (const entry of asks) {
    const name = entry.replace('?', '')
    const before = suggested[provider.type]?.[name]
    if (options[name] === undefined) options[name] = await askOption(provider, name, name !== entry, before)
  }
  Object.assign(options, { ...choice.options, ...given })
  const isMore = await answered(
    prompts.confirm({ message: 'Set further options?', initialValue: false, output }),
  )
  for (const name of isMore ? await chooseOptions(provider, options) : [])
    options[name] = await askOption(provider, name, true)
  return completeOptions(provider, options)
}

async function chooseOptions(provider: Provider, options: Options): Promise<string[]> {
  const names = namesOf(provider).filter(name => options[name] === undefined)
  return answered(
    prompts.multiselect({
      message: 'Which ones? Space chooses, Enter goes on.',
      options: names.map(name => ({ value: name, label: name, hint: describe(provider, name) })),
      required: false,
      maxItems,
      output,
    }),
  )
}

/** Asks until the options fit together. */
async function completeOptions(provider: Provider, options: Options): Promise<Options> {
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

/** @param names those that are offered */
async function changeOption(provider: Provider, options: Options, names: readonly string[]): Promise<void> {
  const label = (name: string) => {
    const value = options[name]
    if (value === undefined) return name
    return `${name}: ${isSecret(provider, name) ? '•••' : showValue(value)}`
  }
  const name = await answered(
    prompts.select({
      message: 'Which one?',
      options: names.map(name => ({ value: name, label: label(name), hint: describe(provider, name) })),
      maxItems,
      output,
    }),
  )
  options[name] = await askOption(provider, name, true, options[name])
}

const namesOf = (provider: Provider) => Object.keys(provider.config.shape)

const isSecret = (provider: Provider, name: string) =>
  collectMarked(provider.config.shape[name] as z.ZodType, 'x', 'secret').length > 0

const showValue = (value: unknown) =>
  typeof value === 'object' ? JSON.stringify(value) : String(value ?? '')

function problemOf(provider: Provider, options: Options): string | undefined {
  const parsed = provider.config.safeParse(options)
  if (parsed.success) return provider.validate?.(parsed.data)
  return parsed.error.issues.map(issue => `${issue.path.join('.')}: ${issue.message}`).join('; ')
}

/** @returns undefined for an answer that was left empty */
async function askOption(
  provider: Provider,
  name: string,
  mayBeEmpty: boolean,
  current?: unknown,
): Promise<unknown> {
  const schema = provider.config.shape[name] as z.ZodType
  const inner = unwrap(schema)
  const message = `${name}: ${describe(provider, name)}`
  if (inner instanceof z.ZodBoolean)
    return answered(prompts.confirm({ message, initialValue: current !== true, output }))
  if (inner instanceof z.ZodEnum) {
    const options = inner.options.map(value => ({ value: String(value), label: String(value) }))
    return answered(prompts.select({ message, options, maxItems, output }))
  }
  const standard = schema.safeParse(undefined)
  const initial = current ?? (standard.success ? standard.data : undefined)
  const read = (text: string | undefined) => {
    const bare = tidy(text ?? '', collectMarked(schema, 'x', 'path').length > 0)
    return bare === '' ? undefined : coerce(bare, schema)
  }
  const validate = (text: string | undefined) => {
    const value = read(text)
    if (value === undefined) return mayBeEmpty ? undefined : 'This one is needed.'
    const parsed = schema.safeParse(value)
    return parsed.success ? undefined : parsed.error.issues[0]?.message
  }
  if (isSecret(provider, name)) return read(await answered(prompts.password({ message, validate, output })))
  const placeholder = mayBeEmpty ? 'may stay empty' : ''
  return read(
    await answered(
      prompts.text({ message, placeholder, initialValue: showValue(initial), validate, output }),
    ),
  )
}

/** What is pasted brings spaces along, and a path that is dropped on a terminal quotes. */
function tidy(text: string, isPath: boolean): string {
  const bare = text.trim()
  return isPath ? bare.replace(/^(["'])(.*)\1$/s, '$2') : bare
}

const describe = (provider: Provider, name: string) => provider.config.shape[name]?.description ?? ''
