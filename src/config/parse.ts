import { type Node, type ParseError, parseTree, printParseErrorCode } from '../packages/jsonc-parser.ts'
import type { OnProblem } from './problems.ts'

/** A configuration file as text. */
export interface Parsed {
  readonly value: unknown
  /** The line of each setting, by its path: `auth.keys.0.name`. */
  readonly lines: ReadonlyMap<string, number>
}

/**
 * Parses JSON. Comments and trailing commas are allowed.
 *
 * @param report is called for each name that an object has more than once, since only the last value would count
 * @param file its name, with which the message of the error begins
 * @throws Error with line and column
 */
export function parseJson(text: string, report: OnProblem, file = ''): Parsed {
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
    const at = (name: string | number) => (path === '' ? `${name}` : `${path}.${name}`)
    if (node.type === 'array') return node.children?.map((item, index) => read(item, at(index)))
    if (node.type !== 'object') return node.value
    const members = new Map<string, unknown>()
    for (const { children: [name, member] = [] } of node.children ?? []) {
      if (!name || !member) continue
      if (members.has(name.value))
        report(at(name.value), `is set twice, the second time in line ${lineAt(name)}. Remove one of them`)
      members.set(name.value, read(member, at(name.value)))
    }
    return Object.fromEntries(members)
  }
  return { value: read(root, ''), lines }
}

/** The line of a setting, or of the nearest object around it. */
export function lineOf(lines: Parsed['lines'], path: string): number | undefined {
  const around = path.slice(0, Math.max(0, path.lastIndexOf('.')))
  return path === '' ? undefined : (lines.get(path) ?? lineOf(lines, around))
}
