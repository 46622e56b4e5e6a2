import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { size } from '../../src/config/values.ts'

describe('size', () => {
  it.each<[string | number, number]>([
    [1, 1],
    [104857600, 104857600],
    ['1', 1],
    ['512', 512],
    ['512B', 512],
    ['1k', 1024],
    ['1KB', 1024],
    ['1KiB', 1024],
    ['10MB', 10 * 1024 ** 2],
    ['100 MB', 100 * 1024 ** 2],
    ['  2gb ', 2 * 1024 ** 3],
    ['1.5M', 1.5 * 1024 ** 2],
    ['0.001KB', 1],
  ])('reads %j as %d bytes', (text, bytes) => {
    expect(size().parse(text)).toBe(bytes)
  })

  it.each([0, -1, 1.5, Number.NaN, Infinity, true, null, undefined, {}, []])('refuses %j', value => {
    expect(size().safeParse(value).success).toBe(false)
  })

  it.each([
    '',
    ' ',
    '0',
    '0MB',
    '0.0001KB',
    '-1MB',
    '1e6',
    '1,5MB',
    '10 parsecs',
    '10TB',
    'MB',
    '1MB2',
    '1 2MB',
  ])('refuses %j', text => {
    expect(size().safeParse(text).success).toBe(false)
  })

  it.each([0, 'a lot', 1.5, true, undefined])('says once what is allowed in place of %j', value => {
    const { error } = size().safeParse(value)
    expect(error?.issues.map(issue => issue.message)).toEqual([
      'must be a number of bytes above 0, or a string such as "100MB", "512KB" or "2GB"',
    ])
  })

  it('can be described to an editor', () => {
    expect(z.toJSONSchema(size(), { io: 'input' })).toMatchObject({
      anyOf: [{ type: 'integer' }, { type: 'string' }],
    })
  })
})
