import { describe, expect, it } from 'vitest'
import { encodeKey, encodeSegment, joinUrl, urlPrefix } from '../../../src/providers/shared/public-url.ts'

const everyAscii = String.fromCharCode(...Array.from({ length: 128 }, (_, i) => i)).replace(/[./]/g, '')

describe('encodeKey', () => {
  it.each([
    ['a.png', 'a.png'],
    ['2026/11/a-b_c~d.png', '2026/11/a-b_c~d.png'],
    ['a b#c?d%25e&f.png', 'a%20b%23c%3Fd%2525e%26f.png'],
    ["it's (1) *!.png", 'it%27s%20%281%29%20%2A%21.png'],
    ['"<>`|\\^[]{}', '%22%3C%3E%60%7C%5C%5E%5B%5D%7B%7D'],
    ['über/日本.png', '%C3%BCber/%E6%97%A5%E6%9C%AC.png'],
    ['😀', '%F0%9F%98%80'],
    ['%2e%2e/%2F', '%252e%252e/%252F'],
    ['tab\tnew\nline', 'tab%09new%0Aline'],
  ])('encodes %j as %s', (key, encoded) => {
    expect(encodeKey(key)).toBe(encoded)
  })

  it.each([everyAscii, 'a/b c/d', 'é', 'e\u0301', '\u2028\u00a0\ufeff', '%', '%%41', '+', ';,@:=&$'])(
    'is its own normal form and decodes back to %j',
    key => {
      const url = joinUrl('https://img.example.com/x', key)
      expect(new URL(url).href).toBe(url)
      expect(url).not.toMatch(/[\s"'<>()*]/)
      expect(decodeURIComponent(encodeKey(key))).toBe(key)
    },
  )

  it('refuses half a character, which no URL can give back', () => {
    expect(() => encodeKey('a\ud800')).toThrow(URIError)
  })
})

describe('encodeSegment', () => {
  it('encodes a slash, too', () => {
    expect(encodeSegment('a/b')).toBe('a%2Fb')
  })
})

describe('joinUrl', () => {
  it.each([
    ['https://img.example.com', 'https://img.example.com/k'],
    ['https://img.example.com/', 'https://img.example.com/k'],
    ['https://img.example.com/a/b//', 'https://img.example.com/a/b/k'],
    ['HTTPS://IMG.Example.com:443/a', 'https://img.example.com/a/k'],
    ['http://[::1]:8080/a', 'http://[::1]:8080/a/k'],
    ["https://img.example.com/my (it's) pictures", 'https://img.example.com/my%20%28it%27s%29%20pictures/k'],
    ['https://bücher.example/ü', 'https://xn--bcher-kva.example/%C3%BC/k'],
  ])('puts a key behind %s', (prefix, url) => {
    expect(joinUrl(prefix, 'k')).toBe(url)
  })
})

describe('urlPrefix', () => {
  it.each(['http://a', 'https://a.example/b/', 'http://127.0.0.1:8080/x'])('takes %s', url => {
    expect(urlPrefix().parse(url)).toBe(url)
  })

  it.each([
    'ftp://a',
    'javascript:alert(1)',
    '/files',
    'img.example.com',
    '',
    'https://a/?x=',
    'https://a/#x',
    'https://',
  ])('refuses %j', url => {
    expect(urlPrefix().safeParse(url).success).toBe(false)
  })
})
