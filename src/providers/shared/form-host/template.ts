/** A text with placeholders such as `{filename}` or `{json:data.url}`, read once and filled in often. */
export type Template = readonly (string | Call)[]

interface Call {
  readonly name: string
  readonly parameters: readonly Template[]
}

/** What placeholders stand for. Undefined: there is no such thing in the answer. Throws for parameters that make no sense. */
export type Functions = Readonly<Record<string, (...parameters: string[]) => string | undefined>>

/** Placeholders of ShareX that a server without a person in front of it can't fill. */
const ASKS_A_PERSON = new Set(['select', 'prompt', 'inputbox', 'outputbox', 'output'])

interface Reader {
  readonly text: string
  readonly known: Functions
  at: number
}

/**
 * Reads the syntax of ShareX: `{name}`, `{name:parameter|parameter}`, nested as one likes, and a backslash in front of
 * `{`, `}`, `|` and itself. Any other backslash is one, so that a regular expression may be written as usual.
 *
 * @throws Error whose message goes on after the name of the option: `has an unknown placeholder…`
 */
export function parseTemplate(text: string, known: Functions): Template {
  const reader = { text, known, at: 0 }
  const template = readParts(reader, '')
  return template
}

/** Up to one of `stops`. */
function readParts(reader: Reader, stops: string): Template {
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
      throw new Error('has a lone "}": write \\} for a brace that stands for itself')
    } else if (character === '\\' && next !== '' && '\\{}|'.includes(next)) {
      plain += next
      reader.at++
    } else plain += character
  }
  if (plain) parts.push(plain)
  return parts
}

/** From the opening brace to the closing one. */
function readCall(reader: Reader): Call {
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
    throw new Error('has a "{" without its "}": write \\{ for a brace that stands for itself')
  return { name: checkName(name.trim(), parameters.length, reader.known), parameters }
}

function checkName(written: string, parameters: number, known: Functions): string {
  const name = [written, written.toLowerCase()].find(spelling => Object.hasOwn(known, spelling))
  if (name === undefined) {
    if (ASKS_A_PERSON.has(written.toLowerCase()))
      throw new Error(`has {${written}}, which asks a person, and nobody sits in front of a server`)
    const names = Object.keys(known).map(known => `{${known}}`)
    throw new Error(`has the unknown placeholder {${written}}; known are ${names.join(' ')}`)
  }
  if (parameters < (known[name]?.length ?? 0))
    throw new Error(`has {${written}} without a parameter: write {${written}:…}`)
  return name
}

/** The text with everything filled in; undefined as soon as one placeholder stands for nothing. */
export function render(template: Template, functions: Functions): string | undefined {
  let text = ''
  for (const part of template) {
    const piece = typeof part === 'string' ? part : call(part, functions)
    if (piece === undefined) return undefined
    text += piece
  }
  return text
}

function call({ name, parameters }: Call, functions: Functions): string | undefined {
  const values = parameters.map(parameter => render(parameter, functions))
  return values.includes(undefined) ? undefined : functions[name]?.(...(values as string[]))
}

/** Names of all placeholders, nested ones included. */
export function listNames(template: Template): string[] {
  return template.flatMap(part =>
    typeof part === 'string' ? [] : [part.name, ...part.parameters.flatMap(listNames)],
  )
}

/** Text as a template that stands for itself. */
export function literal(text: string): string {
  return text.replace(/[\\{}|]/g, '\\$&')
}
