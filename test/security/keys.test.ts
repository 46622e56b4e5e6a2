import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ask } from '../helpers/ask.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { expectFailure } from '../helpers/expect-answer.ts'
import { type Answer, formOf, list, post } from '../helpers/form.ts'
import { sendUpload } from '../helpers/raw-request.ts'
import { shareApp, startApp, type TestApp } from '../helpers/start-app.ts'

const KEY = 'k3y-0f-the-server'
const CI = 'k3y-0f-the-ci'

/** From behind a proxy, so that it does not count as a program of this machine. */
function send(app: TestApp, headers: Record<string, string>, body = list('data:,hello'), query = '') {
  return post(`${app.url}/upload${query}`, {
    ...body,
    headers: { 'X-Forwarded-For': '203.0.113.9', ...headers },
  })
}

describe('a narrow key', () => {
  const narrow = shareApp({
    config: {
      server: { key: KEY },
      auth: { keys: [{ name: 'ci', key: CI, destinations: ['local/screens'], sources: ['form'] }] },
      default: 'local/blog',
      providers: {
        local: { blog: { directory: 'blog', serve: true }, screens: { directory: 'screens', serve: true } },
      },
    },
  })

  it('stores where it may', async () => {
    const app = narrow()
    expect((await send(app, { 'X-Upload-Key': CI }, undefined, '?configName=screens')).status).toBe(200)
  })

  it.each(['', '?configName=blog', '?picbed=local&configName=blog', '?picbed=local'])(
    'attack: stores elsewhere: "%s"',
    async query => {
      const app = narrow()
      const answer = await send(app, { 'X-Upload-Key': CI }, undefined, query)
      expectFailure(answer, 403, 'destination_forbidden')
      expect((await app.files()).filter(path => path.startsWith('blog/'))).toEqual([])
    },
  )

  it.each(['/etc/hostname', 'http://203.0.113.1/a.png'])('attack: names %s', async entry => {
    const app = narrow()
    const answer = await send(app, { 'X-Upload-Key': CI }, list(entry), '?configName=screens')
    expectFailure(answer, 403, 'source_forbidden')
  })

  it('attack: asks for the clipboard', async () => {
    const app = narrow()
    const answer = await send(app, { 'X-Upload-Key': CI }, { body: '{}' }, '?configName=screens')
    expectFailure(answer, 403, 'source_forbidden')
  })

  it.each<[string, RequestInit, Record<string, string>?]>([
    ['a form', { body: formOf({ 'a.png': 'x' }) }],
    ['a file as the body', { body: '\0' }, { 'Content-Type': 'image/png' }],
    ['a data: address', { body: '{"list":["data:,hello"]}' }],
  ])('attack: sends %s though it may name addresses alone', async (_, body, headers) => {
    const keys = [{ name: 'fetcher', key: CI, sources: ['url'] }]
    const app = await startApp({ config: { auth: { keys } } })
    const answer = await send(app, { 'X-Upload-Key': CI, ...headers }, body)
    expectFailure(answer, 403, 'source_forbidden')
    expect(answer.message).toContain('Available: url.')
    expect(await app.files()).toEqual([])
  })

  it('attack: repeats the request of another key to get its answer', async () => {
    const directory = await makeDirectory()
    const keys = [
      { name: 'a', key: 'k3y-0f-a-------' },
      { name: 'a:b', key: 'k3y-0f-a-and-b' },
    ]
    const app = await startApp({ directory, config: { auth: { keys } } })
    const ask = (key: string, idempotency: string) =>
      send(app, { 'X-Upload-Key': key, 'Idempotency-Key': idempotency })
    const links: string[] = []
    for (const answer of [
      await ask('k3y-0f-a-------', 'b:c'),
      await ask('k3y-0f-a-and-b', 'c'),
      await post(`${app.url}/upload`, { ...list('data:,hello'), headers: { 'Idempotency-Key': 'c' } }),
    ]) {
      expect(answer.status).toBe(200)
      links.push(String(answer.result[0]))
    }
    expect(app.log.filter(line => line['repeated'])).toEqual([])
    expect(app.log.filter(line => line['stored'] === 1)).toHaveLength(links.length)
    const asLocal = [{ name: 'loopback', key: 'k3y-0f-loopback' }]
    await expect(startApp({ config: { auth: { keys: asLocal } } })).rejects.toThrow(
      /is reserved for other clients/,
    )
  })
})

describe('keys may come', () => {
  it('from the environment, from a file, and from a file with a line end', async () => {
    const directory = await makeDirectory()
    await writeFile(join(directory, 'one'), 'k3y-in-a-file\n')
    const keys = [
      { name: 'file', key: '${file:one}' },
      { name: 'variable', key: '${CI_KEY}' },
    ]
    const app = await startApp({
      directory,
      config: { auth: { keys } },
      env: { CI_KEY: CI, UPLOAD_SERVER_KEY: KEY },
    })
    for (const key of ['k3y-in-a-file', CI, KEY])
      expect((await send(app, { 'X-Upload-Key': key })).status).toBe(200)
    expectFailure(await send(app, { 'X-Upload-Key': '${CI_KEY}' }), 401, 'unauthorized')
  })
})

