import fetch from 'node-fetch'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Replay, startReplay } from '../servers/replay.ts'

const EXCHANGE = {
  request: {
    method: 'POST',
    path: '/up',
    query: { v: '1' },
    headers: { 'X-Key': 'right' },
    fields: { album: 'a' },
    file: 'image',
  },
  success: { status: 200, body: { url: '{{url}}' } },
}

let host: Replay
let base: string
beforeAll(async () => {
  host = await startReplay()
  base = await host.replay(EXCHANGE)
})
afterAll(() => host.close())

interface Sent {
  method?: string
  target?: string
  headers?: Record<string, string>
  fields?: [string, string][]
  file?: string
  body?: string
}

/** What is documented, but for what is given. Not by the fetch of Node, which sends headers of browsers. */
function send({
  method = 'POST',
  target = '/up?v=1',
  headers = {},
  fields,
  file = 'image',
  body,
}: Sent = {}) {
  const form = [...(fields ?? [['album', 'a']]).map(fieldOf), fileIn(file), '--b--\r\n'].join('')
  const type = 'multipart/form-data; boundary=b'
  const sent = { 'X-Key': 'right', 'Content-Type': type, ...headers }
  return fetch(base + target, { method, body: body ?? form, headers: sent })
}

const fieldOf = ([name, value]: readonly string[]) =>
  `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
const fileIn = (field: string) =>
  `--b\r\nContent-Disposition: form-data; name="${field}"; filename="a.png"\r\nContent-Type: image/png\r\n\r\nbytes\r\n`
const FIELD = fieldOf(['album', 'a'])
const FILE = fileIn('image')

it('a played host takes what is documented, and hands the very bytes out', async () => {
  const reply = await send()
  const text = await reply.text()
  expect({ status: reply.status, text }).toMatchObject({ status: 200 })
  expect(await (await fetch(JSON.parse(text).url)).text()).toBe('bytes')
})

it.each<[string, Sent, string]>([
  ['a header with another value', { headers: { 'X-Key': 'wrong' } }, 'the header "x-key" has another value'],
  ['a header more', { headers: { 'X-Other': '1' } }, 'the header "x-other" is not documented'],
  ['another method', { method: 'PUT' }, 'the method is PUT'],
  ['another path', { target: '/upload?v=1' }, 'the path is /upload'],
  ['no parameter', { target: '/up' }, 'the parameter "v" is missing'],
  ['no field', { fields: [] }, 'the field "album" is missing'],
  ['a field more', { fields: [['album', 'a'], ['x', 'y']] }, 'the field "x" is not documented'], // biome-ignore format: a row
  ['the file in another field', { file: 'file' }, 'the file is in the field "file"'],
  ['a form without its end', { body: FIELD + FILE }, 'the form breaks off'],
  ['a form with two files', { body: `${FIELD}${FILE}${FILE}--b--\r\n` }, 'the form has 2 files'],
])('a played host refuses %s', async (_, sent, difference) => {
  const reply = await send(sent)
  expect(reply.status).toBe(400)
  expect(await reply.text()).toBe(`Not as documented: ${difference}.`)
})
