import { describe, expect, it } from 'vitest'
import { parseList } from '../../src/routes/list.ts'

describe('the clipboard is uploaded for', () => {
  it.each(['', ' \n', '\ufeff', 'null', '{}', '[]', '{"list":null}', '{"list":[]}', '{"list":[],"more":1}'])(
    '%j',
    async body => {
      expect(await parseList(Buffer.from(body), 100)).toMatchObject([{ kind: 'clipboard' }])
    },
  )
})

describe('a misspelt list does not upload the clipboard:', () => {
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
  ])('%s', async (body, message) => {
    await expect(parseList(Buffer.from(body), 100)).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringMatching(message),
    })
  })
})
