import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { Agent, type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ask } from '../helpers/ask.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { expectFailure } from '../helpers/expect-answer.ts'
import { formOf, list, post } from '../helpers/form.ts'
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

it('keys may come from the environment, from a file, and from a file with a line end', async () => {
  const directory = await makeDirectory()
  await writeFile(join(directory, 'one'), 'k3y-in-a-file\n')
  const keys = [
    { name: 'file', key: '${file:one}' },
    { name: 'variable', key: '${CI_KEY}' },
  ]
  const env = { CI_KEY: CI, UPLOAD_SERVER_KEY: KEY }
  const app = await startApp({ directory, config: { auth: { keys } }, env })
  for (const key of ['k3y-in-a-file', CI, KEY])
    expect((await send(app, { 'X-Upload-Key': key })).status).toBe(200)
  expectFailure(await send(app, { 'X-Upload-Key': '${CI_KEY}' }), 401, 'unauthorized')
})

describe('attack: somebody guesses keys', () => {
  const config = { server: { key: KEY, trustProxy: ['loopback'] }, auth: { maxFailures: 3 } }
  const ONE = '198.51.100.7'
  const statusOf = async (app: TestApp, address: string, key: string) =>
    (await send(app, { 'X-Forwarded-For': address, 'X-Upload-Key': key })).status

  interface Guesser {
    /** Default: with a trusted proxy. */
    readonly server?: object
    readonly guesses: readonly string[]
    readonly isLockedOut: string
    readonly goOn: readonly string[]
  }
  it.each<[who: string, guesser: Guesser]>([
    [
      'behind a proxy that is trusted: others behind it go on',
      { guesses: Array(3).fill(ONE), isLockedOut: ONE, goOn: ['198.51.100.8', '2001:db8::1'] },
    ],
    [
      'and writes addresses of others in front of his own',
      {
        guesses: ['192.0.2.1', '192.0.2.2', '127.0.0.1'].map(one => `${one}, ${ONE}`),
        ...{ isLockedOut: `192.0.2.77, ${ONE}`, goOn: ['192.0.2.1', '192.0.2.2'] },
      },
    ],
    [
      'and claims other addresses where no proxy is trusted',
      {
        server: { key: KEY },
        guesses: ['192.0.2.1', '192.0.2.2', '192.0.2.3'],
        isLockedOut: '192.0.2.4',
        goOn: [],
      },
    ],
  ])('%s', async (_, { server = config.server, guesses, isLockedOut, goOn }) => {
    const app = await startApp({ config: { ...config, server } })
    for (const address of guesses) expect(await statusOf(app, address, 'guess')).toBe(401)
    expect(await statusOf(app, isLockedOut, KEY)).toBe(429)
    for (const address of goOn) expect(await statusOf(app, address, KEY)).toBe(200)
    // Programs on this machine are not asked for a key, and not kept out.
    expect((await post(`${app.url}/upload`, list('data:,hello'))).status).toBe(200)
  })

  it('behind a proxy on a Unix socket: others behind it go on', async () => {
    const directory = await makeDirectory()
    const socketPath = join(directory, 'upload.sock')
    await startApp({ directory, config: { ...config, server: { ...config.server, host: socketPath } } })
    const through = async (address: string, key: string) => {
      const headers = { Host: 'localhost', 'X-Forwarded-For': address, 'X-Upload-Key': key }
      const question = { socketPath, headers, body: '{"list":["data:,hello"]}' }
      return (await ask('http://localhost', 'POST', '/upload', question)).status
    }
    for (let i = 0; i < 3; i++) expect(await through(ONE, `guess-${i}`)).toBe(401)
    for (const address of [ONE, `192.0.2.1, ${ONE}`]) expect(await through(address, KEY)).toBe(429)
    expect(await through('198.51.100.8', KEY)).toBe(200)
  })

  it.each(['GET /page/me', 'GET /history', 'GET /metrics', 'POST /upload'])(
    'by %s: each guess is a warning in the log with the address, and the key in none',
    async what => {
      const more = { metrics: { enabled: true, token: 't0ken-0f-prometheus' }, page: { history: true } }
      const app = await startApp({ config: { ...config, ...more, auth: { maxFailures: 2 } } })
      const [method = '', target = ''] = what.split(' ')
      const headers = { 'X-Forwarded-For': ONE, 'X-Upload-Key': 'gu3ss-0f-a-stranger' }
      for (let i = 0; i < 3; i++) await ask(app.url, method, target, { headers })
      const refusals = app.log.filter(line => line['level'] === 'warn' && 'err' in line)
      expect(refusals).toMatchObject(
        ['unauthorized', 'unauthorized', 'rate_limited'].map(code => ({ address: ONE, err: { code } })),
      )
      expect(refusals[0]).toMatchObject({ req: { method, path: target } })
      expect(app.rawLog()).not.toContain('gu3ss')
    },
  )

  it('by nobody who only looks at the page: no refusal is logged', async () => {
    const app = await startApp({ config })
    await ask(app.url, 'GET', '/', { headers: { 'X-Forwarded-For': ONE } })
    expect(app.log.filter(line => 'err' in line)).toEqual([])
  })
})

