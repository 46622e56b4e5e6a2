import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { expectFailure, expectNoClipboard, expectStored } from '../helpers/expect-answer.ts'
import { makePicture, makePictures } from '../helpers/picture.ts'
import { formBody, sendRaw, sendUpload } from '../helpers/raw-request.ts'
import { startApp } from '../helpers/start-app.ts'
import { serve } from '../uploader/sources/servers.ts'

const AGENT =
  'User-Agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) obsidian/1.8.9 Chrome/132.0.6834.210 Electron/34.3.0 Safari/537.36'
/** Obsidian's requestUrl: sent by the main process, so without an origin. */
const REQUEST_URL = [
  'Connection: keep-alive',
  AGENT,
  'Accept-Encoding: gzip, deflate, br, zstd',
  'Accept-Language: zh-CN',
  'Sec-Fetch-Site: none',
  'Sec-Fetch-Mode: no-cors',
  'Sec-Fetch-Dest: empty',
]
/** fetch in the window of the program. */
const WINDOW = [
  'Connection: keep-alive',
  AGENT,
  'Origin: app://obsidian.md',
  'Accept: */*',
  'Sec-Fetch-Site: cross-site',
  'Sec-Fetch-Mode: cors',
  'Sec-Fetch-Dest: empty',
]
const JSON_TYPE = 'Content-Type: application/json'
const BOUNDARY = '----Boundaryk3JfX9aQ2mZt7RpL'
const MULTIPART = `Content-Type: multipart/form-data; boundary=${BOUNDARY}`

/** A part as the "remote" mode writes it, quotes not escaped, the type always the same. */
const remotePart = (name: string): string =>
  `Content-Disposition: form-data; name="list"; filename="${name}"\nContent-Type: application/octet-stream`

const browserPart = (name: string): string =>
  `Content-Disposition: form-data; name="list"; filename="${name}"\nContent-Type: image/png`

