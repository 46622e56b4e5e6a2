import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { expectFailure, expectNoClipboard } from '../helpers/expect-answer.ts'
import { list, post } from '../helpers/form.ts'
import { makePicture } from '../helpers/picture.ts'
import { sendUpload } from '../helpers/raw-request.ts'
import { shareApp, startApp } from '../helpers/start-app.ts'

const JSON_TYPE = 'Content-Type: application/json'

describe('POST /upload with JSON that is refused', () => {
  const app = shareApp()

  it.each([
    ['no JSON', '{"list":'],
    ['an unknown body', 'hello'],
    ['pairs of a form in an address', 'a=b'],
    ['a misspelt member', '{"files":["/a.png"]}'],
    ['a list without its object', '["/a.png"]'],
    ['5', '5'],
    ['a text', '"str"'],
    ['true', 'true'],
    ['a list that is a text', '{"list":"/a.png"}'],
    ['a list that is an object', '{"list":{"0":"/a.png"}}'],
    ['a list that is a number', '{"list":5}'],
    ['a list that is true', '{"list":true}'],
    ['[1]', '{"list":[1]}'],
    ['[null]', '{"list":[null]}'],
    ['[""]', '{"list":[""]}'],
    ['a blank entry', '{"list":["  "]}'],
    ['[[path]]', '{"list":[["/a.png"]]}'],
    ['[{path}]', '{"list":[{"path":"/a.png"}]}'],
    ['a relative path', '{"list":["a.png"]}'],
    ['./', '{"list":["./a.png"]}'],
    ['a home', '{"list":["~/x.png"]}'],
    ['a drive without a slash', '{"list":["C:x.png"]}'],
    ['an unknown scheme', '{"list":["ftp://127.0.0.1/a.png"]}'],
    ['a broken address', '{"list":["http://"]}'],
    ['a broken data: address', '{"list":["data:image/png;base64"]}'],
    ['a file: address of another machine', '{"list":["file://host/a.png"]}'],
  ])('%s', async (_what, body) => {
    const answer = await sendUpload(app().url, { headers: [JSON_TYPE], body })
    expectFailure(answer, 400, 'invalid_request')
    expect(answer.errors).toEqual([])
  })

  it('one entry is malformed: nothing is uploaded, and every such entry is named', async () => {
    const app = await startApp()
    const path = join(app.directory, 'a.png')
    await writeFile(path, makePicture())
    const answer = await post(`${app.url}/upload`, list(path, 1, path, 'relative.png'))
    expectFailure(answer, 400, 'invalid_request')
    expect(answer.message).toContain('list[1]')
    expect(answer.message).toContain('list[3]')
    expect(answer).not.toHaveProperty('result')
    expect(await app.files()).toEqual(['a.png'])
  })

  it.each<[string, string[], () => string | Buffer, number, string]>([
    ['gzip around it', ['Content-Encoding: gzip'], () => gzipSync('{"list":[]}'), 400, 'invalid_request'],
    ['a picture labelled JSON', [JSON_TYPE], () => makePicture(), 400, 'invalid_request'],
    ['20 MB of it', [], () => `{"padding":"${'x'.repeat(20_000_000)}"}`, 413, 'too_large'],
    ['101 entries', [], () => JSON.stringify({ list: Array(101).fill('/a.png') }), 413, 'too_large'],
    ['an unknown finalizationId', ['?finalizationId=x'], () => '{}', 404, 'unknown_finalization'],
    ['an unknown picbed', ['?picbed=unknown'], () => '{}', 400, 'unknown_destination'],
    [
      'an unknown uploader beside an empty picbed',
      ['?picbed=&uploader=unknown'],
      () => '{}',
      400,
      'unknown_destination',
    ],
    ['an unknown configName', ['?configName=unknown'], () => '{}', 400, 'unknown_destination'],
  ])('%s', async (_what, [extra = ''], toBody, status, code) => {
    const isQuery = extra.startsWith('?')
    const answer = await sendUpload(app().url, {
      line: `POST /upload${isQuery ? extra : ''} HTTP/1.1`,
      headers: isQuery || extra === '' ? [JSON_TYPE] : [extra],
      body: toBody(),
    })
    expectFailure(answer, status, code)
  })
})

describe('POST /upload for the clipboard of a machine without one fails at once, with', () => {
  const app = shareApp()

  it.each([
    undefined,
    '',
    ' \r\n\t',
    '\ufeff',
    'null',
    '{}',
    '{"list":[]}',
    '{"list":null}',
    '[]',
    ' {"list" : [ ] } ',
  ])('%j', async body => {
    await expectNoClipboard(sendUpload(app().url, body === undefined ? {} : { body }))
    await expectNoClipboard(
      sendUpload(app().url, { headers: [JSON_TYPE], ...(body !== undefined && { body }) }),
    )
  })
})
