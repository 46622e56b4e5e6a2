/** One step: a name, or the number of an element. The rest of JSONPath finds several values, where one is needed. */
const STEP = /\.?([^.[\]'"*?()]+)|\[\s*(?:(\d+)|'([^']*)'|"([^"]*)")\s*\]/y

/**
 * Reads paths such as `data.links.url`, `files[0].url`, `$.data['image url']` and, as PicGo's plugins write it,
 * `0.src`.
 *
 * @throws Error whose message goes on after the name of the option
 */
export function parseJsonPath(path: string): string[] {
  const text = path.trim().replace(/^\$\.?/, '')
  const steps: string[] = []
  for (STEP.lastIndex = 0; STEP.lastIndex < text.length; ) {
    const at = STEP.lastIndex
    const found = STEP.exec(text)
    if (!found || (at === 0 && found[0].startsWith('.')) || (at > 0 && !/^[.[]/.test(found[0])))
      throw new Error(`has the JSON path "${path}", but only names and numbers can be used: files[0].url`)
    steps.push(found[1]?.trim() ?? found[2] ?? found[3] ?? found[4] ?? '')
  }
  if (steps.length === 0)
    throw new Error('has an empty JSON path: write where the value stands, as in data.url')
  return steps
}

/** The text, number or truth value at a path; undefined when nothing of that kind stands there. */
export function findInJson(json: unknown, steps: readonly string[]): string | undefined {
  let value = json
  for (const step of steps) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = (value as Record<string, unknown>)[step]
  }
  return ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : undefined
}
