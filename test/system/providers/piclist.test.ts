import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { loadConfig } from '../../../src/config/load.ts'
import { createLog } from '../../../src/log.ts'
import { createMask } from '../../../src/mask.ts'
import { piclist } from '../../../src/providers/piclist.ts'
import { startServer } from '../../../src/server/index.ts'
import { download, upload } from '../../helpers/form.ts'
import { fromPicGo } from '../../helpers/from-picgo.ts'
import { openHost, serveReply } from '../../helpers/http-exchange.ts'
import { makePicture } from '../../helpers/picture.ts'
import { objectOf } from '../../helpers/provider-contract.ts'
import { startApp } from '../../helpers/start-app.ts'
import { startPicGo } from '../../servers/picgo.ts'

const KEY = 'the key of the other server'
const never = () => new AbortController().signal

/** Another server of ours, which asks everybody for its key. */
async function startOther() {
  const directory = await mkdtemp(join(tmpdir(), 'upload-server-other-'))
  const file = join(directory, 'upload-server.json')
  const local = {
    served: { directory: join(directory, 'served'), serve: true },
    other: { directory: join(directory, 'other'), serve: true },
  }
  const config = {
    server: { port: 0, key: KEY },
    auth: { loopbackExempt: false, maxFailures: 1000 },
    default: 'local/served',
    providers: { local },
  }
  await writeFile(file, JSON.stringify(config))
  const env = { XDG_DATA_HOME: join(directory, 'data') }
  const loaded = await loadConfig({ env, platform: 'linux', cwd: directory, file })
  const mask = createMask(loaded.secrets)
  let log = ''
  const stream = {
    write: (line: string) => {
      log += line
    },
  }
  const server = await startServer(loaded, {
    logger: await createLog({ level: 'info', mask, stream }),
    mask,
    env,
  })
  return {
    url: server.url,
    port: Number(new URL(server.url).port),
    log: () => log,
    async close() {
      await server.stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

describe('piclist', () => {
  async function openOther(options: Record<string, unknown> = {}) {
    const other = await startOther()
    onTestFinished(other.close)
    const target = await openHost(piclist, { url: other.url, serverKey: KEY, ...options })
    onTestFinished(() => target.close?.())
    return { other, target }
  }

  it('names the destination to use there', async () => {
    const { target } = await openOther({ picbed: 'local', configName: 'other' })
    const { url } = await target.put(objectOf('a.txt', Buffer.from('text')), never())
    expect(url).toContain('/files/other/')
  })

  it.each([true, false])('sends the key as PicList wants it: %s', async keyInQuery => {
    const { target, other } = await openOther({ keyInQuery })
    const { url } = await target.put(objectOf('a.txt', Buffer.from('text')), never())
    expect((await download(url)).toString()).toBe('text')
    expect(other.log()).not.toContain(KEY.replaceAll(' ', '+'))
  })

  it('is told why a file was not taken', async () => {
    const { target } = await openOther({ picbed: 's4' })
    const put = target.put(objectOf('a.txt', Buffer.from('text')), never())
    await expect(put).rejects.toMatchObject({ code: 'destination_failed', retryable: false })
    await expect(put).rejects.toThrow(/returned 400: .*"s4"/)
  })

  it('forwards an upload from server to server, byte for byte', async () => {
    const other = await startOther()
    onTestFinished(other.close)
    const app = await startApp({
      config: { providers: { piclist: { next: { url: other.url, serverKey: KEY } } } },
    })
    const bytes = Buffer.from(Uint8Array.from({ length: 3_000_000 }, (_, i) => i % 251))
    const answer = await upload(`${app.url}/upload`, { 'picture.png': bytes })
    expect(answer).toMatchObject({ status: 200, success: true })
    expect(answer.result[0]).toMatch(new RegExp(`^${other.url}/files/served/`))
    expect((await download(answer.result[0] ?? '')).equals(bytes)).toBe(true)
    expect(app.rawLog()).not.toContain(KEY)
  })

  it('stores by PicGo itself, where it is told to', async context => {
    const saved = { nowhere: { _configName: 'Default' }, elsewhere: { _configName: 'Second' } }
    const url = await startPicGo(context, {
      picBed: { uploader: 'nowhere', ...saved },
      settings: { server: { secret: KEY } },
    })
    const put = async (options: object) => {
      const target = await openHost(piclist, { url, serverKey: KEY, ...options })
      onTestFinished(() => target.close?.())
      return target.put(objectOf('a b.png', makePicture()), never())
    }
    expect(await put({})).toEqual({ url: 'http://img.example/a%20b.png' })
    expect(await put({ picbed: 'elsewhere' })).toEqual({ url: 'http://other.example/a%20b.png' })
    const named = put({ picbed: 'elsewhere', configName: 'Second' })
    expect(await named).toEqual({ url: 'http://other.example/a%20b.png' })
    await expect(put({ picbed: 'none' })).rejects.toThrow(/returned 400: .*"none"/)
    await expect(put({ serverKey: 'a wrong key' })).rejects.toThrow('returned 401')
  })

  it.each([
    ['PicList', { success: true, result: ['https://img.example.com/a.png'] }],
    [
      'PicGo',
      {
        success: true,
        result: ['https://img.example.com/a.png'],
        items: [{ origin: 'a.png', imgUrl: 'https://img.example.com/a.png' }],
      },
    ],
    [
      'the desktop program PicList',
      { success: true, result: ['https://img.example.com/a.png'], fullResult: [{ imgUrl: '…' }] },
    ],
  ])('takes the answer of %s', async (_, body) => {
    const target = await openHost(piclist, { url: await serveReply(200, body) })
    onTestFinished(() => target.close?.())
    await expect(target.put(objectOf('a.png', Buffer.of(1)), never())).resolves.toEqual({
      url: 'https://img.example.com/a.png',
    })
  })

  it.each([
    [
      'PicList, which calls failed uploads a success',
      200,
      { success: true, result: [null] },
      'returned no URL: ',
    ],
    [
      'PicList without the right key',
      200,
      { success: false, message: 'Unauthorized access' },
      'Unauthorized',
    ],
    ['PicGo', 500, { success: false, result: [], items: [], message: 'All uploads failed' }, 'All uploads'],
    ['PicGo without its secret', 401, { success: false, message: 'Unauthorized' }, '401'],
    [
      'ours when the file is stored and the rest is not done',
      424,
      { success: false, stage: 'finalization', finalizationId: 'x', message: 'Remote upload completed.' },
      'Remote upload completed.',
    ],
  ])('fails with the words of %s', async (_, status, body, words) => {
    const target = await openHost(piclist, { url: await serveReply(status, body) })
    onTestFinished(() => target.close?.())
    const put = target.put(objectOf('a.png', Buffer.of(1)), never())
    await expect(put).rejects.toMatchObject({ code: 'destination_failed' })
    await expect(put).rejects.toThrow(words)
  })
})

it.each([
  ['https://img.example.com', '/upload'],
  ['https://img.example.com/', '/upload'],
  ['https://img.example.com/pic', '/pic/upload'],
  ['https://img.example.com/upload', '/upload'],
  ['https://img.example.com/upload/', '/upload'],
])('piclist at %s posts to %s', async (address, path) => {
  const urls: (string | undefined)[] = []
  const { createServer } = await import('node:http')
  const server = createServer((request, response) => {
    urls.push(request.url)
    request.resume().on('end', () => response.end('{"success":true,"result":["https://a.example/b"]}'))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as { port: number }
  const target = await openHost(piclist, {
    url: address.replace('https://img.example.com', `http://127.0.0.1:${port}`),
  })
  onTestFinished(() => target.close?.())
  await target.put(objectOf('a.png', Buffer.of(1)), never())
  expect(urls).toEqual([path])
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
