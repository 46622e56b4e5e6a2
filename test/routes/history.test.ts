import { describe, expect, it } from 'vitest'
import { ask, expectEnvelope } from '../helpers/ask.ts'
import { formOf, post } from '../helpers/form.ts'
import { makePicture } from '../helpers/picture.ts'
import { shareApp, startApp } from '../helpers/start-app.ts'

const PAGE = { history: true }
const KEYS = ['al', 'alice', 'bob'].map(name => ({ name, key: `upload-key-of-${name}` }))
const keyOf = (name: string) => ({ 'x-upload-key': `upload-key-of-${name}` })

interface Shown {
  url: string
  name: string
  time: string
  size: number
  contentType: string
}

async function historyOf(url: string, headers: Record<string, string>, query = '') {
  const reply = await ask(url, 'GET', `/history${query}`, { headers })
  expectEnvelope(reply)
  return { ...reply, ...(JSON.parse(reply.body) as { result: Shown[]; code?: string; message: string }) }
}

const send = (url: string, name: string, as: string, picture = makePicture()) =>
  post(`${url}/upload`, { body: formOf({ [name]: picture }), headers: keyOf(as) })

describe('with keys', () => {
  const shared = shareApp({
    config: {
      page: PAGE,
      auth: { loopbackExempt: false, anonymous: true, keys: KEYS },
      default: 'local/main',
      providers: {
        local: {
          main: { directory: './main', serve: true, mirrors: [{ destination: 'local/copy' }] },
          copy: { directory: './copy', serve: true },
        },
      },
    },
  })

  it('a caller sees its own uploads, newest first, each once, and finds them by name and link', async () => {
    const { url } = shared()
    const holiday = makePicture()
    const first = await send(url, 'Holiday.png', 'alice', holiday)
    const second = await send(url, 'invoice.png', 'alice')
    await send(url, 'Holiday.png', 'alice', holiday)
    const { result, headers } = await historyOf(url, keyOf('alice'))
    expect(headers['cache-control']).toBe('no-store')
    expect(result.map(one => one.url)).toEqual([first.result[0], second.result[0]])
    expect(result[1]).toEqual({
      url: second.result[0],
      name: 'invoice.png',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      size: second.items[0]?.size,
      contentType: 'image/png',
    })
    const names = async (query: string) =>
      (await historyOf(url, keyOf('alice'), query)).result.map(({ name }) => name)
    expect(await names('?text=HOLI')).toEqual(['Holiday.png'])
    expect(await names('?text=/files/main/')).toEqual(['Holiday.png', 'invoice.png'])
    expect(await names('?limit=1')).toEqual(['Holiday.png'])
    for (const pattern of ['%25', '_', '*', '%5C']) expect(await names(`?text=${pattern}x`)).toEqual([])
  })

  it('attack: a caller asks for the list of another one', async () => {
    const { url } = shared()
    await send(url, 'private.png', 'bob')
    expect((await historyOf(url, keyOf('bob'))).result).toHaveLength(1)
    // "al" is a part of "alice".
    for (const query of ['', '?caller=bob', '?by=bob', '?text=private', '?caller=', '?name=alice&limit=100'])
      expect((await historyOf(url, keyOf('al'), query)).result).toEqual([])
  })

  it.for<[string, Record<string, string>]>([
    ['nobody in particular', {}],
    ['a wrong key', keyOf('mallory')],
    ['a web page', { origin: 'https://evil.example' }],
  ])('attack: %s is shown nothing, though it may upload', async ([, headers]) => {
    const { url } = shared()
    await post(`${url}/upload`, { body: formOf({ 'open.png': makePicture() }), headers })
    const { status, code, message } = await historyOf(url, headers)
    expect({ status, code }).toEqual({ status: 401, code: 'unauthorized' })
    expect(message).toMatch(/upload key/)
  })

  it.for([
    ['a long text', `?text=${'a'.repeat(201)}`],
    ['no number', '?limit=many'],
    ['none', '?limit=0'],
    ['too many', '?limit=101'],
  ])('refuses %s in words', async ([, query]) => {
    const { status, code } = await historyOf(shared().url, keyOf('alice'), query)
    expect({ status, code }).toEqual({ status: 400, code: 'invalid_request' })
  })

  it('attack: a search text of 100 KB', async () => {
    const { url } = shared()
    const options = { headers: keyOf('alice') }
    const { status } = await ask(url, 'GET', `/history?text=${'a'.repeat(100_000)}`, options)
    expect(status).toBe(431)
    expect((await historyOf(url, keyOf('alice'), '?text=%00%FF')).result).toEqual([])
  })
})

it('is switched off unless the configuration says so', async () => {
  const app = await startApp()
  const { status, message } = await historyOf(app.url, {})
  expect(status).toBe(404)
  expect(message).toContain('Set "page.history" to true')
})

it('attack: a key is called as callers without a key are, and sees their uploads', async () => {
  const config = { page: PAGE, auth: { keys: [{ name: 'loopback', key: 'upload-key-of-mallory' }] } }
  await expect(startApp({ config })).rejects.toThrow(/auth\.keys\[0\]\.name.*clients without an upload key/)
})
