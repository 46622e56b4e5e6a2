/** Text with placeholders such as `{filename}` or `{json:data.url}`, parsed once and filled in often. */
export type Template = readonly (string | Call)[]

interface Call {
  name: string
  readonly parameters: (string | Call)[][]
}

/** Values of placeholders. Undefined: the response has no such value. They throw for invalid parameters. */
export type Functions = Readonly<Record<string, (...parameters: string[]) => string | undefined>>

/** Placeholders of ShareX that prompt a person, which a server can't do. */
const ASKS_A_PERSON = new Set(['select', 'prompt', 'inputbox', 'outputbox', 'output'])

/** Matches an escaped character, `{` with a name and a colon, `|`, `}`, and other text. */
const TOKEN = /\\([\\{}|])|\{([^{}:|\\]*)(:?)|[|}]|[^\\{}|]+|\\/g

/**
 * Parses the syntax of ShareX: `{name}` and `{name:parameter|parameter}`, which may be nested. A backslash escapes `{`, `}`,
 * `|` and itself. Any other backslash is literal, so that regular expressions need no second escaping.
 *
 * @throws Error whose message follows the name of the option: `has the unknown placeholder…`
 */
export function parseTemplate(text: string, known: Functions): Template {
  const unmatched = new Error('has an unmatched "{": write \\{ for a literal brace')
  const template: (string | Call)[] = []
  const open: Call[] = []
  for (const [token, escaped, name, colon] of text.matchAll(TOKEN)) {
    const call = open.at(-1)
    const parts = call ? call.parameters.at(-1) : template
    if (token === '}') {
      if (!call) throw new Error('has an unmatched "}": write \\} for a literal brace')
      call.name = checkName(call.name, call.parameters.length, known)
      open.pop()
    } else if (!parts) throw unmatched
    else if (name !== undefined) {
      const inner = { name: name.trim(), parameters: colon ? [[]] : [] }
      parts.push(inner)
      open.push(inner)
    } else if (token === '|' && call) call.parameters.push([])
    else parts.push(escaped ?? token)
  }
  if (open.length > 0) throw unmatched
  return template
}

function checkName(written: string, parameters: number, known: Functions): string {
  const name = [written, written.toLowerCase()].find(spelling => Object.hasOwn(known, spelling))
  if (name === undefined) {
    if (ASKS_A_PERSON.has(written.toLowerCase()))
      throw new Error(`has {${written}}, which prompts a person and can't be used on a server`)
    const names = Object.keys(known).map(known => `{${known}}`)
    throw new Error(`has the unknown placeholder {${written}}. Available: ${names.join(', ')}`)
  }
  if (parameters < (known[name]?.length ?? 0))
    throw new Error(`has {${written}} without a parameter: write {${written}:…}`)
  return name
}

/**
 * Renders the template. Returns undefined if a placeholder has no value.
 *
 * @param encode escapes the value of a placeholder. Parameters of placeholders are not escaped; {random:…} passes its own on
 */
export function fillTemplate(
  template: Template,
  functions: Functions,
  encode = (value: string, _placeholder: string) => value,
): string | undefined {
  const texts = template.map(part => {
    if (typeof part === 'string') return part
    const { name, parameters } = part
    const isPassedOn = name === 'random'
    const values = parameters.map(one => fillTemplate(one, functions, isPassedOn ? encode : undefined))
    const known = values.filter(value => value !== undefined)
    const value = known.length < values.length ? undefined : functions[name]?.(...known)
    return value === undefined || isPassedOn ? value : encode(value, name)
  })
  return texts.includes(undefined) ? undefined : texts.join('')
}

/** Returns the names of all placeholders, including nested ones. */
export function listNames(template: Template): string[] {
  return template.flatMap(part =>
    typeof part === 'string' ? [] : [part.name, ...part.parameters.flatMap(listNames)],
  )
}

/** Escapes text so that it is a literal template. */
export function literal(text: string): string {
  return text.replace(/[\\{}|]/g, '\\$&')
}
