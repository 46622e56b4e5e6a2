import { describe, expect, it } from 'vitest'
import { piclist } from '../../src/providers/piclist.ts'
import { download, upload } from '../helpers/form.ts'
import { play } from '../helpers/player.ts'
import { startApp } from '../helpers/start-app.ts'
import { open, put } from '../helpers/target.ts'

const KEY = 'the key of the other server'

it.each(['', '/', '/upload', '/upload/'])(
  'piclist at a URL that ends with "%s" posts to /upload',
  async end => {
    const { url, lines } = await play({
      status: 200,
      body: { success: true, result: ['https://x.example/1'] },
    })
    await put(await open(piclist, { url: url + end, serverKey: KEY }), 'a.png')
    expect(lines()).toEqual(['POST /upload'])
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
    const stored = await put(
      await open(piclist, { url: other.url, serverKey: KEY, ...options }),
      'a.txt',
      'text',
    )
    expect(stored.url).toContain(`/files/${folder}/`)
    expect((await download(stored.url)).toString()).toBe('text')
    expect(other.rawLog()).not.toContain(KEY.replaceAll(' ', '+'))
  })

  it('is told why a file was not taken', async () => {
    const { url } = await startOther()
    const putting = put(await open(piclist, { url, serverKey: KEY, picbed: 's4' }), 'a.txt')
    await expect(putting).rejects.toMatchObject({ code: 'destination_failed', retryable: false })
    await expect(putting).rejects.toThrow(/returned 400: .*"s4"/)
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
