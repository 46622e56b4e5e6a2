import { at, pathOf } from '../members.ts'
import { memberOf, unwrap } from '../options.ts'
import * as z from '../packages/zod.ts'
import type { OnProblem } from './problems.ts'
import { suggest, suggestNear } from './suggest.ts'

/**
 * Reports what zod found wrong, in one sentence per option, with the values that would be valid.
 *
 * @param error of a parse with `reportInput`, without which a value of a wrong type looks like a missing option
 */
export function reportIssues(error: z.ZodError, schema: z.ZodType, report: OnProblem): void {
  for (const issue of error.issues) {
    const path = pathOf(issue.path)
    if (issue.code !== 'unrecognized_keys') {
      report(path, describeIssue(issue))
      continue
    }
    const known = membersAt(schema, issue.path)
    for (const key of issue.keys) {
      report(at(path, key), `is not an option${suggest(key, known)}`)
    }
  }
}

/** The JSON type of a value, with its article. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  return withArticle(typeof value)
}

const TYPES: Record<string, string> = { record: 'object', array: 'list', int: 'whole number' }

function describeIssue(issue: z.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type': {
      const wanted = withArticle(TYPES[issue.expected] ?? issue.expected)
      if (issue.input === undefined) return `is missing. It must be ${wanted}`
      if (isOurs(issue.message)) return issue.message
      return issue.expected === 'int' ? `must be ${wanted}` : `must be ${wanted}, not ${kindOf(issue.input)}`
    }
    case 'invalid_value': {
      const values = issue.values.map(value => JSON.stringify(value)).join(', ')
      const near = typeof issue.input === 'string' ? suggestNear(issue.input, issue.values.map(String)) : ''
      return `must be one of: ${values}${near}`
    }
    case 'invalid_key':
      return `is not a valid name: it ${issue.issues[0]?.message ?? 'must be a string'}`
    case 'invalid_union':
      return isOurs(issue.message) ? issue.message : describeUnion(issue)
    case 'too_small':
      if (issue.origin === 'number') return `must be ${issue.minimum} or more`
      if (isOurs(issue.message)) return issue.message
      return issue.minimum === 1
        ? 'must not be empty'
        : `must have ${issue.minimum} ${PARTS[issue.origin]} or more`
    case 'too_big':
      if (issue.origin === 'number') return `must be ${issue.maximum} or less`
      return isOurs(issue.message)
        ? issue.message
        : `must have ${issue.maximum} ${PARTS[issue.origin]} or less`
    default:
      return isOurs(issue.message)
        ? issue.message
        : 'has an invalid format. See docs/reference/configuration.md'
  }
}

/** Units of lengths. */
const PARTS: Readonly<Record<string, string>> = { string: 'characters', array: 'entries' }

/** Whether the message comes from one of our schemas. Messages of zod itself begin with one of these words. */
function isOurs(message: string): boolean {
  return !/^(?:Invalid|Too|Unrecognized|Expected|Required)\b/.test(message)
}

/** Describes the issue of the alternative that was probably meant: the one whose JSON type the value has. */
function describeUnion({ errors, input }: Extract<z.$ZodIssue, { code: 'invalid_union' }>): string {
  const isOther = ({ code, path }: z.$ZodIssue) =>
    path.length === 0 && (code === 'invalid_type' || (code === 'invalid_value' && typeof input !== 'string'))
  const [issue] = errors.find(issues => !issues.some(isOther)) ?? []
  if (issue) {
    const path = pathOf(issue.path)
    return path === '' ? describeIssue(issue) : `${describeIssue(issue)} (at "${path}")`
  }
  const own = errors.flat().find(({ code, message }) => code === 'invalid_type' && isOurs(message))
  if (own) return own.message
  const kinds = errors.flatMap(([first]) => {
    if (first?.code === 'invalid_type') return [withArticle(TYPES[first.expected] ?? first.expected)]
    return first?.code === 'invalid_value' ? [describeIssue(first).replace(/^must be /, '')] : []
  })
  return `must be ${[...new Set(kinds)].join(' or ')}`
}

function membersAt(schema: z.ZodType, path: PropertyKey[]): string[] {
  const at = path.reduce<z.ZodType | undefined>((at, name) => at && memberOf(at, String(name)), schema)
  const inner = at && unwrap(at)
  return inner instanceof z.ZodObject ? Object.keys(inner.shape) : []
}

function withArticle(noun: string): string {
  return `${/^[aeio]/.test(noun) ? 'an' : 'a'} ${noun}`
}
