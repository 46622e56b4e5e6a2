import { describe, expect, it } from 'vitest'
import { expectFailure, expectLinks, expectStored } from '../helpers/expect-answer.ts'
import { makePicture, makePictures } from '../helpers/picture.ts'
import { formBody, sendRaw, sendUpload } from '../helpers/raw-request.ts'
import { startApp } from '../helpers/start-app.ts'
import { serve } from '../uploader/sources/servers.ts'

const JSON_TYPE = 'Content-Type: application/json'
const EXTENSION = 'chrome-extension://dhdgffkkebhmkfjojejmpbldmpobfkfo'
const BOUNDARY = '----WebKitFormBoundaryePkpFF7tjBAqx29L'
const FORM_TYPE = `Content-Type: multipart/form-data; boundary=${BOUNDARY}`

/** What Chromium adds to fetch and XMLHttpRequest. */
const from = (origin: string): string[] => [
  'Connection: keep-alive',
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36',
  `Origin: ${origin}`,
  'Accept: */*',
  'Sec-Fetch-Site: cross-site',
  'Sec-Fetch-Mode: cors',
  'Sec-Fetch-Dest: empty',
]

const filePart = (field: string, name: string): string =>
  `Content-Disposition: form-data; name="${field}"; filename="${name}"\nContent-Type: image/png`

describe('userscripts', () => {
  it('"… to Notion" sends all pictures of a chat at once under one name', async () => {
    const app = await startApp()
    const alive = await sendRaw(app.url, { line: 'GET /heartbeat HTTP/1.1', headers: from(EXTENSION) })
    expect(alive.status).toBe(200)
    const files = makePictures(30, 50_000)
    const answers = await Promise.all(
      files.map((file, index) => {
        const boundary = `----GMFormBoundary171800${index}`
        const headers = [`Content-Type: multipart/form-data; boundary=${boundary}`, ...from(EXTENSION)]
        const body = formBody(boundary, [[filePart('file', 'image.png'), file]])
        return sendUpload(app.url, { headers, body })
      }),
    )
    for (const [index, answer] of answers.entries()) await expectStored(answer, [files[index]!])
    expect(new Set(answers.map(answer => answer.result[0])).size).toBe(files.length)
    expect(await app.files(), 'nothing temporary stays').toHaveLength(files.length)
  })

  it('NodeSeek sends the picture under a name nobody reads, which is refused instead of uploading the clipboard', async () => {
    const app = await startApp()
    const body = JSON.stringify({ image: makePicture(100_000).toString('base64') })
    const headers = [JSON_TYPE, ...from(EXTENSION)]
    expectFailure(await sendUpload(app.url, { headers, body }), 400, 'invalid_request')
  })
})

describe('a Chrome extension', () => {
  it('sends one picture under two fields and its name as text', async () => {
    const app = await startApp()
    const file = makePicture()
    const body = formBody(BOUNDARY, [
      [filePart('file', 'blob'), file],
      [filePart('files[]', 'blob'), file],
      ['Content-Disposition: form-data; name="filename"', 'photo.png'],
    ])
    const headers = [FORM_TYPE, 'Authorization: Bearer left-over', ...from(EXTENSION)]
    const answer = await sendUpload(app.url, { headers, body })
    await expectStored(answer, [file, file])
    expect(answer.items.map(item => item.origin)).toEqual(['blob', 'blob'])
    expect(answer.items[0]?.fileName).toMatch(/^blob.*\.png$/)
  })

  it('passes the preflight for its key', async () => {
    const app = await startApp()
    const answer = await sendRaw(app.url, {
      line: 'OPTIONS /upload HTTP/1.1',
      headers: [
        ...from(EXTENSION),
        'Access-Control-Request-Method: POST',
        'Access-Control-Request-Headers: authorization,content-type',
      ],
    })
    expect(answer.status).toBe(204)
    expect(answer.headers.get('access-control-allow-headers')).toBe('authorization, content-type')
  })

  it.each(['base64', 'img', 'images', 'files', 'data'])(
    'guesses {"%s": …} before it sends a form, and takes no address of the failure for the picture',
    async member => {
      const app = await startApp()
      const headers = [JSON_TYPE, ...from(EXTENSION)]
      const body = JSON.stringify({ [member]: 'iVBORw0KGgo=' })
      const answer = await sendUpload(app.url, { headers, body })
      expectFailure(answer, 400, 'invalid_request')
      expect(JSON.stringify(answer)).not.toMatch(/http/i)
    },
  )

  it('finds no address in the answer to one it named itself', async () => {
    const app = await startApp()
    const web = await serve((_req, res) => res.writeHead(404).end())
    const body = JSON.stringify({ list: [`${web.origin}/gone.png`] })
    const answer = await sendUpload(app.url, { headers: [JSON_TYPE, ...from(EXTENSION)], body })
    expectFailure(answer, 422, 'source_failed')
    expect(answer.errors[0]?.origin).toBe(`${web.origin}/gone.png`)
  })
})

