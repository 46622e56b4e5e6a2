import { describe, expect, it } from 'vitest'
import { parseList } from '../../src/routes/list.ts'

const refusal = (message: RegExp) =>
  expect.objectContaining({ code: 'invalid_request', message: expect.stringMatching(message) })

describe('the clipboard is uploaded for', () => {
  it.each(['', ' \n', '\ufeff', 'null', '{}', '[]', '{"list":null}', '{"list":[]}', '{"list":[],"more":1}'])(
    '%j',
    body => {
      expect(parseList(Buffer.from(body), 100)).toMatchObject([{ kind: 'clipboard' }])
    },
  )
})

describe('a list that is none is refused, and the clipboard is not uploaded:', () => {
  it.each([
    ['{"files":["/a.png"]}', /has "files" but no "list"/],
    ['{"lists":["/a.png"]}', /has "lists" but no "list"/],
    ['{"List":[]}', /has "List" but no "list"/],
    ['{"":1}', /has "" but no "list"/],
    ['{"__proto__":{"list":[]}}', /has "__proto__" but no "list"/],
    ['["/a.png"]', /must be an object/],
    ['[null]', /must be an object/],
    ['false', /must be an object/],
    ['0', /must be an object/],
    ['""', /must be an object/],
    ['{"list":"/a.png"}', /"list" must be an array/],
    ['{"list":{"0":"/a.png"}}', /"list" must be an array/],
    ['{"list":5}', /"list" must be an array/],
    ['{"list":[1]}', /list\[0\]/],
    ['{"list":[null]}', /list\[0\]/],
    ['{"list":["  "]}', /list\[0\]/],
    ['{"list":[["/a.png"]]}', /list\[0\]/],
    ['{"list":[{"path":"/a.png"}]}', /list\[0\]/],
    ['{"list":["/a.png",1,"/a.png","relative.png"]}', /list\[1\][\s\S]*list\[3\]/],
    ['{"list":["./a.png"]}', /list\[0\]/],
    ['{"list":["~/x.png"]}', /list\[0\]/],
    ['{"list":["C:x.png"]}', /list\[0\]/],
    ['{"list":["ftp://127.0.0.1/a.png"]}', /list\[0\]/],
    ['{"list":["http://"]}', /list\[0\]/],
    ['{"list":["data:image/png;base64"]}', /list\[0\]/],
    ['{"list":["file://host/a.png"]}', /list\[0\]/],
    ['{"list":', /./],
  ])('%s', (body, message) => {
    expect(() => parseList(Buffer.from(body), 100)).toThrow(refusal(message))
  })
})

it.each([`/${'x'.repeat(50_000)}`, `https://a.example/${'x'.repeat(50_000)}`, 'x'.repeat(50_000)])(
  'attack: 5 MB of long names in a list took 85 MB, and ended a container of 128 MB: %.20s',
  entry => {
    const body = Buffer.from(JSON.stringify({ list: Array(100).fill(entry) }))
    expect(() => parseList(body, 100)).toThrow(refusal(/list\[0\] is longer than 16384 characters/))
  },
)