describe('attack: somebody guesses keys', () => {
  const config = { server: { key: KEY, trustProxy: ['loopback'] }, auth: { maxFailures: 3 } }
  const from = (app: TestApp, address: string, key: string): Promise<Answer> =>
    send(app, { 'X-Forwarded-For': address, 'X-Upload-Key': key })

  async function lockOut(app: TestApp, address: string) {
    for (let i = 0; i < 3; i++) expectFailure(await from(app, address, `guess-${i}`), 401, 'unauthorized')
    expectFailure(await from(app, address, KEY), 429, 'rate_limited')
  }

  it('behind a proxy that is trusted: others behind it go on', async () => {
    const app = await startApp({ config })
    await lockOut(app, '198.51.100.7')
    expect((await from(app, '198.51.100.8', KEY)).status).toBe(200)
    expect((await from(app, '2001:db8::1', KEY)).status).toBe(200)
  })

  it('from all addresses of his IPv6 network', async () => {
    const app = await startApp({ config })
    for (const host of ['1', '2', 'ffff:1']) {
      const answer = await from(app, `2001:db8:1:2::${host}`, 'guess')
      expectFailure(answer, 401, 'unauthorized')
    }
    expectFailure(await from(app, '2001:db8:1:2:9::9', KEY), 429, 'rate_limited')
    expect((await from(app, '2001:db8:1:3::1', KEY)).status).toBe(200)
  })

  it.each(['GET /page/me', 'GET /history', 'GET /metrics', 'POST /upload'])(
    'by %s: each guess is a warning in the log with the address, and the key in none',
    async what => {
      const app = await startApp({
        config: {
          ...config,
          auth: { maxFailures: 2 },
          metrics: { enabled: true, token: 't0ken-0f-prometheus' },
          page: { history: true },
        },
      })
      const [method = '', target = ''] = what.split(' ')
      const headers = { 'X-Forwarded-For': '198.51.100.7', 'X-Upload-Key': 'gu3ss-0f-a-stranger' }
      for (let i = 0; i < 3; i++) await ask(app.url, method, target, { headers })
      const refusals = app.log.filter(line => line['level'] === 'warn' && 'err' in line)
      expect(refusals).toMatchObject([
        { address: '198.51.100.7', req: { method, path: target }, err: { code: 'unauthorized' } },
        { address: '198.51.100.7', err: { code: 'unauthorized' } },
        { address: '198.51.100.7', err: { code: 'rate_limited' } },
      ])
      expect(app.rawLog()).not.toContain('gu3ss')
    },
  )

  it('by nobody who only looks at the page: no refusal is logged', async () => {
    const app = await startApp({ config })
    await ask(app.url, 'GET', '/', { headers: { 'X-Forwarded-For': '198.51.100.7' } })
    expect(app.log.filter(line => 'err' in line)).toEqual([])
  })

  it('and writes addresses of others in front of his own', async () => {
    const app = await startApp({ config })
    for (const claimed of ['192.0.2.1', '192.0.2.2', '127.0.0.1'])
      await from(app, `${claimed}, 198.51.100.9`, 'guess')
    expectFailure(await from(app, '192.0.2.77, 198.51.100.9', KEY), 429, 'rate_limited')
    for (const claimed of ['192.0.2.1', '192.0.2.2']) expect((await from(app, claimed, KEY)).status).toBe(200)
  })

  it('and claims other addresses where no proxy is trusted', async () => {
    const app = await startApp({ config: { ...config, server: { key: KEY } } })
    for (const claimed of ['192.0.2.1', '192.0.2.2', '192.0.2.3']) await from(app, claimed, 'guess')
    expectFailure(await from(app, '192.0.2.4', KEY), 429, 'rate_limited')
    // Programs on this machine are not asked for a key, and not kept out.
    expect((await post(`${app.url}/upload`, list('data:,hello'))).status).toBe(200)
  })

  it('behind a proxy on a Unix socket: others behind it go on', async () => {
    const directory = await makeDirectory()
    const socketPath = join(directory, 'upload.sock')
    await startApp({ directory, config: { ...config, server: { ...config.server, host: socketPath } } })
    const through = (address: string, key: string) =>
      ask('http://localhost', 'POST', '/upload', {
        socketPath,
        headers: { Host: 'localhost', 'X-Forwarded-For': address, 'X-Upload-Key': key },
        body: '{"list":["data:,hello"]}',
      })
    for (let i = 0; i < 3; i++) expect((await through('198.51.100.7', `guess-${i}`)).status).toBe(401)
    expect((await through('198.51.100.7', KEY)).status).toBe(429)
    expect((await through('192.0.2.1, 198.51.100.7', KEY)).status).toBe(429)
    expect((await through('198.51.100.8', KEY)).status).toBe(200)
  })

  it('a thousand of them in one request', async () => {
    const app = await startApp({ config })
    const query = Array.from({ length: 1000 }, (_, i) => `key=guess-${i}`).join('&')
    const right = await sendUpload(app.url, {
      line: `POST /upload?${query}&key=${KEY} HTTP/1.1`,
      headers: ['X-Forwarded-For: 198.51.100.1'],
      body: '{"list":["data:,hello"]}',
    })
    expectFailure(right, 401, 'unauthorized')
  })
})

it('attack: a proxy passes on a scheme that its client made up', async () => {
  const app = await startApp({ config: { server: { key: KEY, trustProxy: ['loopback'] } } })
  for (const scheme of ['javascript', 'data:text/html,', 'file', 'https://evil.example/?'])
    expect((await send(app, { 'X-Upload-Key': KEY, 'X-Forwarded-Proto': scheme })).result[0]).toMatch(
      /^http:\/\/127\.0\.0\.1:\d+\/files\//,
    )
})
