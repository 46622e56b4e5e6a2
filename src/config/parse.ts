import { isRecord, type Json, pathOf } from '../members.ts'
import {
  getNodeValue,
  type JSONPath,
  parseTree,
  printParseErrorCode,
  visit,
} from '../packages/jsonc-parser.ts'
import type { OnProblem } from './problems.ts'

/** A configuration file as text. */
export interface Parsed {
  readonly value: unknown
  /** The line of each setting, by its path: `auth.keys[0].name`. */
  readonly lines: ReadonlyMap<string, number>
}

/** Maximum depth of objects and lists. Whatever reads a configuration calls itself for each level, as the parser does. */
const MOST_LEVELS = 100

/**
 * Parses JSON. Comments and trailing commas are allowed.
 *
 * @param report is called for each name that an object has more than once, since only the last value would count
 * @param file its name, with which the message of the error begins
 * @throws Error with the line
 */
export function parseJson(text: string, report: OnProblem, file = ''): Parsed {
  const lines = new Map<string, number>()
  const fail = (what: string): never => {
    throw new Error(`${file} ${what}`.trimStart())
  }
  const note = (line: number, path: () => JSONPath) => {
    const place = pathOf(path())
    if (!lines.has(place)) lines.set(place, line + 1)
  }
  /** The names in each object and list around. */
  const around: Set<string>[] = []
  const enter = (_offset: number, _length: number, line: number, _column: number, path: () => JSONPath) => {
    note(line, path)
    if (around.push(new Set()) > MOST_LEVELS)
      fail(`has more than ${MOST_LEVELS} levels of objects and lists in line ${line + 1}`)
  }
  const leave = () => void around.pop()
  visit(
    text,
    {
      onObjectBegin: enter,
      onArrayBegin: enter,
      onObjectEnd: leave,
      onArrayEnd: leave,
      onLiteralValue: (_value, _offset, _length, line, _column, path) => note(line, path),
      onObjectProperty(name, _offset, _length, line, _column, path) {
        const place = () => [...path(), name]
        if (around.at(-1)?.has(name))
          report(pathOf(place()), `is set twice, the second time in line ${line + 1}. Remove one of them`)
        around.at(-1)?.add(name)
        note(line, place)
      },
      onError(error, _offset, _length, line, column) {
        const what = printParseErrorCode(error).replace(/(?<=[a-z])(?=[A-Z])/g, ' ')
        fail(`is not valid JSON: ${what.toLowerCase()} in line ${line + 1}, column ${column + 1}`)
      },
    },
    { allowTrailingComma: true },
  )
  const root = parseTree(text)
  return { value: root && getNodeValue(root), lines }
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
