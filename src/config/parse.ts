import { at, isRecord, type Json } from '../members.ts'
import {
  createScanner,
  type Node,
  type ParseError,
  parseTree,
  printParseErrorCode,
} from '../packages/jsonc-parser.ts'
import type { OnProblem } from './problems.ts'

/** A configuration file as text. */
export interface Parsed {
  readonly value: unknown
  /** The line of each setting, by its path: `auth.keys[0].name`. */
  readonly lines: ReadonlyMap<string, number>
}

/** Maximum depth of objects and lists. Whatever reads a configuration calls itself for each level. */
const MOST_LEVELS = 100

/**
 * Parses JSON. Comments and trailing commas are allowed.
 *
 * @param report is called for each name that an object has more than once, since only the last value would count
 * @param file its name, with which the message of the error begins
 * @throws Error with the line
 */
export function parseJson(text: string, report: OnProblem, file = ''): Parsed {
  const deep = findTooDeep(text)
  if (deep !== undefined)
    throw new Error(
      `${file} has more than ${MOST_LEVELS} levels of objects and lists in line ${deep}`.trimStart(),
    )
  const errors: ParseError[] = []
  const root = parseTree(text, errors, { allowTrailingComma: true })
  const [error] = errors
  if (error || !root) {
    const what = error
      ? printParseErrorCode(error.error).replace(/(?<=[a-z])(?=[A-Z])/g, ' ')
      : 'value expected'
    const lines = text.slice(0, error?.offset ?? 0).split('\n')
    const place = `line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}`
    throw new Error(`${file} is not valid JSON: ${what.toLowerCase()} in ${place}`.trimStart())
  }
  const lines = new Map<string, number>()
  let [line, seen] = [1, 0]
  /** Is called in the order of the text, so that its lines are counted only once. */
  function lineAt({ offset }: Node): number {
    for (; seen < offset; seen++) if (text[seen] === '\n') line++
    return line
  }
  function read(node: Node, path: string): unknown {
    if (!lines.has(path)) lines.set(path, lineAt(node))
    if (node.type === 'array') return node.children?.map((item, index) => read(item, at(path, index)))
    if (node.type !== 'object') return node.value
    const members = new Map<string, unknown>()
    for (const { children: [name, member] = [] } of node.children ?? []) {
      if (!name || !member) continue
      const place = at(path, name.value)
      if (members.has(name.value))
        report(place, `is set twice, the second time in line ${lineAt(name)}. Remove one of them`)
      members.set(name.value, read(member, place))
    }
    return Object.fromEntries(members)
  }
  return { value: read(root, ''), lines }
}

/** The line in which a text has too many levels. The parser would end with a stack overflow. */
function findTooDeep(text: string): number | undefined {
  const scanner = createScanner(text, true)
  let depth = 0
  for (scanner.scan(); scanner.getTokenOffset() < text.length; scanner.scan()) {
    const first = text[scanner.getTokenOffset()]
    if (first === '{' || first === '[') depth++
    else if (first === '}' || first === ']') depth--
    if (depth > MOST_LEVELS) return scanner.getTokenStartLine() + 1
  }
  return undefined
}

/** The line of a setting, or of the nearest object around it. */
export function lineOf(lines: Parsed['lines'], path: string): number | undefined {
  const around = path.slice(0, Math.max(0, path.lastIndexOf('.')))
  return path === '' ? undefined : (lines.get(path) ?? lineOf(lines, around))
}

/** Sections of our own format, which files of PicGo and PicList never have. They may have "server". */
const OUR_SECTIONS = ['providers', 'default', 'auth', 'sources', 'limits', 'keyTemplate']

/** Whether a parsed file is a PicGo or PicList file (`data.json` or `config.json`). Never true for our own format. */
export function isPicGoConfig(value: unknown): value is Json {
  if (!isRecord(value) || OUR_SECTIONS.some(name => Object.hasOwn(value, name))) return false
  if (Object.hasOwn(value, 'picBed') || Object.hasOwn(value, 'picgoPlugins')) return true
  const stores = isRecord(value['uploader']) ? Object.values(value['uploader']) : []
  return stores.some(store => isRecord(store) && Array.isArray(store['configList']))
}
