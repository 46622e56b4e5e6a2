import { describe, expect, it, onTestFinished } from 'vitest'
import { piclist } from '../../src/providers/piclist.ts'
import { download, upload } from '../helpers/form.ts'
import { fromPicGo } from '../helpers/from-picgo.ts'
import { describePreset, openHost } from '../helpers/http-exchange.ts'
import { objectOf } from '../helpers/provider-contract.ts'
import { startApp } from '../helpers/start-app.ts'
import { startReplay } from '../servers/replay.ts'

const KEY = 'the key of the other server'
const never = () => new AbortController().signal
const url = 'https://img.example.com/a.png'
const EXCHANGE = {
  source: ['docs/reference/http-api.md'],
  request: {
    method: 'POST',
    path: '/upload',
    headers: { 'X-Upload-Key': KEY, 'X-PicGo-Secret': KEY },
    file: 'files',
  },
  success: { status: 200, body: { success: true, result: ['{{url}}'] } },
}

describePreset({
  name: 'piclist',
  provider: piclist,
  exchange: {
    ...EXCHANGE,
    refusal: { status: 401, body: { success: false, message: 'Unauthorized' }, says: 'Unauthorized' },
    others: [
      {
        name: 'takes the answer of PicGo',
        status: 200,
        body: { success: true, result: [url], items: [{ origin: 'a.png', imgUrl: url }] },
        url,
      },
      {
        name: 'takes the answer of the desktop program PicList',
        status: 200,
        body: { success: true, result: [url], fullResult: [{ imgUrl: '…' }] },
        url,
      },
      {
        name: 'fails with the words of PicList, which calls failed uploads a success',
        status: 200,
        body: { success: true, result: [null] },
        says: 'returned no URL: ',
      },
      {
        name: 'fails with the words of PicList without the right key',
        status: 200,
        body: { success: false, message: 'Unauthorized access' },
        says: 'Unauthorized access',
      },
      {
        name: 'fails with the words of PicGo',
        status: 500,
        body: { success: false, result: [], items: [], message: 'All uploads failed' },
        says: 'All uploads failed',
        retryable: true,
      },
      {
        name: 'fails with the words of ours when the file is stored and the rest is not done',
        status: 424,
        body: {
          success: false,
          stage: 'finalization',
          finalizationId: 'x',
          message: 'Remote upload completed.',
        },
        says: 'Remote upload completed.',
      },
    ],
  },
  options: base => ({ url: base, serverKey: KEY }),
  wrong: { serverKey: 'another key' },
  secrets: [KEY, 'another key'],
})

it.each(['', '/', '/upload', '/upload/'])(
  'piclist at a URL that ends with "%s" posts to /upload',
  async end => {
    const host = await startReplay()
    onTestFinished(host.close)
    const target = await openHost(piclist, { url: (await host.replay(EXCHANGE)) + end, serverKey: KEY })
    onTestFinished(() => target.close?.())
    await target.put(objectOf('a.png', Buffer.of(1)), never())
  },
)

describe('piclist at another server of ours', () => {
  const startOther = () =>
    startApp({
      config: {
        server: { key: KEY },
        auth: { loopbackExempt: false, maxFailures: 1000 },
        default: 'local/served',
        providers: {
          local: {
            served: { directory: 'served', serve: true },
            other: { directory: 'other', serve: true },
          },
        },
      },
    })

  it.each([
    [{}, 'served'],
    [{ keyInQuery: true }, 'served'],
    [{ picbed: 'local', configName: 'other' }, 'other'],
  ])('stores with %j', async (options, folder) => {
    const other = await startOther()
    const target = await openHost(piclist, { url: other.url, serverKey: KEY, ...options })
    onTestFinished(() => target.close?.())
    const stored = await target.put(objectOf('a.txt', Buffer.from('text')), never())
    expect(stored.url).toContain(`/files/${folder}/`)
    expect((await download(stored.url)).toString()).toBe('text')
    expect(other.rawLog()).not.toContain(KEY.replaceAll(' ', '+'))
  })

  it('is told why a file was not taken', async () => {
    const { url } = await startOther()
    const target = await openHost(piclist, { url, serverKey: KEY, picbed: 's4' })
    onTestFinished(() => target.close?.())
    const put = target.put(objectOf('a.txt', Buffer.from('text')), never())
    await expect(put).rejects.toMatchObject({ code: 'destination_failed', retryable: false })
    await expect(put).rejects.toThrow(/returned 400: .*"s4"/)
  })

  it('forwards an upload from server to server, byte for byte', async () => {
    const other = await startOther()
    const app = await startApp({
      config: { providers: { piclist: { next: { url: other.url, serverKey: KEY } } } },
    })
    const bytes = Buffer.from(Uint8Array.from({ length: 3_000_000 }, (_, i) => i % 251))
    const answer = await upload(`${app.url}/upload`, { 'picture.png': bytes })
    expect(answer).toMatchObject({ status: 200, success: true })
    expect(answer.result[0]).toMatch(new RegExp(`^${other.url}/files/served/`))
    expect((await download(answer.result[0] ?? '')).equals(bytes)).toBe(true)
  })
})

describe('piclist options of PicList', () => {
  it.each([
    [
      'with a key, which goes into the address there',
      { host: '10.0.0.5', port: 36677, picbed: 'smms', configName: 'Default', serverKey: 'abc' },
      {
        url: 'http://10.0.0.5:36677',
        picbed: 'smms',
        configName: 'Default',
        serverKey: 'abc',
        keyInQuery: true,
        keyTemplate: '{filename}{extname}',
      },
      [expect.stringContaining('"keyInQuery"')],
    ],
    [
      'without anything',
      { host: '', port: '', picbed: '', configName: '', serverKey: '' },
      { url: 'http://127.0.0.1:36677', keyTemplate: '{filename}{extname}' },
      [],
    ],
  ])('%s', (_, old, options, notes) => {
    expect(fromPicGo(piclist, old)).toEqual({ options, notes })
  })
})
