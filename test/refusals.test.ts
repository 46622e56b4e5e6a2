import { mkdir, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
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
const added = 'X-Upload-Key: k3y-of-the-proxy'
const job = `X-Upload-Key: ${LIMITED}`
const raw = 'Content-Type: image/png'
const json = 'Content-Type: application/json'
const get = (path: string, ...headers: string[]): RawRequest => ({ line: `GET ${path} HTTP/1.1`, headers })
const send = (path: string, headers: string[], body = 'x'): RawRequest => ({
  line: `${path} HTTP/1.1`,
  headers,
  body,
})

describe('the log line of a refusal has the address of the client, the caller and the request ID', () => {
  const app = shareApp({ config })

  it.each<[what: string, status: number, request: RawRequest, caller?: string]>([
    ['no Host', 400, { headers: ['Host:'] }],
    ['two hosts', 400, { headers: ['Host: a', 'Host: b'] }],
    ['no key', 401, send('POST /upload', [])],
    ['a wrong key', 401, send('POST /upload', ['X-Upload-Key: no'])],
    ['the history without a key', 401, get('/history')],
    ['the metrics', 401, get('/metrics')],
    ['a link for callers', 401, get('/links/s3/private/a')],
    ['a link that leads nowhere', 404, get('/links/s3/private/a', server), 'server'],
    ['another route', 404, get('/nowhere')],
    ['a file that is not there', 404, get('/files/a/none.png')],
    ['a script of the page that is not there', 404, get('/page/a/b.js')],
    ['another method', 405, { line: 'DELETE /upload HTTP/1.1' }],
    ['an unknown destination', 400, send('POST /upload?destination=x', [server]), 'server'],
    ['a destination of others', 403, send('POST /upload?destination=local/b', [job]), 'job'],
    ['a source of others', 403, send('POST /upload', [job, json], '{"list":["https://a.example/b"]}'), 'job'],
    ['a page of another site', 403, send('POST /upload', [added, 'Origin: https://evil.example']), 'added'],
    ['a body that stops', 408, send('POST /upload', [server, raw, 'Content-Length: 10']), 'server'],
    ['too large', 413, send('POST /upload', [server, raw], 'x'.repeat(2000)), 'server'],
    [
      'a private URL',
      403,
      send('POST /upload', [server, json], '{"list":["http://127.0.0.1:1/"]}'),
      'server',
    ],
    ['a dead destination', 502, send('PUT /upload/a?destination=s3', [server, raw]), 'server'],
    ['a range beyond the file', 416, get('/files/a/here.txt', 'Range: bytes=5000-')],
    ['a condition', 412, get('/files/a/here.txt', 'If-Match: "x"')],
  ])('%s', async (_, status, request, caller) => {
    await mkdir(join(app().directory, 'a'), { recursive: true })
    await writeFile(join(app().directory, 'a/here.txt'), 'x')
    const answer = await refuse(app(), request)
    expect(answer.status).toBe(status)
    expect(answer.line).toMatchObject({ address: CLIENT, res: { status }, msg: 'Request failed' })
    expect(answer.line['caller']).toBe(caller)
    // What is expected has no stack of ours.
    expect(answer.line['err'] ?? {}).not.toHaveProperty('stack')
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
