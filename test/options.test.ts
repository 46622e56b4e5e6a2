import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { pathOf } from '../src/members.ts'
import { collectMarked, isPossibleHost, localPath, secret, walk } from '../src/options.ts'

const schema = z.strictObject({
  key: secret().describe('A key.'),
  other: secret().optional(),
  defaulted: secret().default('built in'),
  long: secret().min(3).optional().describe('Refined.'),
  directory: localPath(),
  plain: z.string(),
  list: z.array(secret()).default([]),
  nested: z
    .strictObject({ roots: z.array(localPath()), token: secret().optional() })
    .prefault({ roots: [] })
    .describe('Inner.'),
  map: z.record(z.string(), z.strictObject({ password: secret(), name: z.string() })).optional(),
  either: z.union([z.number(), secret(), z.strictObject({ pin: secret() })]).optional(),
  piped: secret()
    .transform(text => text)
    .optional(),
  anything: z.unknown().optional(),
})

const value = {
  key: 's1',
  other: 's2',
  defaulted: 's3',
  long: 's4s',
  directory: 'p1',
  plain: 'plain',
  list: ['s5', 's6'],
  nested: { roots: ['p2', 'p3'], token: 's7' },
  map: { a: { password: 's8', name: 'plain' }, b: { password: 's9', name: 'plain' } },
  either: { pin: 's10' },
  piped: 's11',
  anything: { key: 'plain', directory: ['plain'] },
}

describe('collectMarked', () => {
  it('finds every secret, however it is wrapped, and nothing else', () => {
    const found = collectMarked(schema, schema.parse(value), 'secret')
    expect(found).toEqual(['s1', 's2', 's3', 's4s', 's5', 's6', 's7', 's8', 's9', 's10', 's11'])
  })

  it.each([undefined, null, 7, 'text', [], {}])('finds none in %j', nothing => {
    expect(collectMarked(schema, nothing, 'secret')).toEqual([])
  })
})

describe('walk', () => {
  it('changes marked strings and keeps the rest as it is; without a schema, all, with their paths', () => {
    const changed = walk(schema, value, (text, is) => (is === 'path' ? `/base/${text}` : '*'))
    expect(changed).toEqual({
      key: '*',
      other: '*',
      defaulted: '*',
      long: '*',
      directory: '/base/p1',
      plain: 'plain',
      list: ['*', '*'],
      nested: { roots: ['/base/p2', '/base/p3'], token: '*' },
      map: { a: { password: '*', name: 'plain' }, b: { password: '*', name: 'plain' } },
      either: { pin: '*' },
      piped: '*',
      anything: value.anything,
    })
    expect(value.key).toBe('s1')
    const paths = walk(undefined, { a: [{ b: 1 }, null], c: 'x' }, (_, is, steps) => [is, pathOf(steps)])
    const at = (path: string) => [undefined, path]
    expect(paths).toEqual({ a: [{ b: at('a[0].b') }, at('a[1]')], c: at('c') })
  })
})

it.each([
  ...['example.com', 'a', 'nas_1.local', '127.0.0.1', '::1', '[::1]', 'bücher.example', 'example.com.'],
  'xn--bcher-kva.example',
])('the host %s can exist', host => {
  expect(isPossibleHost(host)).toBe(true)
})

it.each([
  ...['', '.', 'a..b', '-a.example', 'a-.example', '256.1.1.1', '1.2.3.4.5', 'a b', 'a!b', 'a,b', 'exa$mple'],
  `${'a'.repeat(64)}.example`,
  `${'a.'.repeat(130)}example`,
])('the host "%s" can not exist', host => {
  expect(isPossibleHost(host)).toBe(false)
})
