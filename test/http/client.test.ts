import { createServer, type RequestListener } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, it, onTestFinished } from 'vitest'
import { inFile } from '../../src/body.ts'
import { createConnections } from '../../src/http/connections.ts'
import { excerpt } from '../../src/http/excerpt.ts'
import { parseRetryAfter } from '../../src/http/network.ts'

const signal = new AbortController().signal

function makeClient(idleTimeoutMs?: number) {
  const { http, close } = createConnections({ idleTimeoutMs })
  onTestFinished(close)
  return http
}

async function listen(handle: RequestListener): Promise<string> {
  const server = createServer(handle)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`
}

describe('a reply', () => {
  it('is read as text and JSON', async () => {
    const url = await listen((req, res) => res.end(JSON.stringify({ method: req.method })))
    const reply = await makeClient().send({ method: 'PUT', url, body: 'x' }, signal)
    expect(reply).toMatchObject({ status: 200, text: '{"method":"PUT"}' })
    expect(reply.json()).toEqual({ method: 'PUT' })
  })

  it('of HTML where JSON is expected is quoted without its markup', async () => {
    const url = await listen((_req, res) => res.end('<html><h1>Log in</h1><script>x()</script></html>'))
    const reply = await makeClient().send({ method: 'GET', url }, signal)
    expect(() => reply.json()).toThrow(/is not JSON: Log in\.$/)
  })

  it.each<[string, Record<string, string>, Buffer | string]>([
    ['with a byte order mark', {}, '\uFEFF{"a":"ä"}'],
    ['with gzip that nobody asked for', { 'Content-Encoding': 'gzip' }, gzipSync('{"a":"ä"}')],
    ['with deflate', { 'Content-Encoding': 'deflate' }, deflateSync('{"a":"ä"}')],
    ['with Brotli', { 'Content-Encoding': 'BR' }, brotliCompressSync('\uFEFF{"a":"ä"}')],
  ])('%s is read', async (_, headers, body) => {
    const url = await listen((_req, res) => res.writeHead(200, headers).end(body))
    const reply = await makeClient().send({ method: 'GET', url }, signal)
    expect(reply.json()).toEqual({ a: 'ä' })
  })

  it.each([
    ['zstd', '{}'],
    ['gzip', 'not gzip'],
    ['gzip', gzipSync(Buffer.alloc(8 * 1024 * 1024))],
  ])('that can not be decompressed (%s) is a failure that says so', async (encoding, body) => {
    const url = await listen((_req, res) => res.writeHead(200, { 'Content-Encoding': encoding }).end(body))
    const sent = makeClient().send({ method: 'GET', url }, signal)
    await expect(sent).rejects.toThrow(`127.0.0.1 compressed its response (${encoding}), and it could not be`)
  })

  it('without end is cut after a megabyte', async () => {
    const url = await listen((_req, res) => {
      const timer = setInterval(() => res.write(Buffer.alloc(256 * 1024, 97)), 1)
      res.on('close', () => clearInterval(timer))
    })
    const reply = await makeClient().send({ method: 'GET', url }, signal)
    expect(reply.text.length).toBeGreaterThan(1024 * 1024)
    expect(reply.text.length).toBeLessThan(2 * 1024 * 1024)
  })

  it('is read as far as is asked for', async () => {
    const url = await listen((_req, res) => res.end('x'.repeat(3 * 1024 * 1024)))
    const request = { method: 'GET', url, maxReplyBytes: 4 * 1024 * 1024 }
    expect((await makeClient().send(request, signal)).text).toHaveLength(3 * 1024 * 1024)
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
    const url = await listen((req, res) => {
      const bare = req.headers.authorization?.split(/[ :]/).at(-1)
      res.writeHead(req.method === 'GET' ? 200 : 403).end(`not ${bare}`)
    })
    const ask = (method: string) => makeClient().send({ method, url, headers: { Authorization } }, signal)
    expect((await ask('GET')).text).toMatch(/^not \[secret\]=?$/)
    await expect(ask('POST')).rejects.toThrow(/returned 403 .*: not \[secret\]=?\.$/)
  })
})

describe('a failed status', () => {
  it.each([
    [401, false, /returned 401 \(the credentials are wrong or expired\): no/],
    [403, false, /returned 403 \(the credentials lack permission\)/],
    [404, false, /returned 404/],
    [429, true, /returned 429 \(too many requests\)/],
    [500, true, /returned 500: no/],
    [503, true, /returned 503/],
  ])('%i: may be tried again: %s', async (status, retryable, message) => {
    const url = await listen((_req, res) => res.writeHead(status).end('no'))
    const sent = makeClient().send({ method: 'POST', url, body: 'x' }, signal)
    await expect(sent).rejects.toMatchObject({ code: 'destination_failed', retryable })
    await expect(sent).rejects.toThrow(message)
  })

  it('tells when to come back', async () => {
    const url = await listen((_req, res) => res.writeHead(503, { 'Retry-After': '7' }).end())
    await expect(makeClient().send({ method: 'GET', url }, signal)).rejects.toMatchObject({ retryAfterS: 7 })
  })

  it('of a redirect is not followed and its address is named without its scheme', async () => {
    const url = await listen((_req, res) =>
      res.writeHead(302, { Location: 'http://example.com/login' }).end(),
    )
    const sent = makeClient().send({ method: 'PUT', url, body: 'x' }, signal)
    await expect(sent).rejects.toThrow(/a redirect.*example\.com\/login/)
    await expect(sent).rejects.not.toThrow(/:\/\//)
  })
})

describe('the network', () => {
  it('failing names the host and may be tried again', async () => {
    const gone = createTcpServer()
    await new Promise<void>(resolve => gone.listen(0, '127.0.0.1', resolve))
    const { port } = gone.address() as { port: number }
    await new Promise(resolve => gone.close(resolve))
    const sent = makeClient().send({ method: 'GET', url: `http://127.0.0.1:${port}` }, signal)
    await expect(sent).rejects.toMatchObject({ retryable: true })
    await expect(sent).rejects.toThrow(`127.0.0.1:${port} can't be reached: it refuses connections.`)
  })

  it('is left when nothing happens on a connection for long', async () => {
    const url = await listen(req => req.resume())
    const sent = makeClient(50).send({ method: 'POST', url, body: 'x' }, signal)
    await expect(sent).rejects.toMatchObject({ retryable: true })
    await expect(sent).rejects.toThrow("can't be reached: it did not respond in time.")
  })

  it('is given its time on a connection that was to be closed soon', async () => {
    const url = await listen((req, res) => {
      res.setHeader('Keep-Alive', 'timeout=2') // Node closes unused ones a second before
      req.resume()
      setTimeout(() => res.end('ok'), req.headers['x-slow'] ? 1300 : 0)
    })
    const client = makeClient()
    await client.send({ method: 'POST', url, body: 'x' }, signal)
    const slow = await client.send({ method: 'POST', url, body: 'x', headers: { 'X-Slow': '1' } }, signal)
    expect(slow.text).toBe('ok')
  })

  it('is left to the delivery to try again when a connection breaks', async () => {
    let count = 0
    const url = await listen(req => {
      count++
      req.socket.resetAndDestroy()
    })
    await expect(makeClient().send({ method: 'PUT', url, body: 'x' }, signal)).rejects.toMatchObject({
      retryable: true,
    })
    expect(count).toBe(1)
  })

  it('is not blamed for a body that cannot be read', async () => {
    const url = await listen(req => req.resume())
    const body = inFile('/nowhere', 10)
    const sent = makeClient().send({ method: 'PUT', url, body }, signal)
    await expect(sent).rejects.toThrow(/^its temporary file could not be read on this server \(ENOENT\)/)
    await expect(sent).rejects.toMatchObject({ retryable: false })
  })

  it('is left at once when the upload is aborted, before and during', async () => {
    const url = await listen(() => {})
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
