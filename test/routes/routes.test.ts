import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { ask, expectEnvelope } from '../helpers/ask.ts'
import { list, post, upload } from '../helpers/form.ts'
import { shareApp, startApp } from '../helpers/start-app.ts'

const KEY = 'k3y-0f-the-server'
const FORM = { 'Content-Type': 'multipart/form-data; boundary=b' }
const ALIVE = '{"success":true,"result":"alive"}'

/** Everything that comes over a connection on which exactly this is sent. */
async function exchange(url: string, sent: string | Buffer): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.write(sent)
  return text(socket)
}

/** For what stores nothing. */
const plain = shareApp()
const keyed = shareApp({ config: { server: { key: KEY } } })

const READ = 'GET, HEAD, OPTIONS'
const UPLOAD = 'GET, HEAD, POST, PUT, OPTIONS'
const HTML = 'text/html; charset=utf-8'
const JSON_TYPE = 'application/json; charset=utf-8'

/** What every route answers to a request without a fitting body: the status, and a header where it matters. */
const ROUTES: readonly (readonly [status: number, requests: string, header?: string, value?: string])[] = [
  [200, 'GET /heartbeat|POST /heartbeat|HEAD /heartbeat|GET /heartbeat/|GET //heartbeat?x=//y'],
  [200, 'GET /ready|GET /health|GET //ready/|GET //health/?t=1', 'content-type', JSON_TYPE],
  [200, 'HEAD /ready|HEAD /health|GET HTTP://localhost/heartbeat'],
  [200, 'GET /|HEAD /|GET /upload|HEAD /upload|GET http://localhost', 'content-type', HTML],
  [200, 'GET /?a=b|GET //|GET /upload/|GET http://localhost?x', 'content-type', HTML],
  [204, 'OPTIONS /ready|OPTIONS /upload|OPTIONS /heartbeat|OPTIONS /|OPTIONS /delete|OPTIONS /nowhere'],
  [204, 'OPTIONS /files/Default/a.png|OPTIONS /%zz|OPTIONS *|OPTIONS http://localhost/upload'],
  [
    400,
    'POST /upload|POST /upload/|POST //upload|POST //upload//|POST /upload?x=//y/|PUT /upload|PUT /upload/',
  ],
  [400, 'POST http://localhost/upload|POST http://127.0.0.1:1//upload/?x'],
  [400, 'GET /files/Default/%zz|GET /files/%ff/a.png|GET /files/Default/%c0%ae'],
  [404, 'GET /upload/a.png|DELETE /upload/a.png|POST /Upload|POST /upload/x|POST /uploads|GET /upload%2f'],
  [
    404,
    'GET /files/Default/a.png|HEAD /files/Default/a.png|GET /files|GET /files/Default|GET /files/%|GET /%',
  ],
  [404, 'GET /nowhere|POST /nowhere|HEAD /nowhere|GET /heartbeat/x|GET /favicon.ico|GET /../upload'],
  [404, 'GET /delete|POST /delete|DELETE /delete|POST /delete/|POST /upload?finalizationId=nothing'],
  [405, 'POST /ready|POST /health|POST /|DELETE /|POST /upload-server.sxcu', 'allow', READ],
  [405, 'POST /files/Default/a.png|PUT /files/Default/a.png|DELETE /files/Default/a.png', 'allow', READ],
  [405, 'PUT /heartbeat|DELETE /heartbeat', 'allow', 'GET, HEAD, POST, OPTIONS'],
  [405, 'DELETE /upload|PATCH /upload/|TRACE /upload', 'allow', UPLOAD],
  [405, 'GET /upload/known'],
]
const ASKED = ROUTES.flatMap(([status, requests, name, value]) =>
  requests.split('|').map(one => [one, status, name ? { [name]: value } : {}] as const),
)

describe('every route answers as the contract says:', () => {
  it.for(ASKED)('%s: %i', async ([line, status, headers]) => {
    const [method = '', target = ''] = line.split(' ')
    const isUpload = method === 'POST' && target.includes('upload')
    const body = isUpload ? { body: 'neither form nor JSON' } : {}
    const reply = await ask(plain().url, method, target, body)
    expect(reply.status, reply.body).toBe(status)
    expect(reply.headers).toMatchObject(headers)
    expectEnvelope(reply)
    if (status >= 400 && method !== 'HEAD') expect(JSON.parse(reply.body)).not.toHaveProperty('result')
  })

  it('says at /delete what to do instead', async () => {
    const { body } = await ask(plain().url, 'POST', '/delete', { body: '{"list":["a"]}' })
    expect(JSON.parse(body).message).toMatch(/not supported.*upload-server remove/)
  })
})