describe('Obsidian, Image auto upload, local mode', () => {
  it('gets as many links as the note has pictures, in their order', async () => {
    const app = await startApp()
    const names = ['图片 1.png', 'Pasted image 20240101.png', '100%41.png', `quote"'.png`, '😀#?&.png', 'x']
    const files = makePictures(names.length)
    const paths = names.map(name => join(app.directory, name))
    await Promise.all(paths.map((path, index) => writeFile(path, files[index]!)))
    const answer = await sendUpload(app.url, {
      headers: [JSON_TYPE, ...REQUEST_URL],
      body: JSON.stringify({ list: paths }),
    })
    await expectStored(answer, files)
    expect(answer.items.map(item => item.origin)).toEqual(paths)
  })

  it('uploads network pictures of a note beside its files', async () => {
    const app = await startApp()
    const [local, remote] = makePictures(2)
    const web = await serve((_req, res) => res.end(remote))
    const path = join(app.directory, 'a.png')
    await writeFile(path, local!)
    const body = JSON.stringify({ list: [`${web.origin}/p/x.png?w=1&sig=%2F=#frag`, path] })
    const answer = await sendUpload(app.url, { headers: [JSON_TYPE, ...REQUEST_URL], body })
    await expectStored(answer, [remote!, local!])
  })

  it('is shown the message where the server answers failures with 200, since it hides that of a 4xx', async () => {
    const app = await startApp({ config: { compat: { alwaysOk: true } } })
    const body = JSON.stringify({ list: ['/nowhere/gone.png'] })
    const answer = await sendUpload(app.url, { headers: [JSON_TYPE, ...REQUEST_URL], body })
    expectFailure(answer, 200, 'source_failed')
    expect(answer.msg).toContain('/nowhere/gone.png')
    expect(answer).not.toHaveProperty('result')
  })

  describe('drops the first slash of paths ("Upload all images" on Linux and macOS, from f9a9cbf on)', () => {
    const HINT = /the program may have dropped the first "\/"\.$/
    /** Sends the path of a picture without its first slash, beside others that are wrong in other ways. */
    async function sendCut(config: Record<string, unknown>, query = '') {
      const app = await startApp({ config })
      const path = join(app.directory, '图片.png')
      await writeFile(path, makePicture())
      const send = (...list: string[]) =>
        sendUpload(app.url, {
          line: `POST /upload${query} HTTP/1.1`,
          headers: [JSON_TYPE, ...REQUEST_URL],
          body: JSON.stringify({ list }),
        })
      return { path, send }
    }

    it('and is told so where that file exists, and not where it does not', async () => {
      const { path, send } = await sendCut({})
      const answer = await send('', path.slice(1), path)
      expectFailure(answer, 400, 'invalid_request')
      expect(answer.message).toMatch(HINT)
      expect(answer.message).toContain(`"${path.slice(0, 77)}`)
      for (const wrong of [`${path.slice(1)}.gone`, 'etc', '~/a.png', 'proc/self/environ', 'a\0b'])
        expect((await send(wrong)).message).not.toMatch(HINT)
    })

    it.each([
      ['who may name no paths', { sources: { path: { enabled: false } } }, ''],
      [
        'from elsewhere, even with a key',
        { server: { key: 'k1' }, auth: { loopbackExempt: false }, sources: { path: { roots: ['/'] } } },
        '?key=k1',
      ],
    ])('attack: whether it exists is not told to a caller %s', async (_who, config, query) => {
      const { path, send } = await sendCut(config, query)
      const there = await send(path.slice(1))
      const gone = await send(`${path.slice(1, -4)}.gif`)
      expectFailure(there, 400, 'invalid_request')
      expect(there.message.replace('.png', '.gif')).toBe(gone.message)
    })
  })

  it.each([
    ['without a length', {}],
    ['with a length of 0', { body: '' }],
  ])('gets an answer at once for the clipboard of a machine that has none, %s', async (_how, body) => {
    const app = await startApp()
    await expectNoClipboard(sendUpload(app.url, { headers: REQUEST_URL, ...body }))
  })

  it('is not offered deletion, and told so when it tries', async () => {
    const app = await startApp()
    const body = JSON.stringify({ list: [{ imgUrl: 'https://a.example/b.png', id: '1' }] })
    const answer = await sendRaw(app.url, {
      line: 'POST /delete HTTP/1.1',
      headers: [JSON_TYPE, ...REQUEST_URL],
      body,
    })
    expect(answer.status).toBe(404)
    expect(JSON.parse(answer.body.toString())).toMatchObject({ success: false, code: 'not_found' })
  })
})

