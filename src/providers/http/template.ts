/** Text with placeholders such as `{filename}` or `{json:data.url}`, parsed once and filled in often. */
export type Template = readonly (string | Call)[]

interface Call {
  readonly name: string
  readonly parameters: readonly Template[]
}

/** Values of placeholders. Undefined: the response has no such value. They throw for invalid parameters. */
export type Functions = Readonly<Record<string, (...parameters: string[]) => string | undefined>>

/** Placeholders of ShareX that prompt a person, which a server can't do. */
const ASKS_A_PERSON = new Set(['select', 'prompt', 'inputbox', 'outputbox', 'output'])

interface TemplateReader {
  readonly text: string
  readonly known: Functions
  at: number
}

/**
 * Parses the syntax of ShareX: `{name}` and `{name:parameter|parameter}`, which may be nested. A backslash escapes `{`, `}`,
 * `|` and itself. Any other backslash is literal, so that regular expressions need no second escaping.
 *
 * @throws Error whose message follows the name of the option: `has the unknown placeholder…`
 */
export function parseTemplate(text: string, known: Functions): Template {
  return readParts({ text, known, at: 0 }, '')
}

/** Parses up to one of `stops`. */
function readParts(reader: TemplateReader, stops: string): Template {
  const parts: (string | Call)[] = []
  let plain = ''
  for (; reader.at < reader.text.length; reader.at++) {
    const character = reader.text.charAt(reader.at)
    const next = reader.text.charAt(reader.at + 1)
    if (stops.includes(character)) break
    if (character === '{') {
      if (plain) parts.push(plain)
      plain = ''
      parts.push(readCall(reader))
    } else if (character === '}') {
      throw new Error('has an unmatched "}": write \\} for a literal brace')
    } else if (character === '\\' && next !== '' && '\\{}|'.includes(next)) {
      plain += next
      reader.at++
    } else plain += character
  }
  if (plain) parts.push(plain)
  return parts
}

/** Parses from the opening brace to the closing one. */
function readCall(reader: TemplateReader): Call {
  const rest = reader.text.slice(reader.at)
  const name = /^\{([^{}:|\\]*)/.exec(rest)?.[1] ?? ''
  reader.at += name.length + 1
  const parameters: Template[] = []
  let separator = ':'
  while (reader.text.charAt(reader.at) === separator) {
    reader.at++
    parameters.push(readParts(reader, '|}'))
    separator = '|'
  }
  if (reader.text.charAt(reader.at) !== '}')
    throw new Error('has an unmatched "{": write \\{ for a literal brace')
  return { name: checkName(name.trim(), parameters.length, reader.known), parameters }
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
 * @param plain functions without escaping, for the parameters of other placeholders. {random:…} passes its parameters on.
 */
export function fillTemplate(
  template: Template,
  functions: Functions,
  plain: Functions = functions,
): string | undefined {
  let text = ''
  for (const part of template) {
    const piece = typeof part === 'string' ? part : call(part, functions, plain)
    if (piece === undefined) return undefined
    text += piece
  }
  return text
}

function call({ name, parameters }: Call, functions: Functions, plain: Functions): string | undefined {
  const inner = name === 'random' ? functions : plain
  const values = parameters.map(parameter => fillTemplate(parameter, inner, plain))
  const known = values.filter(value => value !== undefined)
  return known.length < values.length ? undefined : functions[name]?.(...known)
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
