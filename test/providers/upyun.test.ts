import { describe, expect, it, onTestFinished } from 'vitest'
import { upyun } from '../../src/providers/upyun/index.ts'
import { addToken, signRequest } from '../../src/providers/upyun/sign.ts'
import { failureOf } from '../helpers/failure-of.ts'
import { play } from '../helpers/player.ts'
import { contractAt, describeProvider } from '../helpers/provider-contract.ts'
import { never, type Options, openTarget, open as openWith, problemOf, put } from '../helpers/target.ts'
import { startUpyun, type Upyun } from '../servers/upyun.ts'

const operator = { operator: 'operator123', password: 'password123' }
const options = { bucket: 'pictures', ...operator, urlPrefix: 'https://img.example.com' }
const KEY = 'a b/ü.png'

// With a token there are also signed links.
describeProvider('upyun at what it documents, with a token', async () => {
  const server = await startUpyun()
  const { bucket, operator, password, guardedUrl, token } = server
  const own = { bucket, operator, password, urlPrefix: guardedUrl, antiLeechToken: token }
  const openAt = (port: number, others: Options = {}) =>
    openTarget(upyun, { ...own, endpoint: `http://127.0.0.1:${port}`, ...others })
  const bad = { password: 'wrong-password' }
  return contractAt(server, openAt, { bad, secrets: [password, token, bad.password] })
})

const open = (more: Options) => openWith(upyun, { ...options, ...more })
const openAt = async (...answer: Parameters<typeof play>) => open({ endpoint: (await play(...answer)).url })

async function start(): Promise<{ server: Upyun; own: Options }> {
  const server = await startUpyun()
  onTestFinished(server.close)
  const { bucket, operator, password, url: endpoint, publicUrl: urlPrefix } = server
  return { server, own: { bucket, operator, password, endpoint, urlPrefix } }
}

describe('a request', () => {
  it.each([
    ['PUT', '/upyun-temp/demo.jpg', '7ac66c0f148de9519b8bd264312c4d64', 'YUaAZX+WNAcJdNGHS5SBlITME5A='],
    ['POST', '/upyun_notify_url', 'ed091459198a814d549701dab1dc4880', '3x6z6M9U2Ugi1FxLPhQldiXFzAc='],
  ])('is signed as in the example of the documentation: %s %s', (method, path, bodyMd5, signature) => {
    const date = 'Wed, 09 Nov 2016 14:26:58 GMT'
    expect(signRequest(operator, { method, path, date, bodyMd5 })).toBe(`UPYUN operator123:${signature}`)
  })

  it('goes to the bucket with the length, type and hash of the file', async () => {
    const stored = { 'x-upyun-file-type': 'file', 'x-upyun-file-size': '5' }
    const { url, requests, lines } = await play({ status: 200, headers: stored })
    const target = await open({ endpoint: `${url}/` })
    expect(await put(target, KEY)).toEqual({ url: 'https://img.example.com/a%20b/%C3%BC.png' })
    const path = '/pictures/a%20b/%C3%BC.png'
    expect(lines()).toEqual([`PUT ${path}`, `HEAD ${path}`])
    expect(requests[0]).toMatchObject({
      text: 'bytes',
      headers: {
        'content-length': '5',
        'content-type': 'image/png',
        'content-md5': '4b3a6218bb3e3a7303e8a171a60fcf92',
        authorization: expect.stringMatching(/^UPYUN operator123:[\w+/]{27}=$/),
      },
    })
    const sent = requests[0]?.headers['date'] ?? ''
    expect(new Date(sent).toUTCString()).toBe(sent)
  })
})

