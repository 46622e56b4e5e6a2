import type { RequestListener } from 'node:http'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, it, onTestFinished } from 'vitest'
import { inFile } from '../../src/body.ts'
import type { HttpRequest } from '../../src/http/client.ts'
import { createConnections } from '../../src/http/connections.ts'
import { excerpt } from '../../src/http/excerpt.ts'
import { parseRetryAfter } from '../../src/http/network.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { serve } from '../uploader/sources/servers.ts'

const signal = new AbortController().signal

function makeClient(idleTimeoutMs?: number) {
  const { http, close } = createConnections({ idleTimeoutMs })
  onTestFinished(close)
  return http
}

/** Sends a request to a server that answers it in one way. */
async function ask(handle: RequestListener, request: Partial<HttpRequest> = {}, idleTimeoutMs?: number) {
  const { origin: url } = await serve(handle)
  return makeClient(idleTimeoutMs).send({ method: 'GET', url, ...request }, signal)
}

describe('a reply', () => {
  it('of HTML where JSON is expected is quoted without its markup', async () => {
    const reply = await ask((_req, res) => res.end('<html><h1>Log in</h1><script>x()</script></html>'))
    expect(() => reply.json()).toThrow(/is not JSON: Log in\.$/)
  })

  it.each<[string, Record<string, string>, Buffer | string]>([
    ['with a byte order mark', {}, '\uFEFF{"a":"ä"}'],
    ['with gzip that nobody asked for', { 'Content-Encoding': 'gzip' }, gzipSync('{"a":"ä"}')],
    ['with gzip by its old name', { 'Content-Encoding': 'x-gzip' }, gzipSync('{"a":"ä"}')],
    ['with deflate', { 'Content-Encoding': 'deflate' }, deflateSync('{"a":"ä"}')],
    ['with Brotli', { 'Content-Encoding': 'BR' }, brotliCompressSync('\uFEFF{"a":"ä"}')],
  ])('%s is read', async (_, headers, body) => {
    const reply = await ask((_req, res) => res.writeHead(200, headers).end(body))
    expect(reply).toMatchObject({ status: 200, text: '{"a":"ä"}' })
    expect(reply.json()).toEqual({ a: 'ä' })
  })

  it.each([
    ['gzip', 'not gzip'],
    ['gzip', gzipSync(Buffer.alloc(8 * 1024 * 1024))],
    ['zstd', '{}'],
  ])('that can not be decompressed (%s) is a failure that says so', async (encoding, body) => {
    const sent = ask((_req, res) => res.writeHead(200, { 'Content-Encoding': encoding }).end(body))
    await expect(sent).rejects.toThrow(`127.0.0.1 compressed its response (${encoding}), and it could not be`)
  })

  it('without end is cut after a megabyte, or as far as is asked for', async () => {
    const endless: RequestListener = (_req, res) => {
      const timer = setInterval(() => res.write(Buffer.alloc(256 * 1024, 97)), 1)
      res.on('close', () => clearInterval(timer))
    }
    for (const maxReplyBytes of [undefined, 3 * 1024 * 1024]) {
      const { text } = await ask(endless, maxReplyBytes === undefined ? {} : { maxReplyBytes })
      const most = maxReplyBytes ?? 1024 * 1024
      expect(text.length).toBeGreaterThan(most)
      expect(text.length).toBeLessThan(most + 1024 * 1024)
    }
  })
})

describe('attack: a service repeats the credentials of the request', () => {
  it.each([
    'Bearer a-token-of-24-letters-00',
    `TOKEN the-account:${'0a'.repeat(20)}`,
    `SharedKey mine:${'A/b+'.repeat(10)}=`,
    'Basic bWU6dGhlLXBhc3N3b3JkLW9mLW1pbmU=',
    'a-token-without-a-scheme',
  ])('%s', async Authorization => {
    const repeat: RequestListener = (req, res) => {
      const bare = req.headers.authorization?.split(/[ :]/).at(-1)
      res.writeHead(req.method === 'GET' ? 200 : 403).end(`not ${bare}`)
    }
    const headers = { Authorization }
    expect((await ask(repeat, { headers })).text).toMatch(/^not \[secret\]=?$/)
    await expect(ask(repeat, { method: 'POST', headers })).rejects.toThrow(
      /returned 403 .*: not \[secret\]=?\.$/,
    )
  })
})

