import * as prompts from '@clack/prompts'

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

/** Asks for a line of text. @param problemOf returns the error of an answer, or undefined */
export async function askText(
  message: string,
  initialValue: string,
  problemOf: (text: string) => string | undefined,
): Promise<string> {
  const validate = (text: string | undefined) => problemOf((text ?? '').trim())
  return (await answerOf(prompts.text({ message, initialValue, validate, output }))).trim()
}