describe('Obsidian, Image auto upload, remote mode', () => {
  it('keeps pasted pictures apart that all have the name of the current millisecond', async () => {
    const app = await startApp()
    const files = makePictures(5)
    const answer = await sendUpload(app.url, {
      headers: [MULTIPART, ...REQUEST_URL],
      body: formBody(
        BOUNDARY,
        files.map(file => [remotePart('1718000000123.png'), file]),
      ),
    })
    await expectStored(answer, files)
    expect(new Set(answer.result).size).toBe(files.length)
    expect(answer.items.map(item => item.contentType)).toEqual(files.map(() => 'image/png'))
  })

  it.each([
    ['C:\\Users\\小明\\My Pictures\\截图 (1).png', '截图 (1).png'],
    ['/home/me/notes/a/photo.png', 'photo.png'],
    ['/home/me/my "best" photo.png', 'my "best" photo.png'],
    ['\\\\nas\\share\\x.png', 'x.png'],
  ])('takes the last component of a dropped file, %s', async (path, name) => {
    const app = await startApp()
    const file = makePicture()
    const answer = await sendUpload(app.url, {
      headers: [MULTIPART, ...REQUEST_URL],
      body: formBody(BOUNDARY, [[remotePart(path), file]]),
    })
    await expectStored(answer, [file])
    expect(answer.items[0]?.origin).toBe(name)
    expect(answer.items[0]?.fileName).not.toMatch(/Users|home|nas/)
  })

  it('works from a phone, with the key in the address', async () => {
    const app = await startApp({
      config: { server: { key: 'phone-key' }, auth: { loopbackExempt: false } },
    })
    const file = makePicture()
    const body = formBody(BOUNDARY, [[remotePart('1718000000123.png'), file]])
    const answer = await sendUpload(app.url, {
      line: 'POST /upload?key=phone-key HTTP/1.1',
      headers: [MULTIPART, 'User-Agent: okhttp/4.12.0'],
      body,
    })
    await expectStored(answer, [file])
  })

  it.each([
    ['up to 4.0', '/home/me/vault/图片.png'],
    ['"Export with image upload"', '图片.png'],
  ])('%s reads the answer across origins, a failure as well', async (_version, name) => {
    const app = await startApp()
    const file = makePicture()
    const boundary = '----WebKitFormBoundary7MA4YWxkTrZu0gW'
    const headers = [`Content-Type: multipart/form-data; boundary=${boundary}`, ...WINDOW]
    const answer = await sendUpload(app.url, {
      headers,
      body: formBody(boundary, [[browserPart(name), file]]),
    })
    await expectStored(answer, [file])
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    expectFailure(await sendUpload(app.url, { headers, body: formBody(boundary, []) }), 400, 'no_file')
  })
})

describe('other plugins of Obsidian', () => {
  it('zpic: GET /health first, a form with the true type, and status 200 with "msg" for what failed', async () => {
    const app = await startApp({ config: { compat: { alwaysOk: true } } })
    for (const target of ['/health', '/health/', '/health?t=1', '//health']) {
      const health = await sendRaw(app.url, { line: `GET ${target} HTTP/1.1`, headers: REQUEST_URL })
      expect(health.status).toBe(200)
      expect(JSON.parse(health.body.toString())).toEqual({ success: true, status: 'ok' })
    }
    const files = makePictures(2)
    const headers = [MULTIPART, ...REQUEST_URL]
    const parts = files.map((file, index) => [browserPart(`一_二 ${index}.png`), file] as const)
    await expectStored(await sendUpload(app.url, { headers, body: formBody(BOUNDARY, parts) }), files)

    const body = JSON.stringify({ list: ['relative.png'] })
    const failed = await sendUpload(app.url, { headers: [JSON_TYPE, ...REQUEST_URL], body })
    expect(failed).toMatchObject({ status: 200, success: false, code: 'invalid_request' })
    expect(failed.msg).toContain('relative.png')
  })

  it('a probe: GET and POST /heartbeat, POST /upload, GET /', async () => {
    const app = await startApp()
    const alive = JSON.stringify({ success: true, result: 'alive' })
    for (const line of ['GET /heartbeat HTTP/1.1', 'POST /heartbeat HTTP/1.1']) {
      const answer = await sendRaw(app.url, { line, headers: REQUEST_URL })
      expect([answer.status, answer.body.toString()]).toEqual([200, alive])
    }
    await expectNoClipboard(
      sendUpload(app.url, { headers: [JSON_TYPE, ...REQUEST_URL], body: '{"list":[]}' }),
    )
    const page = await sendRaw(app.url, { line: 'GET / HTTP/1.1', headers: REQUEST_URL })
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
  })

  it('a picture as data: address, the fallback that PicGo refuses', async () => {
    const app = await startApp()
    const file = makePicture()
    const entry = `data:image/png;base64,${file.toString('base64')}`
    const body = JSON.stringify({ list: [entry] })
    const answer = await sendUpload(app.url, { headers: [JSON_TYPE, ...REQUEST_URL], body })
    await expectStored(answer, [file])
    expect(answer.items[0]).toMatchObject({ origin: entry, contentType: 'image/png' })
  })
})
