import { describe, expect, it } from 'vitest'
import { findInJson, parseJsonPath } from '../../../src/providers/shared/form-host.ts'

const ANSWER = {
  data: {
    links: { url: 'https://a', 'the url': 'https://b', 'a.b': 'https://c' },
    id: 7,
    ok: true,
    none: null,
  },
  files: [{ url: 'https://d' }, { url: 'https://e' }],
}
const LIST = [{ src: '/f' }, [['deep']]]

describe('a JSON path', () => {
  it.each([
    ['data.links.url', ANSWER, 'https://a'],
    ['$.data.links.url', ANSWER, 'https://a'],
    ['$data.links.url', ANSWER, 'https://a'],
    [' data.links.url ', ANSWER, 'https://a'],
    ["data.links['the url']", ANSWER, 'https://b'],
    ['data.links["a.b"]', ANSWER, 'https://c'],
    ['data.links.the url', ANSWER, 'https://b'],
    ['files[1].url', ANSWER, 'https://e'],
    ['files.0.url', ANSWER, 'https://d'],
    ['data.id', ANSWER, '7'],
    ['data.ok', ANSWER, 'true'],
    ['[0].src', LIST, '/f'],
    ['$[0].src', LIST, '/f'],
    ['0.src', LIST, '/f'],
    ['[1][0][0]', LIST, 'deep'],
    ['data.none', ANSWER, undefined],
    ['data.links', ANSWER, undefined],
    ['files[9].url', ANSWER, undefined],
    ['files.length', ANSWER, '2'],
    ['data.links.url.more', ANSWER, undefined],
    ['constructor.name', ANSWER, undefined],
    ['a', 'text', undefined],
  ])('%s', (path, json, expected) => {
    expect(findInJson(JSON.stringify(json), parseJsonPath(path))).toBe(expected)
  })

  it('finds nothing in what is not JSON', () => {
    expect(findInJson('<html>', ['a'])).toBeUndefined()
  })

  it.each(['', '$', '.a', 'a..b', 'a.', 'a[', 'a[*].b', 'a[?(@.b)]', '$..url', 'a[0', "a['b]", '*'])(
    '%j is refused',
    path => {
      expect(() => parseJsonPath(path)).toThrow(/JSON path/)
    },
  )
})
