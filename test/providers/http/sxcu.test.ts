import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { compileHost } from '../../../src/providers/http/description.ts'
import { parseSxcu } from '../../../src/providers/http/sxcu.ts'
import { objectOf } from '../../helpers/provider-contract.ts'

const read = (name: string) =>
  readFileSync(new URL(`../../fixtures/sxcu/${name}.sxcu`, import.meta.url), 'utf8')

describe('a file of ShareX', () => {
  it('of now says everything', () => {
    const description = parseSxcu(read('now'))
    expect(description).toEqual({
      method: 'POST',
      url: 'https://img.example.com/echo',
      query: { year: '{Y}', name: '{filename}' },
      headers: {
        Authorization: 'Basic {base64:user:a-long-password}',
        'X-Album': 'holidays \\{2026\\}',
      },
      body: 'multipart',
      field: 'picture[]',
      fields: { token: '0123456789', title: '50% of {filename}' },
      resultUrl: '{json:{response}|url}?d={random:a|a}',
      deleteUrl: '{regex:"url":"(.*?)"|1}/delete',
      errorMessage: '{json:error.message}',
      secrets: expect.objectContaining({}),
    })
    expect(Object.values(description.secrets ?? {})).toEqual(
      expect.arrayContaining(['a-long-password', '0123456789']),
    )
    compileHost(description)
  })

  it('from before version 13.7.2 has dollars', () => {
    const description = parseSxcu(read('dollars'))
    expect(description).toMatchObject({
      fields: { time: 'month', braces: '\\{x\\}', money: '5$ for {filename}' },
      resultUrl: 'https://img.example.com/f.php?h={json:hash}&p=1',
      deleteUrl: 'https://img.example.com/f.php?h={json:hash}&d={regex:([a-z]+)\\\\\\|end|1}',
    })
    compileHost(description)
  })

  it('from before there was a body is a form, and may want the address it is redirected to', () => {
    const description = parseSxcu(read('oldest'))
    expect(description).toMatchObject({ method: 'POST', body: 'multipart', field: 'source' })
    expect(description.resultUrl).toBe('{responseurl}')
    const { answer } = compileHost(description).describe(objectOf('a.png', Buffer.from('x')))
    expect(answer.statuses).toContain(302)
  })

  const FILE = { Version: '15.0.0', RequestURL: 'img.example.com/up', Body: 'Binary', URL: '' }
  const parse = (changes: object) => parseSxcu(JSON.stringify({ ...FILE, ...changes }))

  it('without a scheme is asked by https, and without a URL the answer is one', () => {
    expect(parse({})).toMatchObject({
      url: 'https://img.example.com/up',
      body: 'raw',
      resultUrl: '{response}',
    })
    expect(parseSxcu(`\uFEFF${JSON.stringify(FILE)}`).body).toBe('raw')
  })

  it.each([
    ['%y-%yy-%mo-%d %h:%mi:%s.%ms', '{Y}-{y}-{m}-{d} {h}:{i}:{s}.{ms}'],
    ['%unix %guid', '{timestampS} {uuid}'],
    ['%mon %ra 100% %', '%mon %ra 100% %'],
  ])('has the times %s', (text, expected) => {
    expect(parse({ Headers: { X: text } }).headers).toEqual({ X: expected })
  })

  it.each([
    ['13.7.1', '$json:a$', '{json:a}'],
    ['13.7.2', '{json:a}$', '{json:a}$'],
    ['14.0', '{json:a}', '{json:a}'],
    ['13.10.0', '{json:a}', '{json:a}'],
    ['12.9.9', '$json:a$', '{json:a}'],
    ['', '$json:a$', '{json:a}'],
  ])('of version %s has the URL %s', (Version, URL, expected) => {
    expect(parse({ Version, URL }).resultUrl).toBe(expected)
  })

  it.each([
    [{ RequestMethod: 'GET' }, 'has the method "GET"'],
    [{ RequestMethod: 'DELETE' }, 'has the method "DELETE"'],
    [{ Body: 'JSON' }, 'has the body "JSON"'],
    [{ Body: 'FormURLEncoded' }, 'has the body "FormURLEncoded"'],
    [{ Body: undefined }, 'has the body "None"'],
    [{ Body: 'MultipartFormData' }, 'has no "FileFormName"'],
    [{ URL: 'https://img.example.com/' }, 'has a "URL" without a placeholder'],
    [{ Version: '12.4.1', URL: '$regex:1$', RegexList: ['a'] }, 'has a "RegexList"'],
  ])('that can not be used says why: %j', (changes, words) => {
    expect(() => parse(changes)).toThrow(words)
  })

  it.each([
    [{ URL: '{json:a..b}' }, '"resultUrl" has the unsupported JSON path'],
    [{ URL: '{prompt}' }, '"resultUrl" has {prompt}, which prompts a person'],
    [{ RequestURL: 'https://{select:a|b}.example.com' }, '"url" has {select}'],
    [{ Arguments: { text: '{input}' } }, '"fields.text" has the unknown placeholder {input}'],
    [{ DeletionURL: '{json:}' }, '"deleteUrl" has an empty JSON path'],
  ])('with a mistake in a template names the option that has it here: %j', (changes, words) => {
    const description = parse({ FileFormName: 'f', ...changes, Body: 'MultipartFormData' })
    expect(() => compileHost(description)).toThrow(words)
  })

  it.each(['', '[', 'null', '"text"', '<xml/>'])('that is none is refused: %j', text => {
    expect(() => parseSxcu(text)).toThrow()
  })
})
