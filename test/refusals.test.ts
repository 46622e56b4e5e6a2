import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { ask } from './helpers/ask.ts'
import { type RawRequest, sendRaw } from './helpers/raw-request.ts'
import { shareApp, startApp, type TestApp } from './helpers/start-app.ts'

const KEY = 'k3y-0f-the-server'
const LIMITED = 'k3y-0f-a-job'
const CLIENT = '203.0.113.9'

const config = {
  server: { key: KEY, trustProxy: ['loopback'] },
  auth: {
    keys: [
      { name: 'job', key: LIMITED, destinations: ['local/a'], sources: ['form'] },
      { name: 'added', key: 'k3y-of-the-proxy', addedByProxy: true },
    ],
  },
  limits: { fileSize: '1000B', bodyIdle: '1000ms' },
  page: { history: true },
  metrics: { enabled: true, token: 'the-token-of-the-scraper' },
  default: 'local/a',
  providers: {
    local: { a: { directory: 'a', serve: true }, b: { directory: 'b', serve: true } },
    s3: {
      private: {
        ...{ endpoint: 'http://127.0.0.1:1', bucket: 'b', region: 'r' },
        ...{ accessKeyId: 'a', secretAccessKey: 'b', link: 'redirect', linkAccess: 'callers' },
      },
    },
  },
}

/** Sends a request behind a proxy of this machine. @returns the answer, and the line of the log with its ID */
async function refuse(app: TestApp, request: RawRequest) {
  const forwarded = [`X-Forwarded-For: ${CLIENT}`, ...(request.headers ?? [])]
  const { status, headers } = await sendRaw(app.url, { ...request, headers: forwarded })
  const id = headers.get('x-request-id')
  const find = () => app.log.find(line => line['requestId'] === id)
  await expect.poll(find).toBeDefined()
  return { status, line: find() as Record<string, unknown> }
}

const server = `X-Upload-Key: ${KEY}`
const job = `X-Upload-Key: ${LIMITED}`
const raw = 'Content-Type: image/png'
const json = 'Content-Type: application/json'

describe('the log line of a refusal has the address of the client, the caller and the request ID', () => {
  const app = shareApp({ config })

  it.each<[what: string, status: number, request: RawRequest, caller?: string]>([
    ['no Host', 400, { headers: ['Host:'] }],
    ['two hosts', 400, { headers: ['Host: a', 'Host: b'] }],
    ['no key', 401, { body: 'x' }],
    ['a wrong key', 401, { headers: ['X-Upload-Key: no'], body: 'x' }],
    ['the history without a key', 401, { line: 'GET /history HTTP/1.1' }],
    ['the metrics', 401, { line: 'GET /metrics HTTP/1.1' }],
    ['a link for callers', 401, { line: 'GET /links/s3/private/a HTTP/1.1' }],
    [
      'a link that leads nowhere',
      404,
      { line: 'GET /links/s3/private/a HTTP/1.1', headers: [server] },
      'server',
    ],
    ['another route', 404, { line: 'GET /nowhere HTTP/1.1' }],
    ['a file that is not there', 404, { line: 'GET /files/a/none.png HTTP/1.1' }],
    ['a script of the page that is not there', 404, { line: 'GET /page/a/b.js HTTP/1.1' }],
    ['another method', 405, { line: 'DELETE /upload HTTP/1.1' }],
    [
      'an unknown destination',
      400,
      { line: 'POST /upload?destination=x HTTP/1.1', headers: [server] },
      'server',
    ],
    [
      'a destination of others',
      403,
      { line: 'POST /upload?destination=local/b HTTP/1.1', headers: [job] },
      'job',
    ],
    ['a source of others', 403, { headers: [job, json], body: '{"list":["https://a.example/b"]}' }, 'job'],
    [
      'a page of another site',
      403,
      { headers: ['X-Upload-Key: k3y-of-the-proxy', 'Origin: https://evil.example'], body: 'x' },
      'added',
    ],
    ['a body that stops', 408, { headers: [server, raw, 'Content-Length: 10'], body: 'x' }, 'server'],
    ['too large', 413, { headers: [server, raw], body: 'x'.repeat(2000) }, 'server'],
    [
      'a URL of this machine',
      403,
      { headers: [server, json], body: '{"list":["http://127.0.0.1:1/"]}' },
      'server',
    ],
    [
      'a dead destination',
      502,
      { line: 'PUT /upload/a?destination=s3 HTTP/1.1', headers: [server, raw], body: 'x' },
      'server',
    ],
  ])('%s', async (_, status, request, caller) => {
    const answer = await refuse(app(), request)
    expect(answer.status).toBe(status)
    expect(answer.line).toMatchObject({ address: CLIENT, res: { status }, msg: 'Request failed' })
    expect(answer.line['caller']).toBe(caller)
    // What is expected has no stack of ours.
    expect(answer.line['err'] ?? {}).not.toHaveProperty('stack')
  })

  it.each([
    ['a range beyond the file', 416, { Range: 'bytes=5000-' }],
    ['a condition', 412, { 'If-Match': '"x"' }],
  ])('%s', async (_, status, headers) => {
    const { body } = await ask(app().url, 'PUT', '/upload/a.txt', {
      headers: { 'X-Upload-Key': KEY },
      body: 'x',
    })
    const { pathname } = new URL(JSON.parse(body).result[0])
    const sent = Object.entries(headers).map(header => header.join(': '))
    const { line } = await refuse(app(), { line: `GET ${pathname} HTTP/1.1`, headers: sent })
    expect(line).toMatchObject({ address: CLIENT, res: { status } })
  })

  it('what is not HTTP has the address of its connection', async () => {
    const { headers } = await sendRaw(app().url, { line: 'nonsense' })
    const id = headers.get('x-request-id')
    await expect
      .poll(() => app().log.find(line => line['requestId'] === id))
      .toMatchObject({ address: '127.0.0.1', res: { status: 400 } })
  })
})

it('429: who is locked out, and whom the proxy names', async () => {
  const reverseProxy = { from: ['127.0.0.1'], preset: 'authelia', requireKey: true }
  const app = await startApp({ config: { ...config, auth: { maxFailures: 1, reverseProxy } } })
  const headers = ['Remote-User: alice', 'X-Upload-Key: no']
  expect(await refuse(app, { headers, body: 'x' })).toMatchObject({
    status: 401,
    line: { caller: 'proxy: alice' },
  })
  const { status, line } = await refuse(app, { headers, body: 'x' })
  expect({ status, line }).toMatchObject({ status: 429, line: { caller: 'proxy: alice', address: CLIENT } })
  expect(line['wrongKey']).toBeUndefined()
})

it('attack: a client hangs up at once, so that its wrong keys have no address', async () => {
  const app = await startApp({ config: { ...config, auth: { loopbackExempt: false } } })
  const { hostname, port } = new URL(app.url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  socket.write(
    `POST /upload HTTP/1.1\r\nHost: localhost\r\nX-Upload-Key: no\r\nContent-Length: 10\r\n\r\n`,
    () => socket.resetAndDestroy(),
  )
  await expect
    .poll(() => app.log.find(line => 'req' in line), { timeout: 5000 })
    .toMatchObject({ address: '127.0.0.1', wrongKey: true })
})