it.each<[number, boolean, string]>([
  [401, false, 'returned 401 (the credentials are wrong or expired): no'],
  [403, false, 'returned 403 (the credentials lack permission)'],
  [404, false, 'returned 404'],
  [429, true, 'returned 429 (too many requests)'],
  [500, true, 'returned 500: no'],
  [503, true, 'returned 503'],
  [302, false, '(a redirect): redirect to example.com/login. Use the final URL.'],
])('status %i may be tried again: %s', async (status, retryable, message) => {
  const headers = { 'Retry-After': '7', Location: 'http://example.com/login' }
  const sent = ask((_req, res) => res.writeHead(status, headers).end('no'), { method: 'POST', body: 'x' })
  await expect(sent).rejects.toMatchObject({ code: 'destination_failed', retryable, retryAfterS: 7 })
  await expect(sent).rejects.toThrow(message)
})

describe('the network', () => {
  it('failing names the host and may be tried again', async () => {
    const gone = await findFreePorts()
    const sent = makeClient().send({ method: 'GET', url: `http://127.0.0.1:${gone}` }, signal)
    await expect(sent).rejects.toMatchObject({
      message: `127.0.0.1:${gone} can't be reached: it refuses connections.`,
      retryable: true,
    })
  })

  it.each<[string, RequestListener, string]>([
    ['nothing happens for long', req => req.resume(), 'it did not respond in time.'],
    ['it breaks', req => req.socket.resetAndDestroy(), 'it closed the connection.'],
  ])('is left to the delivery to try again when %s on a connection', async (_, handle, words) => {
    const server = await serve(handle)
    const sent = makeClient(50).send({ method: 'PUT', url: server.origin, body: 'x' }, signal)
    await expect(sent).rejects.toMatchObject({
      message: `127.0.0.1:${server.port} can't be reached: ${words}`,
      retryable: true,
    })
    expect(server.connections()).toBe(1)
  })

  it('is given its time on a connection that was to be closed soon', async () => {
    const { origin: url } = await serve((req, res) => {
      res.setHeader('Keep-Alive', 'timeout=2') // Node closes unused ones a second before
      req.resume()
      setTimeout(() => res.end('ok'), req.headers['x-slow'] ? 1300 : 0)
    })
    const client = makeClient()
    await client.send({ method: 'POST', url, body: 'x' }, signal)
    const slow = await client.send({ method: 'POST', url, body: 'x', headers: { 'X-Slow': '1' } }, signal)
    expect(slow.text).toBe('ok')
  })

  it('is not blamed for a body that cannot be read', async () => {
    const sent = ask(req => req.resume(), { method: 'PUT', body: inFile('/nowhere', 10) })
    await expect(sent).rejects.toThrow(/^its temporary file could not be read on this server \(ENOENT\)/)
    await expect(sent).rejects.toMatchObject({ retryable: false })
  })

  it('is left at once when the upload is aborted, before and during', async () => {
    const { origin: url } = await serve(() => {})
    const early = AbortSignal.abort(new Error('before'))
    await expect(makeClient().send({ method: 'GET', url }, early)).rejects.toThrow('before')
    const controller = new AbortController()
    const sent = makeClient().send({ method: 'GET', url }, controller.signal)
    setTimeout(() => controller.abort(new Error('during')), 20)
    await expect(sent).rejects.toThrow('during')
  })
})

it('reads Retry-After as seconds and as a date', () => {
  expect(parseRetryAfter('120')).toBe(120)
  expect(parseRetryAfter(new Date(Date.now() + 10_000).toUTCString())).toBeGreaterThan(5)
  expect(parseRetryAfter(new Date(0).toUTCString())).toBe(0)
  expect(parseRetryAfter('soon')).toBeUndefined()
  expect(parseRetryAfter(undefined)).toBeUndefined()
})

it('keeps excerpts short, on one line and without addresses', () => {
  expect(excerpt('a\n\n<b>b</b>  https://x.example/c')).toBe('a b x.example/c')
  expect(excerpt('ab '.repeat(1000))).toBe(`${'ab '.repeat(85).trimEnd()}…`)
  expect(excerpt(`{"error":"no","key":"${'x'.repeat(1000)}"}`)).toBe('{"error":"no","key":"…')
  expect(excerpt('x'.repeat(1000))).toBe('…')
  expect(excerpt('')).toBe('(nothing)')
})
