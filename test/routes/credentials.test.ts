import type { IncomingHttpHeaders } from 'node:http'
import { describe, expect, it } from 'vitest'
import { collectKeys, createKeyFinder } from '../../src/routes/credentials.ts'

const KEY = 'correct horse'
const latin1 = (text: string) => Buffer.from(text, 'utf8').toString('latin1')

function finds(key: string, headers: IncomingHttpHeaders, query = ''): boolean {
  return createKeyFinder([key])(collectKeys(headers, new URLSearchParams(query))).length > 0
}

describe('an upload key is found', () => {
  it.each<[string, IncomingHttpHeaders, string]>([
    ['key', {}, 'key=correct+horse'],
    ['key, percent-encoded', {}, 'picbed=s3&key=correct%20horse'],
    ['secret', {}, 'secret=correct+horse'],
    ['Bearer', { authorization: 'Bearer correct horse' }, ''],
    ['Bearer in small letters', { authorization: 'bearer correct horse' }, ''],
    ['Bearer with more blanks', { authorization: 'BEARER   correct horse' }, ''],
    ['raw Authorization', { authorization: 'correct horse' }, ''],
    ['X-Upload-Key', { 'x-upload-key': 'correct horse' }, ''],
    ['X-PicGo-Secret', { 'x-picgo-secret': 'correct horse' }, ''],
    ['a second key', {}, 'key=wrong&key=correct+horse'],
    ['secret beside a wrong key', {}, 'key=wrong&secret=correct+horse'],
    ['key beside an unrelated Authorization', { authorization: 'Basic YTpi' }, 'key=correct+horse'],
    ['a header beside wrong keys', { 'x-upload-key': 'correct horse' }, 'key=wrong&secret=wrong'],
  ])('as %s', (_where, headers, query) => {
    expect(finds(KEY, headers, query)).toBe(true)
  })

  it.each<[string, IncomingHttpHeaders, string]>([
    ['nothing', {}, ''],
    ['empty values', { authorization: '', 'x-upload-key': '' }, 'key=&secret='],
    ['another one', {}, 'key=Correct+horse'],
    ['a beginning', {}, 'key=correct'],
    ['more than the key', {}, 'key=correct+horse+battery'],
    ['another scheme', { authorization: 'Basic correct horse' }, ''],
    ['another header', { 'x-api-key': 'correct horse', cookie: 'key=correct horse' }, ''],
    ['another parameter', {}, 'Key=correct+horse&token=correct+horse&configName=correct+horse'],
  ])('but not in %s', (_where, headers, query) => {
    expect(finds(KEY, headers, query)).toBe(false)
  })

  it.each(['schlüssel', '密钥-é', '🔑🗝️', 'пароль'])('when it is %s, in a query and in a header', key => {
    const query = new URLSearchParams({ key }).toString()
    expect(finds(key, {}, query)).toBe(true)
    expect(finds(key, { 'x-upload-key': latin1(key) })).toBe(true)
    expect(finds(key, { authorization: `Bearer ${latin1(key)}` })).toBe(true)
  })

  it('when a client writes its header in latin1', () => {
    expect(finds('schlüssel', { 'x-picgo-secret': 'schlüssel' })).toBe(true)
  })

  it('when a base64 key was pasted into an address without encoding its plus signs', () => {
    expect(finds('ab+cd/ef+g==', {}, 'key=ab+cd/ef+g==')).toBe(true)
    expect(finds('ab+cd/ef+g==', {}, 'key=ab%2Bcd%2Fef%2Bg%3D%3D')).toBe(true)
  })
})

describe('the readings of a request', () => {
  it('are none without a key, so that nothing counts as wrong', () => {
    expect(collectKeys({}, new URLSearchParams('key=&secret=&picbed=s3'))).toEqual([])
    expect(collectKeys({ authorization: 'Bearer' }, new URLSearchParams())).toEqual([])
    expect(collectKeys({ authorization: 'bearer  ' }, new URLSearchParams())).toEqual([])
  })

  it('attack: a thousand guesses in one request', () => {
    const query = new URLSearchParams(Array.from({ length: 1000 }, (_, i) => `key=guess${i}`).join('&'))
    expect(collectKeys({ 'x-upload-key': 'header' }, query)).toHaveLength(8)
  })
})

describe('several keys', () => {
  it('tell which ones were sent, in their own order', () => {
    const find = createKeyFinder(['a', 'b', 'c'])
    expect([find(['a']), find(['c']), find(['x', 'b']), find(['c', 'b'])]).toEqual([[0], [2], [1], [1, 2]])
    expect([find([]), find(['x']), find([''])]).toEqual([[], [], []])
  })

  it('may be none', () => {
    expect(createKeyFinder([])(['a'])).toEqual([])
  })
})
