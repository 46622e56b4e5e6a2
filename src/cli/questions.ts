import * as prompts from '@clack/prompts'

/** Standard output is for results. */
export const output = process.stderr

/** Lines of a list that are seen at a time. */
export const maxItems = 12

/** Ctrl-C, or what means the same. */
export class Left extends Error {}

/** The answers, or undefined when the person leaves. */
export async function unlessLeft<T>(questions: () => Promise<T>): Promise<T | undefined> {
  try {
    return await questions()
  } catch (error) {
    if (error instanceof Left) return undefined
    throw error
  }
}

/** The answer, unless Ctrl-C was one. */
export async function answered<T>(question: Promise<T>): Promise<Exclude<T, symbol>> {
  const answer = await question
  if (prompts.isCancel(answer)) throw new Left()
  return answer as Exclude<T, symbol>
}

/** A line of text, with something to begin with. @param problemOf what is wrong with an answer */
export async function askText(
  message: string,
  initialValue: string,
  problemOf: (text: string) => string | undefined,
): Promise<string> {
  const validate = (text: string | undefined) => problemOf((text ?? '').trim())
  return (await answered(prompts.text({ message, initialValue, validate, output }))).trim()
}
