import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { parseReporting } from '../../src/config/issues.ts'

const schema = z.strictObject({
  port: z.number().int().min(1).max(10).default(5),
  host: z.string().min(1).optional(),
  level: z.enum(['info', 'warn']).optional(),
  on: z.boolean().optional(),
  code: z.string().min(3).max(5).optional(),
  shape: z.string().regex(/^a/, 'must start with "a"').optional(),
  plain: z.string().regex(/^a/).optional(),
  either: z.union([z.enum(['jpeg', 'png']), z.strictObject({ gif: z.enum(['png']) })]).optional(),
  list: z
    .array(z.strictObject({ name: z.string() }))
    .min(1)
    .optional(),
  map: z.record(z.string().min(1, 'must have a name'), z.strictObject({ size: z.number() })).optional(),
  needed: z.string().default('x'),
})

function problemsOf(value: unknown): string[] {
  const problems: string[] = []
  parseReporting(schema, value, (path, message) => problems.push(`${path}: ${message}`))
  return problems
}

describe('parseReporting', () => {
  it.each<[unknown, string]>([
    [{ port: 'x' }, 'port: must be a number, not a string'],
    [{ port: null }, 'port: must be a number, not null'],
    [{ port: [1] }, 'port: must be a number, not a list'],
    [{ port: 1.5 }, 'port: must be a whole number'],
    [{ port: 0 }, 'port: must be 1 or more'],
    [{ port: 11 }, 'port: must be 10 or less'],
    [{ host: '' }, 'host: must not be empty'],
    [{ host: {} }, 'host: must be a string, not an object'],
    [{ level: 'loud' }, 'level: must be one of: "info", "warn"'],
    [{ on: 'yes' }, 'on: must be a boolean, not a string'],
    [{ code: 'ab' }, 'code: must have 3 characters or more'],
    [{ code: 'abcdef' }, 'code: must have 5 characters or less'],
    [{ shape: 'b' }, 'shape: must start with "a"'],
    [{ plain: 'b' }, 'plain: has an invalid format. See docs/reference/configuration.md'],
    [{ either: 'jpg' }, 'either: must be one of: "jpeg", "png". Did you mean "jpeg"?'],
    [{ either: { gif: 'x' } }, 'either: must be one of: "png" (at "gif")'],
    [{ either: 7 }, 'either: must be one of: "jpeg", "png" or an object'],
    [{ list: [] }, 'list: must not be empty'],
    [{ list: {} }, 'list: must be a list, not an object'],
    [{ list: [{}] }, 'list[0].name: is missing. It must be a string'],
    [{ list: [{ name: 'a' }, { name: 'b', nme: 1 }] }, 'list[1].nme: is not an option. Did you mean "name"?'],
    [{ map: 7 }, 'map: must be an object, not a number'],
    [{ map: { a: 7 } }, 'map.a: must be an object, not a number'],
    [{ map: { a: {} } }, 'map.a.size: is missing. It must be a number'],
    [{ map: { 'a b': { size: 'x' } } }, 'map.a b.size: must be a number, not a string'],
    [{ map: { a: { size: 1, siez: 1 } } }, 'map.a.siez: is not an option. Did you mean "size"?'],
    [{ map: { '': { size: 1 } } }, 'map[""]: is not a valid name: it must have a name'],
    [{ hots: 'x' }, 'hots: is not an option. Did you mean "host"?'],
    [{ pot: 'x' }, 'pot: is not an option. Did you mean "port"?'],
    [{ LEVEL: 'x' }, 'LEVEL: is not an option. Did you mean "level"?'],
    [7, ': must be an object, not a number'],
  ])('says of %j: %s', (value, problem) => {
    expect(problemsOf(value)).toEqual([problem])
  })

  it('lists what there is when no name is near', () => {
    expect(problemsOf({ nothingLikeIt: 1 })).toEqual([
      'nothingLikeIt: is not an option. Available: port, host, level, on, code, shape, plain, either, list, map, needed',
    ])
  })

  it('never repeats a value, which may be a secret', () => {
    const secret = 'hunter2-hunter2'
    const value = { port: secret, level: secret, on: secret, code: secret, shape: secret, plain: secret }
    expect(problemsOf(value)).toHaveLength(6)
    expect(problemsOf(value).join()).not.toContain(secret)
  })
})