describe('a key is replaced by a reload', () => {
  const withKey = (key: string, maxFailures = 3) => ({
    server: { key, trustProxy: ['loopback'] },
    auth: { loopbackExempt: false, maxFailures },
  })
  const statusOf = async (app: TestApp, key: string, address = '203.0.113.9') =>
    (await send(app, { 'X-Upload-Key': key, 'X-Forwarded-For': address })).status

  /** A form that is admitted, and not yet whole. */
  async function beginForm(url: string, key: string, agent: Agent) {
    const type = 'multipart/form-data; boundary=b'
    const headers = { 'X-Upload-Key': key, 'Content-Type': type, Expect: '100-continue' }
    const sent = request(`${url}/upload`, { method: 'POST', agent, headers })
    const answered = once(sent, 'response')
    sent.flushHeaders()
    await once(sent, 'continue')
    sent.write('--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhel')
    return {
      async finish() {
        sent.end('lo\r\n--b--\r\n')
        const [response] = (await answered) as [IncomingMessage]
        response.resume()
        await once(response, 'end')
        return response.statusCode
      },
    }
  }

  it('attack: the old key goes on over connections that were open, while what it had begun ends well', async () => {
    const app = await startApp({ config: withKey('old-upload-key') })
    const agent = new Agent({ keepAlive: true, maxSockets: 8 })
    onTestFinished(() => agent.destroy())
    const running = await Promise.all(
      Array.from({ length: 8 }, () => beginForm(app.url, 'old-upload-key', agent)),
    )
    await app.reload(withKey('new-upload-key'))
    expect([await statusOf(app, 'old-upload-key'), await statusOf(app, 'new-upload-key')]).toEqual([401, 200])
    for (const form of running) expect(await form.finish()).toBe(200)
    const headers = { 'X-Upload-Key': 'old-upload-key' }
    const again = request(`${app.url}/upload`, { method: 'POST', agent, headers })
    again.end('{"list":["data:,hello"]}')
    const [answer] = (await once(again, 'response')) as [IncomingMessage]
    answer.resume()
    expect([again.reusedSocket, answer.statusCode]).toEqual([true, 401])
  })

  it('attack: somebody guesses on after each reload', async () => {
    const app = await startApp({ config: withKey('old-upload-key') })
    expect([await statusOf(app, 'guess-1'), await statusOf(app, 'guess-2')]).toEqual([401, 401])
    await app.reload(withKey('new-upload-key'))
    expect([await statusOf(app, 'guess-3'), await statusOf(app, 'new-upload-key')]).toEqual([401, 429])
    await app.reload(withKey('newer-upload-key'))
    expect(await statusOf(app, 'newer-upload-key')).toBe(429)
    expect(await statusOf(app, 'newer-upload-key', '203.0.113.10')).toBe(200)
    // Whoever runs the server may let them in again.
    await app.reload(withKey('newer-upload-key', 30))
    expect(await statusOf(app, 'newer-upload-key')).toBe(200)
  })
})

it('attack: a proxy passes on a scheme that its client made up', async () => {
  const app = await startApp({ config: { server: { key: KEY, trustProxy: ['loopback'] } } })
  for (const scheme of ['javascript', 'data:text/html,', 'file', 'https://evil.example/?'])
    expect((await send(app, { 'X-Upload-Key': KEY, 'X-Forwarded-Proto': scheme })).result[0]).toMatch(
      /^http:\/\/127\.0\.0\.1:\d+\/files\//,
    )
})
