import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { expectFailure, expectLinks, expectNoClipboard, expectStored } from '../helpers/expect-answer.ts'
import { makePicture, makePictures } from '../helpers/picture.ts'
import { formBody, sendRaw, sendUpload } from '../helpers/raw-request.ts'
import { startApp, type TestApp } from '../helpers/start-app.ts'

const JSON_TYPE = 'Content-Type: application/json'
const AXIOS = ['Accept: application/json, text/plain, */*', JSON_TYPE, 'User-Agent: axios/1.13.2']
const BOUNDARY = '----WebKitFormBoundaryePkpFF7tjBAqx29L'
const BROWSER_FORM = `Content-Type: multipart/form-data; boundary=${BOUNDARY}`

/** What Chromium adds to fetch from a page of that origin. */
const page = (origin: string): string[] => [
  'Connection: keep-alive',
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36',
  `Origin: ${origin}`,
  'Accept: */*',
  'Sec-Fetch-Site: cross-site',
  'Sec-Fetch-Mode: cors',
  'Sec-Fetch-Dest: empty',
]

const browserPart = (field: string, name: string): string =>
  `Content-Disposition: form-data; name="${field}"; filename="${name}"\nContent-Type: image/png`

async function writePictures(app: TestApp, ...names: string[]) {
  const files = makePictures(names.length)
  const paths = names.map(name => join(app.directory, name))
  await Promise.all(paths.map((path, index) => writeFile(path, files[index]!)))
  return { files, paths, body: JSON.stringify({ list: paths }) }
}

const askForHeaders = (origin: string, names: string, extra: string[] = []) => ({
  line: 'OPTIONS /upload HTTP/1.1',
  headers: [
    ...page(origin),
    'Access-Control-Request-Method: POST',
    `Access-Control-Request-Headers: ${names}`,
    ...extra,
  ],
})

describe('SiYuan', () => {
  const ORIGIN = 'http://127.0.0.1:6806'

  it('passes its preflight, the user agent included', async () => {
    const app = await startApp()
    const answer = await sendRaw(app.url, askForHeaders(ORIGIN, 'content-type,user-agent'))
    expect(answer.status).toBe(204)
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    expect(answer.headers.get('access-control-allow-headers')).toBe('content-type, user-agent')
  })

  it('takes the names behind the last slashes of the links', async () => {
    const app = await startApp()
    const { files, body } = await writePictures(app, '思源 1.png', 'b.png', 'c.png')
    const headers = [JSON_TYPE, 'User-Agent: Terwer/PicGo', ...page(ORIGIN)]
    const answer = await sendUpload(app.url, { headers, body })
    await expectStored(answer, files)
    const names = answer.result.map(link => decodeURIComponent(link.slice(link.lastIndexOf('/') + 1)))
    expect(names).toEqual(answer.items.map(item => item.fileName))
  })

  it.each([
    ['without a length', {}],
    ['with a length of 0', { body: '' }],
  ])('names JSON as the type of no body at all for the clipboard, %s', async (_how, body) => {
    const app = await startApp()
    await expectNoClipboard(sendUpload(app.url, { headers: [JSON_TYPE, ...page(ORIGIN)], ...body }))
  })
})

describe('Logseq', () => {
  it.each(['lsp://logseq.io', 'lsp://logseq.com'])(
    'sends JSON as text from %s to localhost',
    async origin => {
      const app = await startApp()
      const { files, body } = await writePictures(app, 'image_1718.png')
      const host = `Host: localhost:${new URL(app.url).port}`
      const answer = await sendUpload(app.url, {
        headers: [host, 'Content-Type: text/plain;charset=UTF-8', ...page(origin)],
        body,
      })
      expect(answer.headers.get('access-control-allow-origin')).toBe('*')
      expect(answer.result[0]).toMatch(/^http:\/\/localhost:/)
      await expectLinks(
        answer.result.map(link => link.replace('localhost', '127.0.0.1')),
        files,
      )
    },
  )
})

describe('note programs that send the file itself to a server with a key', () => {
  it.each([
    ['SiYuan, in its mode for a remote PicList', '?status=200&key=k1'],
    ['Yank Note 3.90, as soon as the address holds "key="', '?key=k1'],
  ])('%s', async (_program, query) => {
    const app = await startApp({ config: { server: { key: 'k1' }, auth: { loopbackExempt: false } } })
    const file = makePicture()
    const head = browserPart('file', '图 1.png')
    const send = (line: string, parts: Parameters<typeof formBody>[1]) =>
      sendUpload(app.url, {
        line: `POST /upload${line} HTTP/1.1`,
        headers: [BROWSER_FORM, 'Sec-Fetch-Mode: cors'],
        body: formBody(BOUNDARY, parts),
      })
    await expectStored(await send(query, [[head, file]]), [file])
    expectFailure(await send(query, []), query.includes('status=200') ? 200 : 400, 'no_file')
  })
})

