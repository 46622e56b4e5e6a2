import { at, pathOf } from '../members.ts'
import { memberOf, unwrap } from '../options.ts'
import * as z from '../packages/zod.ts'
import type { OnProblem } from './problems.ts'
import { suggest, suggestNear } from './suggest.ts'

/** Parses a value, and reports what is wrong in one sentence per option, with the values that would be valid. */
export function parseReporting<S extends z.ZodType>(
  schema: S,
  value: unknown,
  report: OnProblem,
): z.output<S> | undefined {
  // Without its input, a value of a wrong type would look like a missing option.
  const { data, error } = schema.safeParse(value, {
    reportInput: true,
    error: issue => describeIssue(issue as z.$ZodIssue), // only its message is still missing
  })
  for (const issue of error?.issues ?? []) {
    if (issue.code !== 'unrecognized_keys') {
      report(pathOf(issue.path), messageOf(issue))
      continue
    }
    const around = issue.path.reduce<z.ZodType>(
      (at, name) => memberOf(at, String(name)) ?? z.unknown(),
      schema,
    )
    const inner = unwrap(around)
    const known = inner instanceof z.ZodObject ? Object.keys(inner.shape) : []
    for (const key of issue.keys)
      report(at(pathOf(issue.path), key), `is not an option${suggest(key, known)}`)
  }
  return data
}

/** The JSON type of a value, with its article. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'a list' : withArticle(typeof value)
}

const TYPES: Record<string, string> = { record: 'object', array: 'list', int: 'whole number' }
const typeOf = (expected: string) => withArticle(TYPES[expected] ?? expected)
/** Units of lengths. */
const PARTS: Readonly<Record<string, string>> = { string: 'characters', array: 'entries' }

/** The message of the schema, or ours. A schema has none for an option that is missing. */
function messageOf(issue: z.$ZodIssue): string {
  return issue.code === 'invalid_type' && issue.input === undefined ? describeIssue(issue) : issue.message
}

/** Describes an issue for which the schema has no message. */
function describeIssue(issue: z.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      if (issue.input === undefined) return `is missing. It must be ${typeOf(issue.expected)}`
      if (issue.expected === 'int') return 'must be a whole number'
      return `must be ${typeOf(issue.expected)}, not ${kindOf(issue.input)}`
    case 'invalid_value': {
      const values = issue.values.map(value => JSON.stringify(value)).join(', ')
      const near = typeof issue.input === 'string' ? suggestNear(issue.input, issue.values.map(String)) : ''
      return `must be one of: ${values}${near}`
    }
    case 'invalid_key':
      return `is not a valid name: it ${issue.issues[0]?.message ?? 'must be a string'}`
    case 'invalid_union':
      return describeUnion(issue.errors, issue.input)
    case 'too_small':
      if (issue.origin === 'number') return `must be ${issue.minimum} or more`
      return issue.minimum === 1
        ? 'must not be empty'
        : `must have ${issue.minimum} ${PARTS[issue.origin]} or more`
    case 'too_big':
      return issue.origin === 'number'
        ? `must be ${issue.maximum} or less`
        : `must have ${issue.maximum} ${PARTS[issue.origin]} or less`
    default:
      return 'has an invalid format. See docs/reference/configuration.md'
  }
}

/** Describes the issue of the alternative that was probably meant: the one whose JSON type the value has. */
function describeUnion(errors: readonly z.$ZodIssue[][], input: unknown): string {
  const isOther = ({ code, path }: z.$ZodIssue) =>
    path.length === 0 && (code === 'invalid_type' || (code === 'invalid_value' && typeof input !== 'string'))
  const [issue] = errors.find(issues => !issues.some(isOther)) ?? []
  if (issue) {
    const path = pathOf(issue.path)
    return path === '' ? messageOf(issue) : `${messageOf(issue)} (at "${path}")`
  }
  const own = errors.flat().find(one => one.code === 'invalid_type' && one.message !== describeIssue(one))
  if (own) return own.message
  const kinds = errors.flatMap(([first]) => {
    if (first?.code === 'invalid_type') return [typeOf(first.expected)]
    return first?.code === 'invalid_value' ? [describeIssue(first).replace(/^must be /, '')] : []
  })
  return `must be ${[...new Set(kinds)].join(' or ')}`
}

const withArticle = (noun: string) => `${/^[aeio]/.test(noun) ? 'an' : 'a'} ${noun}`
