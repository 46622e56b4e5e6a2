import { randomBytes } from 'node:crypto'
import * as prompts from '@clack/prompts'
import { z } from 'zod'
import { coerce } from '../config/environment.ts'
import { collectMarked, unwrap } from '../uploader/options.ts'
import type { Provider } from '../uploader/provider.ts'
import { loadProvider, PROVIDER_TYPES } from '../uploader/registry.ts'
import { type Answers, type Given, requiredOptions } from './init.ts'

/** Standard output is for results. */
const output = process.stderr

/** Asks for what a first configuration needs. @returns undefined when the person leaves */
export async function ask(given: Given): Promise<Answers | undefined> {
  prompts.intro('A first configuration', { output })
  try {
    const provider = given.isChosen ? given.provider : await chooseProvider()
    const options = { ...given.options, ...(await askOptions(provider, given.options)) }
    const key = given.key ?? (await askKey())
    prompts.outro('Trying it', { output })
    return { provider, name: given.name, options, key }
  } catch (error) {
    if (error instanceof Left) return undefined
    throw error
  }
}

class Left extends Error {}

/** The answer, unless Ctrl-C was one. */
async function answered<T>(question: Promise<T>): Promise<Exclude<T, symbol>> {
  const answer = await question
  if (prompts.isCancel(answer)) throw new Left()
  return answer as Exclude<T, symbol>
}

async function chooseProvider(): Promise<Provider> {
  const type = await answered(
    prompts.select({
      message: 'Where do files go?',
      options: PROVIDER_TYPES.map(value => ({ value, label: value })),
      maxItems: 12,
      output,
    }),
  )
  return (await loadProvider(type)) as Provider
}

async function askOptions(
  provider: Provider,
  given: Readonly<Record<string, unknown>>,
): Promise<Record<string, unknown>> {
  const options: Record<string, unknown> = { ...given }
  for (const name of requiredOptions(provider))
    if (options[name] === undefined) options[name] = await askOption(provider, name)
  for (;;) {
    const rest = Object.keys(provider.config.shape).filter(name => options[name] === undefined)
    const wrong = problemOf(provider, options)
    if (rest.length === 0) return options
    const more = await answered(
      prompts.multiselect({
        message: `${wrong ? `${wrong.replace(/\.?$/, '.')} ` : ''}What else is to be set?`,
        options: rest.map(name => ({ value: name, label: name, hint: describe(provider, name) })),
        required: wrong !== undefined,
        maxItems: 12,
        output,
      }),
    )
    for (const name of more) options[name] = await askOption(provider, name)
    if (problemOf(provider, options) === undefined) return options
  }
}

function problemOf(provider: Provider, options: Record<string, unknown>): string | undefined {
  const parsed = provider.config.safeParse(options)
  if (parsed.success) return provider.validate?.(parsed.data)
  return parsed.error.issues.map(issue => `${issue.path.join('.')}: ${issue.message}`).join('; ')
}

async function askOption(provider: Provider, name: string): Promise<unknown> {
  const schema = provider.config.shape[name] as z.ZodType
  const inner = unwrap(schema)
  const message = `${name}: ${describe(provider, name)}`
  if (inner instanceof z.ZodBoolean) return answered(prompts.confirm({ message, initialValue: true, output }))
  if (inner instanceof z.ZodEnum) {
    const options = inner.options.map(value => ({ value: String(value), label: String(value) }))
    return answered(prompts.select({ message, options, maxItems: 12, output }))
  }
  const validate = (text: string | undefined) => {
    const parsed = schema.safeParse(text ? coerce(text, schema) : undefined)
    return parsed.success ? undefined : parsed.error.issues[0]?.message
  }
  const isSecret = collectMarked(schema, 'x', 'secret').length > 0
  const text = await answered(
    isSecret ? prompts.password({ message, validate, output }) : prompts.text({ message, validate, output }),
  )
  return coerce(text, schema)
}

const describe = (provider: Provider, name: string) => provider.config.shape[name]?.description ?? ''

async function askKey(): Promise<string | undefined> {
  const message = 'Will other machines upload through this server? They need a key then, which is made now.'
  const isWanted = await answered(prompts.confirm({ message, initialValue: false, output }))
  return isWanted ? randomBytes(24).toString('base64url') : undefined
}