describe('note programs that send paths', () => {
  it('Yank Note deletes the file as soon as it has the answer', async () => {
    const app = await startApp()
    const { files, paths, body } = await writePictures(app, 'yn-tmp-1.png')
    const answer = await sendUpload(app.url, { headers: [JSON_TYPE], body })
    await rm(paths[0]!)
    await expectStored(answer, files)
  })

  it('Memocast sends JSON by axios and passes the body on', async () => {
    const app = await startApp()
    const { files, body } = await writePictures(app, 'a.png', 'b.png')
    await expectStored(await sendUpload(app.url, { headers: AXIOS, body }), files)
  })

  const WINUI = [
    'Content-Type: application/json; charset=utf-8',
    'Authorization: Bearer k1',
    'X-PicGo-Secret: k1',
    'traceparent: 00-3f2b0c1d6a5e4f708192a3b4c5d6e7f8-0102030405060708-00',
  ]

  it('a WinUI editor keeps "/upload/" as typed and counts the links', async () => {
    const app = await startApp()
    const { files, body } = await writePictures(app, '1.png', '2.png', '3.png')
    const request = { line: 'POST /upload/?key=k1&secret=k1 HTTP/1.1', headers: WINUI, body }
    await expectStored(await sendUpload(app.url, request), files)
  })

  it('a WinUI editor on another machine is told about every Windows path', async () => {
    const app = await startApp()
    const list = ['C:\\Users\\me\\图.png', 'D:/pics/b.png', '\\\\nas\\share\\c.png']
    const request = { line: 'POST /upload/ HTTP/1.1', headers: WINUI, body: JSON.stringify({ list }) }
    const answer = await sendUpload(app.url, request)
    expectFailure(answer, 422, 'source_failed')
    expect(answer.errors.map(error => error.origin)).toEqual(list)
  })
})

describe('note programs that send forms', () => {
  it('markra sends the secret four ways at once', async () => {
    const app = await startApp({ config: { server: { key: 'S3cret' }, auth: { loopbackExempt: false } } })
    const file = makePicture()
    const boundary = '5c1f0b7e2a9d4c38-1b2c3d4e5f607182-93a4b5c6d7e8f901-2a3b4c5d6e7f8091'
    const headers = [
      'authorization: Bearer S3cret',
      'x-picgo-secret: S3cret',
      `content-type: multipart/form-data; boundary=${boundary}`,
      'accept: */*',
    ]
    const line = 'POST /upload?secret=S3cret&key=S3cret HTTP/1.1'
    const body = formBody(boundary, [[browserPart('files', 'image.png'), file]])
    await expectStored(await sendUpload(app.url, { line, headers, body }), [file])
    const wrong = headers.map(header => header.replace('S3cret', 'other'))
    const refused = await sendUpload(app.url, { headers: wrong, body })
    expectFailure(refused, 401, 'unauthorized')
    expect(await app.files()).toHaveLength(1)
  })

  it.each([
    ['a web editor like Typora', 'files', 'image.png', 'http://localhost:5173'],
    ['a Markdown writer', 'list[]', '截图.png', 'http://127.0.0.1:8080'],
    ['a gallery', 'list', 'a%22b.png', 'http://localhost:3000'],
    ['a document importer', 'file', 'img-3.png', 'tauri://localhost'],
  ])('%s', async (_client, field, name, origin) => {
    const app = await startApp()
    const files = makePictures(2)
    const parts = files.map(file => [browserPart(field, name), file] as const)
    const answer = await sendUpload(app.url, {
      headers: [BROWSER_FORM, ...page(origin)],
      body: formBody(BOUNDARY, parts),
    })
    await expectStored(answer, files)
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
  })
})

describe('probes', () => {
  it('a web editor tests the connection across origins with a Bearer key: every header is named', async () => {
    const app = await startApp()
    const asked = askForHeaders('http://localhost:5173', 'authorization,content-type,x-picgo-secret')
    for (const line of ['OPTIONS /heartbeat HTTP/1.1', asked.line]) {
      const preflight = await sendRaw(app.url, { ...asked, line })
      expect(preflight.status).toBe(204)
      const allowed = preflight.headers.get('access-control-allow-headers')
      expect(allowed).toBe('authorization, content-type, x-picgo-secret')
    }
    const answer = await sendRaw(app.url, {
      line: 'POST /heartbeat HTTP/1.1',
      headers: [...page('http://localhost:5173'), 'Authorization: Bearer wrong', 'Content-Length: 0'],
    })
    expect(answer.body.toString()).toBe('{"success":true,"result":"alive"}')
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
  })

  it('a gallery asks with "{}" and waits two seconds', async () => {
    const app = await startApp()
    const headers = [JSON_TYPE, ...page('http://localhost:3000')]
    await expectNoClipboard(sendUpload(app.url, { headers, body: '{}' }))
  })

  it.each(['tauri://localhost', 'http://tauri.localhost', 'https://tauri.localhost'])(
    'a Tauri editor at %s posts nothing for the clipboard',
    async origin => {
      const app = await startApp()
      await expectNoClipboard(sendUpload(app.url, { headers: page(origin), body: '' }))
    },
  )

  it('a helper page takes any answer to OPTIONS for "it runs"; one that is trusted may ask for this machine', async () => {
    const app = await startApp({ config: { auth: { allowedOrigins: ['https://helper.example'] } } })
    const extra = ['Access-Control-Request-Private-Network: true']
    const answer = await sendRaw(app.url, askForHeaders('https://helper.example', 'content-type', extra))
    expect(answer.status).toBe(204)
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    expect(answer.headers.get('access-control-allow-private-network')).toBe('true')
  })
})
