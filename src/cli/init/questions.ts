import * as prompts from '@clack/prompts'
import { coerce } from '../../config/override.ts'
import { collectMarked, unwrap } from '../../options.ts'
import * as z from '../../packages/zod.ts'

/** Questions go to standard error, because standard output is for results. */
export const output = process.stderr

/** Maximum number of visible lines in a list. */
export const maxItems = 12

/** Thrown when the user cancels with Ctrl-C or Esc. */
export class Cancelled extends Error {}

/** Runs the questions. @returns undefined if the user cancels */
export async function unlessCancelled<T>(questions: () => Promise<T>): Promise<T | undefined> {
  try {
    return await questions()
  } catch (error) {
    if (error instanceof Cancelled) return undefined
    throw error
  }
}

/** Waits for an answer. @throws Cancelled if the user cancels */
export async function answerOf<T>(question: Promise<T>): Promise<Exclude<T, symbol>> {
  const answer = await question
  if (prompts.isCancel(answer)) throw new Cancelled()
  return answer as Exclude<T, symbol> // which it is: no other symbol exists
}

export interface Choice {
  readonly value: string
  readonly label: string
  readonly hint?: string
}

/** Asks for one of several. Enter takes the first. */
export const choose = (message: string, options: readonly Choice[]): Promise<string> =>
  answerOf(prompts.select({ message, options: [...options], maxItems, output }))

export const isSecret = (schema: z.ZodType) => collectMarked(schema, 'x', 'secret').length > 0

export const showValue = (value: unknown) =>
  typeof value === 'object' ? JSON.stringify(value) : String(value ?? '')

/**
 * Asks for the value of an option or a setting. Enter takes the current value, otherwise the default, which is not saved.
 *
 * @param current also what is suggested
 * @returns undefined for an optional value that is omitted, or that a space removes
 */
export async function askValue(
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
      inner.options.map(value => ({ value: String(value), label: String(value) })),
    )
  const standard = schema.safeParse(undefined).data
  const mayBeEmpty = isOptional || standard !== undefined
  const isPath = collectMarked(schema, 'x', 'path').length > 0
  const validate = (typed: string | undefined) => {
    if ((typed ?? '') === '' && current !== undefined) return undefined
    const bare = unquote(typed ?? '', isPath)
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
  if ((typed ?? '') === '') return current
  const bare = unquote(typed, isPath)
  return bare === '' ? undefined : coerce(bare, schema)
}

/** Removes the spaces of pasted text, and the quotes that a terminal adds to a dropped path. */
function unquote(text: string, isPath: boolean): string {
  const bare = text.trim()
  return isPath ? bare.replace(/^(["'])(.*)\1$/s, '$2') : bare
}
