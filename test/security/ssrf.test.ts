import { describe, expect, it } from 'vitest'
import { expectFailure } from '../helpers/expect-answer.ts'
import { list, post } from '../helpers/form.ts'
import { startApp, type TestApp } from '../helpers/start-app.ts'
import { serve, serveRaw } from '../uploader/sources/servers.ts'

// Which addresses are refused, in every spelling and on every hop, stands in test/http/guarded-fetch.test.ts, what an
// answer may not be in test/uploader/sources/url.test.ts.

const KEY = 'k3y-0f-the-server'

/** As a caller with a key, who does not count as a program of this machine. */
const fetchFor = (app: TestApp, ...addresses: string[]) =>
  post(`${app.url}/upload`, {
    ...list(...addresses),
    headers: { 'X-Upload-Key': KEY, 'X-Forwarded-For': '203.0.113.9' },
  })

it('attack: a caller with a key has the server fetch from itself, or by another scheme', async () => {
  const inner = await serve((_req, res) => res.end('internal'))
  const app = await startApp({ config: { server: { key: KEY } } })
  const hosts = ['127.0.0.1', '2130706433', 'localhost', '[::ffff:7f00:1]', 'user:password@127.0.0.1']
  const addresses = ['http', 'https'].flatMap(scheme =>
    hosts.map(host => `${scheme}://${host}:${inner.port}/`),
  )
  const answer = await fetchFor(app, ...addresses)
  expectFailure(answer, 403, 'source_forbidden')
  expect(answer.errors.map(error => error.code)).toEqual(addresses.map(() => 'source_forbidden'))
  expect(inner.connections()).toBe(0)

  for (const address of [
    'file:///etc/passwd',
    'FILE:/etc/passwd',
    'ftp://a/b',
    'gopher://a/b',
    'view-source:x',
  ]) {
    const answer = await fetchFor(app, address)
    expect([400, 403], address).toContain(answer.status)
    expect(answer).not.toHaveProperty('result')
  }
})

describe('attack: a server that is fetched from', () => {
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

  it('answers with interim answers without end', async () => {
    const server = await serveRaw(socket => {
      const flood = () => {
        while (!socket.destroyed && socket.write('HTTP/1.1 102 Processing\r\n\r\n'.repeat(1000))) {}
      }
      socket.on('drain', flood).once('data', flood)
    })
    const app = await startApp({ config: { sources: { url: { timeout: '400ms' } } } })
    expectFailure(await post(`${app.url}/upload`, list(server.origin)), 422, 'source_failed')
  })
})
