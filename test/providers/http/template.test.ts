import { describe, expect, it } from 'vitest'
import { type Functions, fillTemplate, literal, parseTemplate } from '../../../src/providers/http/template.ts'

const functions: Functions = {
  filename: () => 'a.png',
  nothing: () => undefined,
  Y: () => '2026',
  y: () => '26',
  upper: first => first.toUpperCase(),
  join: (first, ...others) => [first, ...others].join('+'),
}

const fill = (text: string) => fillTemplate(parseTemplate(text, functions), functions)

describe('a template', () => {
  it.each([
    ['', ''],
    ['plain text, 50% | more \\ end\\', 'plain text, 50% | more \\ end\\'],
    ['{filename}', 'a.png'],
    ['x{filename}y{Y}-{y}', 'xa.pngy2026-26'],
    ['{FileName}', 'a.png'],
    ['{upper:abc:def}', 'ABC:DEF'],
    ['{join:a|b||c}', 'a+b++c'],
    ['{join:a\\|b|c}', 'a|b+c'],
    ['{upper:{join:a|{filename}}}', 'A+A.PNG'],
    ['{upper:\\{\\}}', '{}'],
    ['\\{filename\\}', '{filename}'],
    ['{join:\\d+|\\\\s}', '\\d++\\s'],
  ])('%j is filled in as %j', (text, expected) => {
    expect(fill(text)).toBe(expected)
  })

  it.each(['{nothing}', 'https://example.com/{nothing}', '{upper:{nothing}}', '{join:a|{nothing}}'])(
    'with nothing at one place is nothing: %s',
    text => {
      expect(fill(text)).toBeUndefined()
    },
  )

  it.each([
    ['{', 'unmatched "{"'],
    ['{filename', 'unmatched "{"'],
    ['{upper:a', 'unmatched "{"'],
    ['a}', 'unmatched "}"'],
    ['{}', 'unknown placeholder {}. Available: {filename}, {nothing}, {Y}'],
    ['{nope}', 'unknown placeholder {nope}'],
    ['{constructor}', 'unknown placeholder {constructor}'],
    ['{upper}', '{upper} without a parameter'],
    ['{prompt:Title}', 'prompts a person'],
    ['{Select:a|b}', 'prompts a person'],
    ['{inputbox}', 'prompts a person'],
  ])('%s is refused', (text, words) => {
    expect(() => parseTemplate(text, functions)).toThrow(words)
  })

  it.each(['{filename}', 'a|b\\c}', '\\', '\\\\{'])('made of plain text stands for itself: %j', text => {
    expect(fill(literal(text))).toBe(text)
    expect(fill(`{upper:${literal(text)}}`)).toBe(text.toUpperCase())
  })
})
