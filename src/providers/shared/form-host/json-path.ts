import { isObject } from '../../../members.ts'

/** Matches one step: a name or an index. Other syntax of JSONPath finds several values, but one is needed. */
const STEP = /\.?([^.[\]'"*?()]+)|\[\s*(?:(\d+)|'([^']*)'|"([^"]*)")\s*\]/y

/**
 * Parses paths such as `data.links.url`, `files[0].url`, `$.data['image url']` and, as PicGo's plugins write it,
 * `0.src`.
 *
 * @throws Error whose message follows the name of the option
 */
export function parseJsonPath(path: string): string[] {
  const text = path.trim().replace(/^\$\.?/, '')
  const steps: string[] = []
  for (STEP.lastIndex = 0; STEP.lastIndex < text.length; ) {
    const at = STEP.lastIndex
    const found = STEP.exec(text)
    if (!found || (at === 0 && found[0].startsWith('.')) || (at > 0 && !/^[.[]/.test(found[0])))
      throw new Error(
        `has the unsupported JSON path "${path}". Use names and indexes only, such as files[0].url`,
      )
    steps.push(found[1]?.trim() ?? found[2] ?? found[3] ?? found[4] ?? '')
  }
  if (steps.length === 0)
    throw new Error('has an empty JSON path. Write where the value is, such as data.url')
  return steps
}

/** Returns the text, number or boolean at a path. Undefined for anything else, and for text that is not JSON, such as a page. */
export function findInJson(text: string, steps: readonly string[]): string | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  for (const step of steps) {
    if (!isObject(value) || !Object.hasOwn(value, step)) return undefined
    value = value[step]
  }
  return ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : undefined
}
