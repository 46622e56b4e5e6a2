import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { describe, expect, it } from 'vitest'
import { expectFailure, expectStored } from '../helpers/expect-answer.ts'
import { post } from '../helpers/form.ts'
import { makePicture } from '../helpers/picture.ts'
import { shareApp, startApp, type TestApp } from '../helpers/start-app.ts'

const plain = shareApp()

const typed = (type: string, body: string | Uint8Array): RequestInit => ({
  body: typeof body === 'string' ? body : Buffer.from(body),
  headers: { 'Content-Type': type },
})

/** Files that were uploaded, or are on their way. */
const stored = async (app: TestApp): Promise<string[]> =>
  (await app.files()).filter(path => /(?:^|\/)(?:files|tmp|\.upload-server)\//.test(path))

describe('a body that is a file', () => {
  it.for([
    'image/png',
    'IMAGE/PNG; q=1',
    'image/x-whatever',
    'video/mp4',
    'audio/ogg',
    'application/octet-stream',
  ])('is known by its label: %s', async type => {
    const app = plain()
    const file = makePicture()
    const answer = await post(`${app.url}/upload`, typed(type, file))
    await expectStored(answer, [file])
    expect(answer.items[0]).toMatchObject({ origin: '', contentType: 'image/png' })
    expect(answer.items[0]?.fileName).toMatch(/^file-\w+\.png$/)
  })

  it.for([
    ['a+b%20c.png', 'a b c.png'],
    ['%E5%9B%BE%20%E7%89%87.png', '图 片.png'],
    ['..%2F..%2Fetc%2Fpasswd.png', 'passwd.png'],
    ['C%3A%5Cpictures%5Cshot.png', 'shot.png'],
  ])('has the last component of its name: %s', async ([sent, origin]) => {
    const app = plain()
    const file = makePicture()
    const answer = await post(`${app.url}/upload?filename=${sent}`, typed('text/plain', file))
    await expectStored(answer, [file])
    expect(answer.items[0]?.origin).toBe(origin)
  })

  it.for([
    ['%E5%9B%BE%20%E7%89%87.png', '图 片.png'],
    [Buffer.from('图 片.png').toString('latin1'), '图 片.png'],
    ['caf\u00e9 100%.png', 'café 100%.png'],
    ['../../etc/passwd.png', 'passwd.png'],
  ])('is named by X-File-Name: %s', async ([sent, origin]) => {
    const app = plain()
    const file = makePicture()
    const headers = { 'X-File-Name': sent as string, 'Content-Type': 'application/x-www-form-urlencoded' }
    const answer = await post(`${app.url}/upload`, { headers, body: Buffer.from(file) })
    await expectStored(answer, [file])
    expect(answer.items[0]?.origin).toBe(origin)
    const named = await post(`${app.url}/upload?filename=own.png`, { headers, body: Buffer.from(file) })
    expect(named.items[0]?.origin).toBe('own.png')
  })

  it.for(['/upload/a%20b.png', '/upload/x.png?filename=a+b.png', '/upload?filename=a%20b.png'])(
    'is PUT to %s',
    async target => {
      const app = plain()
      const file = makePicture()
      const answer = await post(`${app.url}${target}`, { method: 'PUT', body: Buffer.from(file) })
      await expectStored(answer, [file])
      expect(answer.items[0]?.origin).toBe('a b.png')
    },
  )

  it('is stored byte by byte when it is text, JSON or empty and has a name', async () => {
    const app = plain()
    for (const content of ['{"list":["/etc/hostname"]}', 'some text', '']) {
      const named = await post(`${app.url}/upload?filename=a.txt`, typed('application/json', content))
      await expectStored(named, [content])
    }
    const put = await post(`${app.url}/upload`, { method: 'PUT', ...typed('text/plain', '{"list":[]}') })
    await expectStored(put, ['{"list":[]}'])
  })
})

describe('JSON wins over its label', () => {
  it.for(['image/png', 'video/mp4', 'application/octet-stream'])('%s', async type => {
    const app = plain()
    const url = `${app.url}/upload`
    await expectStored(await post(url, typed(type, '\ufeff {"list":["data:,hello"]}')), ['hello'])
    expectFailure(await post(url, typed(type, '{"list":["relative"]}')), 400, 'invalid_request')
    expectFailure(await post(url, typed(type, 'no JSON')), 400, 'invalid_request')
    expectFailure(await post(url, typed(type, '')), 422, 'source_failed') // the clipboard
    expectFailure(await post(`${url}?filename=`, typed(type, '{}')), 422, 'source_failed')
    expect((await stored(app)).filter(path => path.includes('tmp/'))).toEqual([])
  })

  it('and has its own limit', async () => {
    const app = await startApp({ config: { limits: { jsonBody: '1000B' } } })
    const list = JSON.stringify({ list: [`data:,${'a'.repeat(2000)}`] })
    const answer = await post(`${app.url}/upload`, typed('application/octet-stream', list))
    expectFailure(answer, 413, 'too_large')
    expect(answer.message).toContain('limits.jsonBody')
  })
})

describe('a body that is no file', () => {
  it('is an empty PUT', async () => {
    const app = await startApp()
    expectFailure(await post(`${app.url}/upload`, { method: 'PUT' }), 400, 'no_file')
  })

  it('is a part of one: nothing is stored', async () => {
    const app = await startApp()
    const init = { method: 'PUT', body: 'part', headers: { 'Content-Range': 'bytes 0-3/8' } }
    const answer = await post(`${app.url}/upload/a.png`, init)
    expectFailure(answer, 400, 'invalid_request')
    expect(answer.message).toContain('Content-Range')
  })

  it('is over limits.fileSize, announced or not: the file fails by its name', async () => {
    const app = await startApp({ config: { limits: { fileSize: '2000000B' } } })
    const file = randomBytes(2_000_001)
    const chunked = { body: new Blob([file]).stream(), duplex: 'half' } as RequestInit
    for (const init of [{ body: file }, chunked]) {
      const answer = await post(`${app.url}/upload/big.bin`, { method: 'PUT', ...init })
      expectFailure(answer, 413, 'too_large')
      expect(answer.errors).toMatchObject([{ index: 0, origin: 'big.bin' }])
    }
    expect(await stored(app)).toEqual([])
  })

  it('is over limits.fileSize: a client that asks first need not send it', async () => {
    const app = await startApp({ config: { limits: { fileSize: '10B' } } })
    const headers = { Expect: '100-continue', 'Content-Length': 11 }
    const call = request(`${app.url}/upload/a.png`, { method: 'PUT', headers })
    call.on('continue', () => expect.fail('the body was asked for')).flushHeaders()
    const [response] = await once(call, 'response')
    expect(response.statusCode).toBe(413)
    call.destroy()
  })
})