describe('an address', () => {
  // Published at haomeiwen.com/subject/rbltqqtx.html with the key "mark520".
  it('gets a token as in a published example', () => {
    expect(addToken('https://image-blog.test.upcdn.net/404.jpg', 'mark520', 1545271510)).toBe(
      'https://image-blog.test.upcdn.net/404.jpg?_upt=bcc3b8331545271510',
    )
  })

  it('is signed decoded, with the version of the picture and without the query', () => {
    const token = (url: string) => new URL(addToken(url, 'key', 1)).searchParams.get('_upt')
    const plain = token('https://h/a b/ü.png!thumb')
    expect(token('https://h/a%20b/%C3%BC.png!thumb')).toBe(plain)
    expect(addToken('https://h/a%20b/%C3%BC.png!thumb?x=1', 'key', 1)).toBe(
      `https://h/a%20b/%C3%BC.png!thumb?x=1&_upt=${plain}`,
    )
    expect(token('https://h/a%20b/%C3%BC.png')).not.toBe(plain)
  })

  it('of a put has its suffix, and a token that ends in time', async () => {
    const { server, own } = await start()
    const suffixed = await put(await open({ ...own, urlSuffix: '!thumb' }), KEY)
    expect(suffixed.url).toBe(`${server.publicUrl}/a%20b/%C3%BC.png!thumb`)
    const more = { antiLeechToken: 'leech-key', antiLeechFor: '10m' }
    const { url } = await put(await open({ ...own, ...more }), KEY)
    const [, expires] = /\?_upt=[0-9a-f]{8}(\d{10})$/.exec(url) ?? []
    expect(Math.round((Number(expires) - Date.now() / 1000) / 60)).toBe(10)
    expect(url).not.toContain('leech-key')
    const { headers } = await fetch(`${server.publicUrl}/a%20b/%C3%BC.png`)
    expect(headers.get('content-type')).toBe('image/png')
  })
})

describe('a refusal', () => {
  const json = (code: number, msg: string) => ({ code, msg, id: '11e4a729d24943409933a5e8314cd32e' })

  it.each([
    [
      401,
      json(40100005, 'signature error'),
      false,
      'signature error (40100005). Check "operator" and "password".',
    ],
    [401, json(40100002, 'date offset error'), false, 'Set the clock of this machine.'],
    [401, json(40100012, 'bucket not exist'), false, 'bucket not exist (40100012). Check "bucket".'],
    [400, json(40000006, 'content md5 not match'), false, 'content md5 not match (40000006).'],
    [403, json(40300010, 'file type error'), false, 'file type error (40300010).'],
    [429, json(42900001, 'too many requests'), true, 'too many requests (42900001).'],
    [408, json(40800001, 'read client request timeout'), true, 'timeout (40800001).'],
    [503, json(50300027, 'put file to fs error'), true, 'put file to fs error (50300027).'],
    [502, '<h1>Bad Gateway</h1>', true, 'returned 502: Bad Gateway'],
  ])('%i %j', async (status, body, retryable, words) => {
    const error = await failureOf(put(await openAt({ status, body }), KEY))
    expect(error).toMatchObject({ code: 'destination_failed', retryable })
    expect(error.message).toContain(words)
  })

  it('because the bucket is full is one for want of room', async () => {
    const target = await openAt({ status: 403, body: json(40300004, 'bucket is full') })
    const error = await failureOf(put(target, KEY))
    expect(error).toMatchObject({ code: 'insufficient_storage', retryable: false })
    expect(error.message).toContain('bucket is full (40300004).')
  })

  it.each([
    [{ operator: 'nobody' }, 'user not exists (40100006). Check "operator".'],
    [{ bucket: 'other' }, 'bucket not exist (40100012). Check "bucket".'],
    [{ password: 'wrong' }, 'signature error (40100005)'],
  ])('of %j is told by put and by check', async (more, words) => {
    const { own } = await start()
    const target = await open({ ...own, ...more })
    for (const work of [() => put(target, KEY), () => target.check?.(never())]) {
      const error = await failureOf(Promise.resolve(work()))
      expect(error).toMatchObject({ code: 'destination_failed', retryable: false })
      expect(error.message).toContain(words)
    }
  })

  it('of a check that is none of Upyun says so', async () => {
    const target = await openAt({ status: 404, body: '<h1>Not Found</h1>' })
    await expect(target.check?.(never())).rejects.toThrow('not a response of Upyun. Check "endpoint".')
  })
})

it.each([
  [{ bucket: 'a/b' }, 'must be the name of a storage service'],
  [{ operator: 'a:b' }, 'must be the name of an operator'],
  [{ urlPrefix: undefined }, 'must be an http or https URL'],
  [{ urlSuffix: ' x' }, 'characters that are valid in a URL'],
])('options %j are refused', (more, words) => {
  expect(problemOf(upyun, { ...options, ...more })).toContain(words)
})
