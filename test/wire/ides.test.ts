import { writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { expectFailure, expectLinks, expectNoClipboard, expectStored } from '../helpers/expect-answer.ts'
import type { Answer } from '../helpers/form.ts'
import { makePicture, makePictures } from '../helpers/picture.ts'
import { formBody, sendRaw, sendUpload } from '../helpers/raw-request.ts'
import { startApp } from '../helpers/start-app.ts'

const AXIOS = [
  'Accept: application/json, text/plain, */*',
  'User-Agent: axios/1.13.2',
  'Accept-Encoding: gzip, compress, deflate, br',
  'Connection: keep-alive',
]
const JSON_TYPE = 'Content-Type: application/json'
const KEY_NEEDED = { server: { key: 'k1' }, auth: { loopbackExempt: false } }

/** A part of the form-data package, which escapes nothing. */
const formDataPart = (name: string): string =>
  `Content-Disposition: form-data; name="file"; filename="${name}"\nContent-Type: image/png`
const FORM_DATA_BOUNDARY = '--------------------------418623908437592180467321'
const FORM_DATA = [`Content-Type: multipart/form-data; boundary=${FORM_DATA_BOUNDARY}`, ...AXIOS]

async function writePictures(directory: string, ...names: string[]) {
  const files = makePictures(names.length)
  const paths = names.map(name => join(directory, name))
  await Promise.all(paths.map((path, index) => writeFile(path, files[index]!)))
  return { files, paths, body: JSON.stringify({ list: paths }) }
}

describe('vs-PicList', () => {
  it('sends paths, or an empty list for the clipboard', async () => {
    const app = await startApp()
    const { files, body } = await writePictures(app.directory, '一.png', '2 2.png')
    const headers = [JSON_TYPE, ...AXIOS]
    await expectStored(await sendUpload(app.url, { headers, body }), files)
    await expectNoClipboard(sendUpload(app.url, { headers, body: '{"list":[]}' }))
  })

  it('sends names with their quotes as they are, and no file is lost', async () => {
    const app = await startApp()
    const names = ['a"b.png', '"quoted".png', '图 "1".png', 'plain.png', 'end".png']
    const files = makePictures(names.length)
    const parts = files.map((file, index) => [formDataPart(names[index]!), file] as const)
    const body = formBody(FORM_DATA_BOUNDARY, parts)
    const answer = await sendUpload(app.url, { headers: FORM_DATA, body })
    await expectStored(answer, files)
    expect(answer.items.map(item => item.origin)).toEqual(names)
  })
})

describe('a PicList that uploads to this server', () => {
  it.each([
    '?configName=Default&picbed=&key=k1',
    '?configName=&picbed=&key=k1',
    '?configName=Default&key=k1',
    '?configName=Default&picbed=local&key=k1',
    '?configName=my%20blog&picbed=local&key=k1',
    '?configName=my+blog&picbed=local&key=k1',
    '?configName=my%20blog&key=k1',
    '?key=k1&picbed=local&configName=%E6%88%91%E7%9A%84',
  ])('finds its destination with %s', async query => {
    const directory = await makeDirectory()
    const names = ['main', 'my blog', '我的']
    const local = Object.fromEntries(
      names.map(name => [name, { directory: join(directory, name), serve: true }]),
    )
    const app = await startApp({
      directory,
      config: { ...KEY_NEEDED, default: 'local/main', providers: { local } },
    })
    const file = makePicture()
    const body = formBody(FORM_DATA_BOUNDARY, [[formDataPart('截图.png'), file]])
    const line = `POST /upload${query} HTTP/1.1`
    const answer = await sendUpload(app.url, { line, headers: FORM_DATA, body })
    await expectStored(answer, [file])
    const wanted = query.includes('my') ? 'my blog' : query.includes('%E6') ? '我的' : 'main'
    expect(decodeURIComponent(answer.result[0]!)).toContain(`/files/${wanted}/`)
  })

  it('sends a key with a plus sign as it is', async () => {
    const key = 'ab+cd/ef=='
    const app = await startApp({ config: { server: { key }, auth: { loopbackExempt: false } } })
    const file = makePicture()
    const body = formBody(FORM_DATA_BOUNDARY, [[formDataPart('a.png'), file]])
    const line = `POST /upload?configName=&picbed=&key=${key} HTTP/1.1`
    await expectStored(await sendUpload(app.url, { line, headers: FORM_DATA, body }), [file])
  })

  it('checks first whether an instance is there', async () => {
    const app = await startApp()
    const answer = await sendRaw(app.url, {
      line: 'POST /heartbeat HTTP/1.1',
      headers: [...AXIOS, 'Content-Type: application/x-www-form-urlencoded', 'Content-Length: 0'],
    })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
    expect(JSON.parse(answer.body.toString())).toStrictEqual({ success: true, result: 'alive' })
  })
})

describe('dsh-plugin', () => {
  it('tells files apart by the origin of their items, failed ones by that of the errors', async () => {
    const app = await startApp()
    const { files, paths } = await writePictures(app.directory, 'a.png', 'ü b.png', 'c.png')
    const list = [paths[0], '/gone/b.png', paths[1], paths[2]]
    const headers = [JSON_TYPE, 'Authorization: Bearer left-over']
    const answer = await sendUpload(app.url, { headers, body: JSON.stringify({ list }) })
    expectFailure(answer, 422, 'source_failed')
    expect(answer.items.map(item => [item.origin, item.contentType])).toEqual(
      paths.map(path => [path, 'image/png']),
    )
    expect(answer.errors.map(error => error.origin)).toEqual(['/gone/b.png'])
    await expectLinks(
      answer.items.map(item => item.imgUrl),
      files,
    )
  })

  it('words a missing key itself, by the status, and never sends one with the heartbeat', async () => {
    const app = await startApp({ config: KEY_NEEDED })
    const alive = await sendRaw(app.url, { line: 'POST /heartbeat HTTP/1.1' })
    expect(alive.status).toBe(200)
    expectFailure(await sendUpload(app.url, { headers: [JSON_TYPE], body: '{}' }), 401, 'unauthorized')
  })
})

describe('other uploaders', () => {
  it('Picora writes part headers in small letters and PicGo 3 parameters', async () => {
    const app = await startApp({ config: KEY_NEEDED })
    const file = makePicture()
    const boundary = '--dio-boundary-0873429615'
    const head = 'content-disposition: form-data; name="files"; filename="a%22b.png"\ncontent-type: image/png'
    const answer = await sendUpload(app.url, {
      line: 'POST /upload?uploader=local&configName=Default&configId=0b5f HTTP/1.1',
      headers: [
        'user-agent: Dart/3.5 (dart:io)',
        `content-type: multipart/form-data; boundary=${boundary}`,
        'accept-encoding: gzip',
        'authorization: Bearer k1',
      ],
      body: formBody(boundary, [[head, file]]),
    })
    await expectStored(answer, [file])
    expect(answer.items[0]).toMatchObject({ imgUrl: answer.result[0], origin: 'a"b.png' })
    expect(answer.items[0]).not.toHaveProperty('url')
  })

  it.each<[string, Buffer]>([
    ['UTF-8', Buffer.from('图片.png')],
    ['GBK, the default character set of its machine', Buffer.from('cdbcc6ac2e706e67', 'hex')],
  ])('markdown-image-kit is answered within 5 s, its name in %s', async (_charset, name) => {
    const app = await startApp()
    const file = makePicture(200_000)
    const boundary = '*****1718000000123*****'
    const begin = Buffer.from('Content-Disposition: form-data; name="image"; filename="')
    const head = Buffer.concat([begin, name, Buffer.from('"\r\nContent-Type: image/png')])
    const answer = await sendUpload(app.url, {
      line: 'POST /upload?picbed=local&configName=Default&key=a%20b HTTP/1.1',
      headers: [
        `Content-Type: multipart/form-data; boundary=${boundary}`,
        'User-Agent: Java/17.0.12',
        'Accept: text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2',
      ],
      body: formBody(boundary, [[head, file]]),
    })
    await expectStored(answer, [file])
    expect(answer.items[0]?.fileName).toMatch(/\.png$/)
  })

  it.each(['an MCP server', 'cherry-markdown'])('%s sends one path by axios', async () => {
    const app = await startApp()
    const { files, body } = await writePictures(app.directory, 'a.png')
    await expectStored(await sendUpload(app.url, { headers: [JSON_TYPE, ...AXIOS], body }), files)
  })

  it('a blog publisher sends JSON by http.request and drops the query', async () => {
    const app = await startApp()
    const { files, body } = await writePictures(app.directory, 'a.png', 'b.png')
    const { status, headers, ...rest } = await new Promise<Answer>((resolve, reject) => {
      const options = { method: 'POST', headers: { 'Content-Type': 'application/json' } }
      const sent = request(`${app.url}/upload`, options, res => {
        const found = { status: res.statusCode ?? 0, headers: new Headers() }
        json(res).then(value => resolve({ ...(value as Answer), ...found }), reject)
      })
      sent.on('error', reject).end(body) // http.request counts the bytes by itself
    })
    await expectStored({ status, headers, ...rest }, files)
  })

  it('Zotero sends the key without "Bearer" and counts the links', async () => {
    const directory = await makeDirectory()
    const { files, body } = await writePictures(directory, 'fig 1.png', 'fig 2.png')
    const sources = { path: { roots: [directory] } }
    const app = await startApp({ directory, config: { ...KEY_NEEDED, sources } })
    const headers = [JSON_TYPE, 'Authorization: k1']
    await expectStored(await sendUpload(app.url, { headers, body }), files)
    const refused = await sendUpload(app.url, { headers: [JSON_TYPE, 'Authorization: k2'], body })
    expectFailure(refused, 401, 'unauthorized')
  })

  it('Home Assistant and lazycat stand in front as a proxy with a name of their own', async () => {
    const app = await startApp({ config: { server: { key: 'k1', trustProxy: ['loopback'] } } })
    const file = makePicture()
    const body = formBody(FORM_DATA_BOUNDARY, [[formDataPart('a.png'), file]])
    const proxied = ['Host: piclist.example', 'X-Forwarded-For: 192.0.2.7', 'X-Forwarded-Proto: https']
    const headers = [...FORM_DATA, ...proxied]
    expectFailure(await sendUpload(app.url, { headers, body }), 401, 'unauthorized')
    const answer = await sendUpload(app.url, { line: 'POST /upload?key=k1 HTTP/1.1', headers, body })
    expect(answer.result[0]).toMatch(/^https:\/\/piclist\.example\/files\//)
    await expectLinks([answer.result[0]!.replace('https://piclist.example', app.url)], [file])
  })
})