describe('a WeChat article exporter', () => {
  /** Holds every answer back until the next picture is asked for, so that they come in another order. */
  async function startPictures(files: readonly (Buffer | undefined)[]) {
    let release: (() => void) | undefined
    let count = 0
    const web = await serve((req, res) => {
      release?.()
      const file = files[Number(new URL(req.url ?? '', 'http://localhost').searchParams.get('n'))]
      release = () => res.writeHead(file ? 200 : 404).end(file)
      count++
      if (count === files.length) release()
    })
    const list = files.map((_, index) => `${web.origin}/mmbiz_png/x/640?wx_fmt=png&n=${index}`)
    return { list, request: { headers: [JSON_TYPE, ...from(EXTENSION)], body: JSON.stringify({ list }) } }
  }

  it('maps 20 addresses by index', async () => {
    const app = await startApp()
    const files = makePictures(20)
    const { request } = await startPictures(files)
    const answer = await sendUpload(app.url, request)
    await expectStored(answer, files)
    expect(answer.items.every(item => item.fileName.endsWith('.png'))).toBe(true)
  })

  it('can tell which of 20 failed: nothing shifts', async () => {
    const app = await startApp()
    const missing = [3, 11, 19]
    const files = makePictures(20).map((file, index) => (missing.includes(index) ? undefined : file))
    const { list, request } = await startPictures(files)
    const answer = await sendUpload(app.url, request)
    expectFailure(answer, 422, 'source_failed')
    expect(answer.errors.map(error => error.index)).toEqual(missing)
    expect(answer.errors.map(error => error.origin)).toEqual(missing.map(index => list[index]))
    const stored = list.map((_, index) => index).filter(index => !missing.includes(index))
    expect(answer.items.map(item => item.index)).toEqual(stored)
    expect(answer.items.map(item => item.origin)).toEqual(stored.map(index => list[index]))
    expect(answer.result).toEqual(answer.items.map(item => item.imgUrl))
    await expectLinks(
      answer.result,
      files.filter(file => file !== undefined),
    )
  })
})

describe('web Markdown editors', () => {
  it.each(['http://localhost:8080', 'http://127.0.0.1:5500', 'http://[::1]:3000', 'https://localhost'])(
    'on this machine, at %s, send a form or JSON as text',
    async origin => {
      const app = await startApp()
      const file = makePicture()
      const body = formBody(BOUNDARY, [[filePart('list', 'image.png'), file]])
      const answer = await sendUpload(app.url, { headers: [FORM_TYPE, ...from(origin)], body })
      await expectStored(answer, [file])
      expect(answer.headers.get('access-control-allow-origin')).toBe('*')
      const text = [`Content-Type: text/plain;charset=UTF-8`, ...from(origin)]
      const list = [`data:image/png;base64,${file.toString('base64')}`]
      await expectStored(await sendUpload(app.url, { headers: text, body: JSON.stringify({ list }) }), [file])
    },
  )

  it('on the web are refused readably, and pass once their origin is allowed', async () => {
    const headers = [FORM_TYPE, ...from('https://md.example')]
    const file = makePicture()
    const body = formBody(BOUNDARY, [[filePart('list', 'image.png'), file]])
    const refused = await sendUpload((await startApp()).url, { headers, body })
    expectFailure(refused, 401, 'unauthorized')
    expect(refused.message).toContain('auth.allowedOrigins')
    const trusting = await startApp({ config: { auth: { allowedOrigins: ['https://md.example'] } } })
    await expectStored(await sendUpload(trusting.url, { headers, body }), [file])
  })
})
