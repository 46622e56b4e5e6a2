import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAst } from 'rolldown/parseAst'
import { expect, it } from 'vitest'
import { EXCEPTIONS, WORDS } from './fixtures/words.ts'
import { DOCUMENTS } from './helpers/documents.ts'

/** One line of what users read, and where it is. */
interface Line {
  readonly file: string
  readonly line: number
  readonly text: string
  readonly isComment?: true
}

const toLines = (file: string, text: string, first = 1): Line[] =>
  text.split('\n').map((part, index) => ({ file, line: first + index, text: part }))

/** Prose, and blocks of kinds that show what the program prints: `text` holds all texts of --help, in docs/reference/cli.md. */
function readDocument(file: string): Line[] {
  let kind = ''
  return toLines(file, readFileSync(file, 'utf8')).flatMap(line => {
    const fence = /^```(\w{0,20})/.exec(line.text)
    if (fence) {
      kind = kind === '' ? fence[1] || 'none' : ''
      return []
    }
    if (kind !== '') return kind === 'text' || kind === 'console' ? [line] : []
    return [{ ...line, text: line.text.replaceAll(/`[^`]{1,400}`/g, '`…`') }]
  })
}

/** What any row finds. A file that holds nothing of the kind, comments included, is not parsed. */
const ANY = new RegExp(WORDS.map(({ avoid }) => avoid.source.replace(/^\^/, '')).join('|'), 'i')

/** The string and template literals of a source: messages, help, descriptions, OpenAPI, the page. */
function readSource(file: string): Line[] {
  const source = readFileSync(file, 'utf8')
  if (!source.split('\n').some(line => ANY.test(line))) return []
  const found: Line[] = []
  const note = (text: string, at: number) =>
    found.push(...toLines(file, text, source.slice(0, at).split('\n').length))
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) {
      node.forEach(visit)
      return
    }
    if (typeof node !== 'object' || node === null || !('type' in node)) return
    // Names of modules, and strings of which only types are made.
    if (node.type === 'ImportDeclaration' || node.type === 'TSLiteralType') return
    // A literal without a space is a name, or a part of a path.
    if (isText(node) && node.value.includes(' ')) note(node.value, node.start)
    if (isTemplate(node)) note(node.quasis.map(({ value }) => value.cooked).join('…'), node.start)
    for (const child of Object.values(node)) visit(child)
  }
  visit(parseAst(source, { lang: 'ts' }).body)
  return found
}

const isText = (node: object): node is { value: string; start: number } =>
  'type' in node && node.type === 'Literal' && 'value' in node && typeof node.value === 'string'

interface Template {
  readonly quasis: readonly { readonly value: { readonly cooked: string } }[]
  readonly start: number
}
const isTemplate = (node: object): node is Template => 'type' in node && node.type === 'TemplateLiteral'

/** The descriptions of all options, as editors show them. */
function readSchema(file: string): Line[] {
  return toLines(file, readFileSync(file, 'utf8')).flatMap(line => {
    const description = /^ {0,80}"description": "(.{1,2000})"/.exec(line.text)?.[1]
    return description === undefined ? [] : [{ ...line, text: description }]
  })
}

/** The comments of a source, a configuration or an example. Code in backticks is not read. */
function readComments(file: string): Line[] {
  const comment = /\.[jt]s$/.test(file)
    ? /(?:^ {0,20}(?:\/\*\*?|\*|\/\/)|[\s;{},)]\/\/) (.{1,400})$/
    : /(?:^|\s)# (.{1,400})$/
  return toLines(file, readFileSync(file, 'utf8')).flatMap(line => {
    const text = comment.exec(line.text)?.[1]
    return text === undefined
      ? []
      : [{ ...line, text: text.replaceAll(/`[^`]{1,400}`/g, '`…`'), isComment: true as const }]
  })
}

/** All but the contract suite, whose strings are names of tests. */
const SOURCES = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .filter(name => name.endsWith('.ts') && !name.startsWith('provider-tests'))
  .map(name => join('src', name))

const EXAMPLES = readdirSync('docs/examples', { recursive: true, encoding: 'utf8', withFileTypes: true })
  .filter(entry => entry.isFile() && !entry.name.endsWith('.md'))
  .map(entry => join(entry.parentPath, entry.name))

const LINES: readonly Line[] = [
  ...DOCUMENTS.flatMap(({ file }) => readDocument(file)),
  ...readSchema('config.schema.json'),
  ...SOURCES.flatMap(readSource),
  ...[...SOURCES, ...EXAMPLES, 'compose.yaml', 'Dockerfile'].flatMap(readComments),
]

const isException = ({ file, text }: Line) =>
  EXCEPTIONS.some(one => one.file === file && text.includes(one.text))

const hitsOf = (line: Line) =>
  WORDS.filter(
    ({ avoid, isFineInComments }) => !(line.isComment && isFineInComments) && avoid.test(line.text),
  )

it('every text is in the words of the style sheet', () => {
  const problems = LINES.filter(line => !isException(line)).flatMap(line =>
    hitsOf(line).map(({ avoid, write }) => {
      const { index = 0, 0: found = '' } = avoid.exec(line.text) ?? {}
      const around = line.text.slice(Math.max(0, index - 40), index + 80).trim()
      return `${line.file}:${line.line} "${found}" in "${around}". Write: ${write}`
    }),
  )
  expect(problems).toEqual([])
})

it('documents, descriptions, help, messages, the page and comments are read', () => {
  const filesWith = (text: string) => LINES.filter(line => line.text.includes(text)).map(({ file }) => file)
  expect(filesWith('keep retrying transient failures')).toContain('docs/reference/cli.md')
  expect(filesWith('Reload the configuration when its file changes')).toContain('config.schema.json')
  expect(filesWith('<!doctype html>')).toContain('src/page/document.ts')
  expect(filesWith('A repeated request gets the first response')).toContain('docs/reference/http-api.md')
  expect(filesWith('All clients come through nginx')).toContain('compose.yaml')
  expect(filesWith('HTTP status of each error code')).toContain('src/routes/status.ts')
})

it('every exception is still needed', () => {
  const isNeeded = (one: (typeof EXCEPTIONS)[number]) =>
    LINES.some(line => line.file === one.file && line.text.includes(one.text) && hitsOf(line).length > 0)
  expect(EXCEPTIONS.filter(one => !isNeeded(one))).toEqual([])
})

it.each(WORDS)('$avoid has an end', ({ avoid }) => {
  // Each repetition has a limit, so no text makes the expression slow.
  expect(avoid.source).not.toMatch(/(?<!\\)[*+]|,\}/)
})
