import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { expectFailure, expectStored } from '../helpers/expect-answer.ts'
import { makePictures } from '../helpers/picture.ts'
import { sendRaw, sendUpload } from '../helpers/raw-request.ts'
import { startApp, type TestApp } from '../helpers/start-app.ts'
import { serve } from '../uploader/sources/servers.ts'

/** fetch from a file page of an Electron program. */
const WINDOW = [
  'Connection: keep-alive',
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Typora/1.9.5 Chrome/118.0.5993.159 Electron/27.3.11 Safari/537.36',
  'Origin: null',
  'Accept: */*',
  'Sec-Fetch-Site: cross-site',
  'Sec-Fetch-Mode: cors',
  'Sec-Fetch-Dest: empty',
  'Accept-Encoding: gzip, deflate, br',
]
/** CFNetwork, the stack of the version for macOS. */
const MAC = [
  'Content-Type: application/json',
  'Accept: */*',
  'User-Agent: Typora/7090 CFNetwork/1490.0.4 Darwin/23.2.0',
  'Accept-Language: zh-CN,zh-Hans;q=0.9',
  'Accept-Encoding: gzip, deflate',
  'Connection: keep-alive',
]

/** The two icons of its "Test uploader" button. */
async function writeIcons(app: TestApp): Promise<{ files: Buffer[]; paths: string[] }> {
  const files = makePictures(2)
  const paths = ['typora-icon.png', 'typora-icon2.png'].map(name => join(app.directory, name))
  await Promise.all(paths.map((path, index) => writeFile(path, files[index]!)))
  return { files, paths }
}

/** JSON as Apple's serialisation writes it. */
const escapeSolidus = (json: string): string => json.replaceAll('/', '\\/')

describe('Typora on Windows and Linux', () => {
  it.each(['application/json', 'text/plain;charset=UTF-8'])('validates with two icons, as %s', async type => {
    const app = await startApp()
    const { files, paths } = await writeIcons(app)
    const headers = [`Content-Type: ${type}`, ...WINDOW]
    const answer = await sendUpload(app.url, { headers, body: JSON.stringify({ list: paths }) })
    await expectStored(answer, files)
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
  })

  it('is let through its preflight, which Chromium sends with "Origin: null"', async () => {
    const app = await startApp()
    const answer = await sendRaw(app.url, {
      line: 'OPTIONS /upload HTTP/1.1',
      headers: [
        'Access-Control-Request-Method: POST',
        'Access-Control-Request-Headers: content-type',
        ...WINDOW,
      ],
    })
    expect(answer.status).toBe(204)
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    expect(answer.headers.get('access-control-allow-headers')).toContain('content-type')
    expect(answer.headers.get('access-control-allow-methods')).toContain('POST')
  })

  it('validates again with other icons under the same names', async () => {
    const app = await startApp()
    for (let round = 0; round < 2; round++) {
      const { files, paths } = await writeIcons(app)
      const body = JSON.stringify({ list: paths })
      await expectStored(await sendUpload(app.url, { headers: WINDOW, body }), files)
    }
  })

  it('uploads a picture from the web again', async () => {
    const app = await startApp()
    const files = makePictures(1)
    const web = await serve((_req, res) => res.end(files[0]))
    const body = JSON.stringify({ list: [`${web.origin}/a.png?token=x%20y&z=1`] })
    await expectStored(await sendUpload(app.url, { headers: WINDOW, body }), files)
  })

  it('prints the answer as it is, so that names the file at fault', async () => {
    const app = await startApp()
    const { paths } = await writeIcons(app)
    const body = JSON.stringify({ list: [paths[0], '/gone/missing 图.png'] })
    const answer = await sendUpload(app.url, { headers: WINDOW, body })
    expectFailure(answer, 422, 'source_failed')
    expect(answer.message).toContain('/gone/missing 图.png')
    expect(answer.result).toHaveLength(1)
  })

  it('attack: a sandboxed frame of a web page sends the same with the agent of a browser', async () => {
    const app = await startApp()
    const { paths } = await writeIcons(app)
    const headers = WINDOW.map(line => line.replace(/ Electron\/\S+/, '').replace(/ Typora\/\S+/, ''))
    const answer = await sendUpload(app.url, { headers, body: JSON.stringify({ list: paths }) })
    expectFailure(answer, 401, 'unauthorized')
  })
})

describe('Typora on macOS', () => {
  it('escapes every solidus of its JSON', async () => {
    const app = await startApp()
    const { files, paths } = await writeIcons(app)
    const body = escapeSolidus(JSON.stringify({ list: paths }))
    expect(body).toContain('\\/')
    const answer = await sendUpload(app.url, { headers: MAC, body })
    await expectStored(answer, files)
    expect(answer.items.map(item => item.origin)).toEqual(paths)
  })

  it('sends the same upload twice at once: both get the links', async () => {
    const app = await startApp()
    const { files, paths } = await writeIcons(app)
    const request = { headers: MAC, body: escapeSolidus(JSON.stringify({ list: paths })) }
    const answers = await Promise.all([sendUpload(app.url, request), sendUpload(app.url, request)])
    for (const answer of answers) await expectStored(answer, files)
  })

  it('may write every other character than ASCII as an escape', async () => {
    const app = await startApp()
    const file = makePictures(1)
    const path = join(app.directory, '图片 😀.png')
    await writeFile(path, file[0]!)
    const escaped = JSON.stringify({ list: [path] }).replace(
      /[^ -~]/g,
      unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
    )
    const body = `\ufeff${escapeSolidus(escaped)}`
    const answer = await sendUpload(app.url, { headers: MAC, body })
    await expectStored(answer, file)
    expect(answer.items[0]?.origin).toBe(path)
  })
})
