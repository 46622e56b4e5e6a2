import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { expectFailure } from '../helpers/expect-answer.ts'
import { list, post } from '../helpers/form.ts'
import { startApp, type TestApp } from '../helpers/start-app.ts'
import { serve, serveRaw } from '../uploader/sources/servers.ts'

// What is refused by the address that a name has, on every hop, stands in test/http/guarded-fetch.test.ts.

const KEY = 'k3y-0f-the-server'

/** As a caller with a key, who does not count as a program of this machine. */
const fetchFor = (app: TestApp, ...addresses: string[]) =>
  post(`${app.url}/upload`, {
    ...list(...addresses),
    headers: { 'X-Upload-Key': KEY, 'X-Forwarded-For': '203.0.113.9' },
  })

describe('attack: a caller with a key has the server fetch from itself', () => {
  const HOSTS = [
    ...['127.0.0.1', '127.1', '127.0.1', '2130706433', '0x7f000001', '0x7f.1', '017700000001', '0177.0.0.01'],
    ...['localhost', 'LOCALHOST', '0', '0.0.0.0', '[::]', '[::1]', '[0:0:0:0:0:0:0:1]', '[::127.0.0.1]'],
    ...['[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[64:ff9b::7f00:1]', '[2002:7f00:1::]', '①②⑦.⓪.⓪.①'],
    ...['127。0。0。1', '%31%32%37.0.0.1', 'user:password@127.0.0.1'],
  ]

  it.each(['http', 'https'])('by %s, in whatever spelling', async scheme => {
    const inner = await serve((_req, res) => res.end('internal'))
    const app = await startApp({ config: { server: { key: KEY } } })
    const answer = await fetchFor(app, ...HOSTS.map(host => `${scheme}://${host}:${inner.port}/`))
    expectFailure(answer, 403, 'source_forbidden')
    expect(answer.errors.map(error => error.code)).toEqual(HOSTS.map(() => 'source_forbidden'))
    expect(inner.connections()).toBe(0)
  })

  it.each([
    'file:///etc/passwd',
    'FILE:/etc/passwd',
    'ftp://a/b',
    'gopher://a/b',
    'dict://a',
    'view-source:x',
  ])('by another scheme: %s', async address => {
    const app = await startApp({ config: { server: { key: KEY } } })
    const answer = await fetchFor(app, address)
    expect([400, 403]).toContain(answer.status)
    expect(answer).not.toHaveProperty('result')
  })
})

describe('attack: a server that is fetched from', () => {
  it.each([
    ['a file', 'file:///etc/passwd', 'source_forbidden'],
    ['another protocol', 'ftp://127.0.0.1/a', 'source_forbidden'],
    ['script', 'javascript:alert(1)', 'source_forbidden'],
    ['data', 'data:text/plain,hello', 'source_forbidden'],
    ['no host of its own', 'http://0.0.0.0:1/', 'source_forbidden'],
    ['itself, without end', '/again', 'source_failed'],
    ['nothing', 'http://', 'source_failed'],
  ])('redirects to %s', async (_, location, code) => {
    const server = await serve((_req, res) => res.writeHead(302, { location }).end())
    const app = await startApp()
    const answer = await post(`${app.url}/upload`, list(`${server.origin}/a.png`))
    expect(answer).toMatchObject({ code })
  })

  it('gets no credentials of another', async () => {
    const thief = await serve((_req, res) => res.end('bytes'))
    const server = await serve((_req, res) => res.writeHead(302, { location: `${thief.origin}/` }).end())
    const app = await startApp()
    const address = `http://me:pa55word@127.0.0.1:${server.port}/a.png`
    expect((await post(`${app.url}/upload`, list(address))).status).toBe(200)
    expect(server.requests[0]?.headers.authorization).toMatch(/^Basic /)
    expect(thief.requests[0]?.headers).not.toHaveProperty('authorization')
    expect(app.rawLog()).not.toContain('pa55word')
  })

  it('answers with a bomb of gzip', async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024))
    const server = await serve((_req, res) => res.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb))
    const app = await startApp({ config: { limits: { fileSize: '1MB' } } })
    expectFailure(await post(`${app.url}/upload`, list(server.origin)), 413, 'too_large')
    expect(await app.files()).toEqual([])
  })

  it.each<[string, string, string]>([
    ['with headers without end', 'HTTP/1.1 200 OK\r\n', 'X: y\r\n'],
    ['with interim answers without end', '', 'HTTP/1.1 102 Processing\r\n\r\n'],
    ['with a body without end', 'HTTP/1.1 200 OK\r\n\r\n', 'x'],
  ])('answers %s', async (_, head, more) => {
    const server = await serveRaw(socket => {
      socket.write(head)
      const flood = () => {
        while (!socket.destroyed && socket.write(more.repeat(1000))) {}
      }
      socket.on('drain', flood).once('data', flood)
    })
    const config = { limits: { fileSize: '1MB' }, sources: { url: { timeoutMs: 1000 } } }
    const app = await startApp({ config })
    const answer = await post(`${app.url}/upload`, list(server.origin))
    expect(['source_failed', 'too_large']).toContain(answer.code)
  })

  it.each([
    ['never', () => {}],
    ['a byte at a time', (write: (text: string) => void) => void setInterval(write, 50, 'x').unref()],
  ])('answers %s', async (_, trickle) => {
    const server = await serveRaw(socket => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n')
      trickle(text => socket.destroyed || socket.write(text))
    })
    const app = await startApp({ config: { sources: { url: { timeoutMs: 400 } } } })
    expectFailure(await post(`${app.url}/upload`, list(server.origin)), 422, 'source_failed')
  })
})