describe('the heartbeat is given', () => {
  it.for<[string, Record<string, string>, string | Buffer | undefined]>([
    ['without a body', {}, undefined],
    ['with an empty form-encoded body', { 'Content-Type': 'application/x-www-form-urlencoded' }, ''],
    ['with JSON', { 'Content-Type': 'application/json' }, '{"a":1}'],
    ['with broken JSON', { 'Content-Type': 'application/json' }, '{'],
    ['with a broken form', FORM, '--b\r\nx'],
    ['with a form without boundary', { 'Content-Type': 'multipart/form-data' }, 'x'],
    ['with an unknown type', { 'Content-Type': ';;;' }, 'x'],
    ['with a compressed body', { 'Content-Encoding': 'gzip' }, 'x'],
    ['with 20 MB', {}, Buffer.alloc(20_000_000)],
    ['with a wrong key', { Authorization: 'Bearer wrong' }, undefined],
    ['through a proxy', { 'X-Forwarded-For': '203.0.113.9', Host: 'img.example.com' }, undefined],
    ['for a foreign page', { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' }, undefined],
    ['with an expectation nobody knows', { Expect: 'the worst' }, 'x'],
    [
      'with an offer of HTTP/2',
      { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': 'AAMAAABk' },
      '',
    ],
  ])('%s', async ([, headers, body]) => {
    for (const method of body === undefined ? ['GET', 'POST'] : ['POST']) {
      for (const target of ['/heartbeat', '/heartbeat/']) {
        const reply = await ask(keyed().url, method, target, { headers, body: body ?? '' })
        expect(reply).toMatchObject({ status: 200, body: ALIVE })
        expect(reply.headers['content-type']).toBe('application/json; charset=utf-8')
        expectEnvelope(reply)
      }
    }
  })

  it('to a client of HTTP/1.0 that names no host', async () => {
    const app = await startApp()
    const answer = await exchange(app.url, 'GET /heartbeat HTTP/1.0\r\n\r\n')
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    expect(answer.endsWith(ALIVE)).toBe(true)
  })
})

const nullOrigin = shareApp({ config: { auth: { allowNullOrigin: true } } })
const notes = shareApp({ config: { auth: { allowedOrigins: ['https://notes.example'] } } })

/** What the preflight of an upload is granted. */
async function preflight(origin: string, asked: string | undefined, app = plain()) {
  const headers = {
    Origin: origin,
    'Access-Control-Request-Method': 'POST',
    'Access-Control-Request-Private-Network': 'true',
    ...(asked !== undefined && { 'Access-Control-Request-Headers': asked }),
  }
  const reply = await ask(app.url, 'OPTIONS', '/upload', { headers })
  expect(reply.status).toBe(204)
  expect(reply.headers['access-control-allow-origin']).toBe('*')
  expect(reply.headers['access-control-allow-methods']).toBe('GET, HEAD, POST, PUT, OPTIONS')
  expect(reply.headers).not.toHaveProperty('access-control-allow-credentials')
  const { 'access-control-allow-headers': names, 'access-control-allow-private-network': isNear } =
    reply.headers
  return { names, isNear }
}

describe('a preflight', () => {
  const FIXED =
    'accept, accept-language, authorization, cache-control, content-type, idempotency-key, x-picgo-secret, ' +
    'x-request-id, x-requested-with, x-upload-key'

  it.for(['content-type', 'content-type, user-agent', 'User-Agent', '*', '*, user-agent', 'x-a', undefined])(
    'attack: a page asks for %s and is granted what every page is',
    async asked => {
      for (const origin of ['https://page.example', 'null', 'http://192.168.1.1', ''])
        expect(await preflight(origin, asked)).toEqual({ names: FIXED })
      expect(await preflight('null', asked, nullOrigin())).toEqual({ names: FIXED })
    },
  )

  it.for([
    ['content-type', 'content-type'],
    ['authorization,x-upload-key', 'authorization, x-upload-key'],
    ['Content-Type, X-PicGo-Secret, user-agent', 'Content-Type, X-PicGo-Secret, user-agent'],
    ['x-a,, ,x-b', 'x-a, x-b'],
    ['x-a: 1, <script>, x-b', 'x-b'],
    [undefined, undefined],
  ] as const)('of a program that asks for %s is granted %s', async ([asked, granted]) => {
    for (const origin of ['app://obsidian.md', 'yank-note://localhost', 'http://localhost:5173'])
      expect(await preflight(origin, asked)).toEqual({ names: granted, isNear: 'true' })
    expect(await preflight('https://notes.example', asked, notes())).toEqual({
      names: granted,
      isNear: 'true',
    })
  })
})

describe('the request id', () => {
  it.for(['a', 'req-1', '0af7651916cd43dd8448eb211c80319c', 'A.b:c/d+e=f_g-h', 'x'.repeat(128)])(
    'that a client sends is kept: %s',
    async id => {
      for (const target of ['/heartbeat', '/', '/nowhere', '/upload']) {
        const reply = await ask(plain().url, 'GET', target, { headers: { 'X-Request-Id': id } })
        expect(reply.headers['x-request-id']).toBe(id)
      }
    },
  )

  it.for(['', ' ', 'a b', 'a,b', 'a"b', '<b>', 'x'.repeat(129), 'é', '{}', `id-${KEY}`, KEY])(
    'is a new one instead of the invalid or secret %s',
    async id => {
      for (const target of ['/heartbeat', '/nowhere']) {
        const reply = await ask(keyed().url, 'GET', target, { headers: { 'X-Request-Id': id } })
        expect(reply.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/)
      }
    },
  )
})

describe('what is not valid HTTP still gets JSON with CORS headers:', () => {
  it.for<[string, number, string]>([
    ['garbage', 400, 'garbage\r\n\r\n'],
    ['a TLS greeting', 400, '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n'],
    ['the preface of HTTP/2', 400, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['an unknown method', 400, 'BREW /upload HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['an unknown version', 400, 'GET / HTTP/9.9\r\nHost: a\r\n\r\n'],
    ['a length that is none', 400, 'POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n'],
    [
      'a broken chunk',
      400,
      'POST /upload HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
    ],
    ['a NUL in a header', 400, 'GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n'],
    ['HTTP/1.1 without Host', 400, 'GET /heartbeat HTTP/1.1\r\nConnection: close\r\n\r\n'],
    ['HTTP/1.1 without Host', 400, 'POST /upload HTTP/1.1\r\nConnection: close\r\n\r\n'],
    ['headers of 20 KB', 431, `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`],
    ['headers of 3 MB', 431, `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(3_000_000)}\r\n\r\n`],
    ['a path of 20 KB', 431, `GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`],
  ])('%s: %i', async ([, status, sent]) => {
    const app = plain()
    const answer = await exchange(app.url, Buffer.from(sent, 'latin1'))
    const [head = '', body = ''] = answer.split('\r\n\r\n')
    const [line, ...fields] = head.split('\r\n')
    expect(line).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    const pairs = fields.map(field => field.split(/: (.*)/) as [string, string])
    const headers = Object.fromEntries(pairs.map(([name, value]) => [name.toLowerCase(), value]))
    expect(headers).toMatchObject({ connection: 'close', 'content-length': String(body.length) })
    expectEnvelope({ method: 'GET', status, headers, body })
    const lines = app.log.filter(entry => entry['requestId'] === headers['x-request-id'])
    expect(lines).toEqual([expect.objectContaining({ address: '127.0.0.1' })])
  })

  it('tells HTTPS, which the client itself can not read, apart in the log', async () => {
    const app = await startApp()
    await exchange(app.url, Buffer.from('1603010200010001fc03030d0a0d0a', 'hex'))
    expect(app.log).toContainEqual(
      expect.objectContaining({ msg: expect.stringContaining('sent an HTTPS request') }),
    )
  })

  it('closes the connection even when the client keeps its end open', async () => {
    const app = await startApp()
    const { hostname, port } = new URL(app.url)
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
    socket.write('garbage\r\n\r\n')
    socket.resume()
    await once(socket, 'end')
    // Nobody ends this side: only when the server lets go of the connection does writing fail.
    const failed = once(socket, 'error').catch(error => [error])
    const timer = setInterval(() => socket.write('x'), 100)
    const [error] = await failed
    clearInterval(timer)
    expect(error.code).toMatch(/^(EPIPE|ECONNRESET)$/)
  })

  it('garbage behind a request does not get into the answer that is under way', async () => {
    const app = await startApp()
    const bytes = Buffer.alloc(8_000_000, 'a')
    const answer = await upload(`${app.url}/upload`, { 'large.txt': bytes })
    const { pathname, hostname, port } = new URL(answer.result[0]!)
    const socket = connect(Number(port), hostname)
    socket.write(`GET ${pathname} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    const [first] = (await once(socket, 'data')) as [Buffer]
    socket.write('garbage\r\n\r\n')
    socket.on('error', () => {})
    const received = first.toString() + (await text(socket).catch(() => ''))
    const body = received.slice(received.indexOf('\r\n\r\n') + 4)
    expect(body.slice(0, bytes.length) === bytes.toString()).toBe(true)
    expect(body.slice(bytes.length)).toMatch(/^(?:HTTP\/1\.1 400 |$)/)
  })
})

const FORM_HEADER = `Content-Type: ${FORM['Content-Type']}`

describe('odd but valid HTTP:', () => {
  it('a body is asked for with 100 when the client waits for that', async () => {
    const app = await startApp()
    const { hostname, port } = new URL(app.url)
    const socket = connect(Number(port), hostname)
    const body = '--b\r\nContent-Disposition: form-data; name="f"; filename="a.txt"\r\n\r\nhello\r\n--b--\r\n'
    const head = `Host: ${hostname}\r\nContent-Type: ${FORM['Content-Type']}\r\nConnection: close`
    socket.write(
      `POST /upload HTTP/1.1\r\n${head}\r\nExpect: 100-Continue\r\nContent-Length: ${body.length}\r\n\r\n`,
    )
    const [interim] = (await once(socket, 'data')) as [Buffer]
    expect(interim.toString()).toBe('HTTP/1.1 100 Continue\r\n\r\n')
    socket.write(body)
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  })

  it.for([
    ['the key is missing', 401, 'X-Forwarded-For: 203.0.113.9'],
    ['the body is encoded', 400, 'Content-Encoding: gzip'],
    ['the form has no boundary', 400, 'Content-Type: multipart/form-data'],
    ['the form is larger than all its files may be', 413, FORM_HEADER, 32 * 1024 * 1024 + 11],
    ['the list is too large', 413, 'Content-Type: application/json', 101],
  ] as const)('a body is not asked for when %s', async ([, status, header, length = 100]) => {
    const limits = { fileSize: '5B', files: 2, jsonBody: '100B' }
    const app = await startApp({ config: { server: { key: KEY }, limits } })
    const head = `POST /upload HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${header}`
    const answer = exchange(app.url, `${head}\r\nExpect: 100-continue\r\nContent-Length: ${length}\r\n\r\n`)
    expect(await answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
  })

  it('a client of HTTP/1.0 is never sent an interim answer', async () => {
    const head = 'POST /upload HTTP/1.0\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 1'
    expect(await exchange(plain().url, `${head}\r\n\r\n!`)).toMatch(/^HTTP\/1\.1 400 /)
  })

  it('a target that is a whole address is asked of its host, not of the one in the header', async () => {
    const app = await startApp()
    const path = join(app.directory, 'a.txt')
    await writeFile(path, 'a')
    const { body = '' } = list(path) as { body?: string }
    const other = { headers: { Host: 'localhost' }, body }
    expect(await ask(app.url, 'POST', 'http://evil.example/upload', other)).toMatchObject({ status: 401 })
    const own = await ask(app.url, 'POST', 'http://localhost:1/upload', { headers: { Host: 'x' }, body })
    expect(JSON.parse(own.body).result[0]).toMatch(/^http:\/\/localhost:1\/files\//)
  })

  it('HEAD gets the headers of GET and no body', async () => {
    const app = await startApp()
    for (const target of ['/', '/upload', '/heartbeat', '/nowhere']) {
      const [get, head] = await Promise.all([ask(app.url, 'GET', target), ask(app.url, 'HEAD', target)])
      expect(head.body).toBe('')
      expect(head.status).toBe(get.status)
      for (const name of ['content-type', 'content-length'])
        expect(head.headers[name]).toBe(get.headers[name])
    }
  })

  it('?status=200 does so for one caller, wrong keys included', async () => {
    const app = await startApp({
      config: { server: { key: 'right-key-1234' }, auth: { loopbackExempt: false } },
    })
    for (const [query, code] of [
      ['status=200', 'unauthorized'],
      ['status=200&key=right-key-1234&picbed=nowhere', 'unknown_destination'],
      ['status=200&key=right-key-1234', 'invalid_request'],
    ] as const) {
      const failed = await post(`${app.url}/upload?${query}`, { body: '!' })
      expect(failed).toMatchObject({ status: 200, success: false, code })
      expect(failed).not.toHaveProperty('result')
    }
    expect(await post(`${app.url}/upload`, { body: '!' })).toMatchObject({ status: 401 })
    const other = await post(`${app.url}/upload?status=204&key=right-key-1234`, { body: '!' })
    expect(other).toMatchObject({ status: 400, message: '"status" must be 200.' })
  })

  it.for([{}, { compat: { alwaysOk: true } }])(
    'nobody takes the first entry of an empty "result" for a link: %o',
    async config => {
      const app = await startApp({ config })
      for (const body of ['!', JSON.stringify({ list: ['/no/such/file'] })]) {
        const failed = await post(`${app.url}/upload`, { body })
        expect(failed.success).toBe(false)
        expect(failed.status === 200).toBe('compat' in config)
        expect(failed).not.toHaveProperty('result')
        expect(failed).not.toHaveProperty('items')
        if (body === '!') expect(failed.errors).toEqual([])
      }
      const partly = await post(`${app.url}/upload`, list('data:,one', '/no/such/file'))
      expect([partly.success, partly.result.length, partly.items.length]).toEqual([false, 1, 1])
      expect(await ask(app.url, 'PATCH', '/upload')).toMatchObject({ status: 405 })
    },
  )
})
