import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../src/config/load.ts'
import { ask } from './helpers/ask.ts'
import { makeDirectory } from './helpers/directory.ts'
import { sendRaw } from './helpers/raw-request.ts'
import { shareApp, startApp, type TestApp } from './helpers/start-app.ts'

const KEY = 'k3y-0f-the-server'
const SECRET = 's3cret-0f-the-proxy'
const FORM = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhi\r\n--b--\r\n'
const TYPE = 'Content-Type: multipart/form-data; boundary=b'

const withProxy = (proxy: object, auth: object = {}, server: object = {}) => ({
  server: { key: KEY, ...server },
  auth: { reverseProxy: { from: ['127.0.0.1'], ...proxy }, ...auth },
  page: { history: true },
})

async function upload(app: TestApp, ...headers: string[]) {
  const { status, body } = await sendRaw(app.url, { headers: [TYPE, ...headers], body: FORM })
  const answer = JSON.parse(body.toString('utf8')) as { code?: string; message?: string }
  const lines = app.log.filter(line => (line['req'] as { path?: string } | undefined)?.path === '/upload')
  return { status, code: answer.code, message: answer.message, line: lines.at(-1) }
}

describe('with the preset "authelia"', () => {
  const app = shareApp({ config: withProxy({ preset: 'authelia' }) })

  it('the person is the caller, in the log and in the history', async () => {
    const { status, line } = await upload(app(), 'Remote-User: zoë')
    expect(status).toBe(200)
    expect(line).toMatchObject({ admittedBy: 'proxy', caller: 'proxy: zoë' })
    const history = async (user: string) =>
      JSON.parse((await ask(app().url, 'GET', '/history', { headers: { 'Remote-User': user } })).body).result
    expect(await history(Buffer.from('zoë').toString('latin1'))).toHaveLength(1)
    expect(await history('bob')).toEqual([])
  })

  it.each<[what: string, headers: string[], why: RegExp]>([
    ['two people', ['Remote-User: alice', 'Remote-User: root'], /more than once/],
    ['one person twice', ['Remote-User: alice', 'remote-user: alice'], /more than once/],
    ['a list', ['Remote-User: alice, root'], /comma/],
    ['nobody', ['Remote-User:'], /is empty/],
    ['a long name', [`Remote-User: ${'a'.repeat(256)}`], /longer than 255 bytes/],
    ['control characters', ['Remote-User: a\tb'], /control characters/],
    ['bytes that are not UTF-8', ['Remote-User: a\u{fffd}'], /not valid UTF-8/],
    ['a twin with an underscore', ['Remote-User: alice', 'Remote_User: root'], /underscores/],
    ['one of so many headers', ['Remote-User: alice', ...Array(501).fill('X-A: b')], /more than 500 headers/],
    ['a variable of Caddy', ['Remote-User: {http.reverse_proxy.header.Remote-User}'], /placeholder/],
    ['nobody, in the words of Apache', ['Remote-User: (null)'], /placeholder/],
    ['only the twin', ['REMOTE_USER: root'], /underscores/],
  ])('attack: the header names %s, beside a right key, too', async (_, headers, why) => {
    const before = await app().files()
    for (const key of [[], [`X-Upload-Key: ${KEY}`]]) {
      const { status, code, message, line } = await upload(app(), ...headers, ...key)
      expect({ status, code }).toEqual({ status: 401, code: 'unauthorized' })
      expect(message).not.toMatch(/remote-user/i)
      expect(JSON.stringify(line)).toMatch(why)
      expect(line).toMatchObject({ address: '127.0.0.1', requestId: expect.any(String) })
    }
    expect(await app().files()).toEqual(before)
  })

  it('{user} of the key template is the person, or the name of the upload key', async () => {
    const named = await startApp({
      config: { ...withProxy({ preset: 'authelia' }), keyTemplate: '{user}/{filename}{extname}' },
    })
    await upload(named, 'Remote-User: bob')
    await upload(named, `X-Upload-Key: ${KEY}`)
    await upload(named, 'Remote-User: ..\\..\\root')
    expect((await named.files()).join(' ')).toMatch(
      /files\/bob\/a\.txt \S*files\/root-[0-9a-f]{6}\/a\.txt \S*files\/server\/a\.txt/,
    )
  })

  it('nobody is named: a key counts, and loopback and anonymous do not', async () => {
    const alone = await startApp({ config: withProxy({ preset: 'authelia' }, { anonymous: true }) })
    expect(await upload(alone)).toMatchObject({
      status: 401,
      message: expect.stringContaining('auth.reverseProxy'),
    })
    expect(await upload(alone, `X-Upload-Key: ${KEY}`)).toMatchObject({
      status: 200,
      line: { caller: 'server', admittedBy: 'key' },
    })
  })

  it('its mistakes are no wrong keys', async () => {
    const strict = await startApp({ config: withProxy({ preset: 'authelia' }, { maxFailures: 1 }) })
    for (let i = 0; i < 5; i++) await upload(strict, 'Remote-User:')
    expect(await upload(strict, 'Remote-User: alice')).toMatchObject({ status: 200 })
    expect(await upload(strict, `X-Upload-Key: ${KEY}`)).toMatchObject({ status: 200 })
  })
})

describe('who may name people', () => {
  it('a peer that is not listed names nobody', async () => {
    const app = await startApp({ config: withProxy({ from: ['192.0.2.7'], preset: 'authelia' }) })
    expect(await upload(app, 'Remote-User: alice')).toMatchObject({ status: 401, code: 'unauthorized' })
    expect(await upload(app, 'Remote-User: alice', `X-Upload-Key: ${KEY}`)).toMatchObject({
      status: 200,
      line: { caller: 'server' },
    })
    expect(await upload(app)).toMatchObject({ status: 200, line: { caller: 'loopback' } })
  })

  it('a secret is asked for, compared whole, and is in no log line', async () => {
    const secretHeader = { name: 'X-Proxy-Secret', value: SECRET }
    const app = await startApp({
      config: withProxy({ from: ['127.0.0.0/8'], userHeader: 'X-Who', secretHeader }, { maxFailures: 1 }),
    })
    for (const secret of [[], ['X-Proxy-Secret: wrong'], [`X-Proxy-Secret: ${SECRET}x`]])
      expect(await upload(app, 'X-Who: alice', ...secret)).toMatchObject({
        status: 401,
        line: { proxy: 'the header "x-proxy-secret" is missing or wrong' },
      })
    expect(await upload(app, `X-Proxy-Secret: ${SECRET}`)).toMatchObject({
      status: 401,
      line: { proxy: 'the header "x-who" is missing' },
    })
    const twice = [`X-Proxy-Secret: ${SECRET}`, 'X-Proxy-Secret: wrong']
    expect(await upload(app, 'X-Who: alice', ...twice)).toMatchObject({ status: 401 })
    expect(await upload(app, 'X-Who: a, b', `X-Proxy-Secret: ${SECRET}`)).toMatchObject({
      status: 200,
      line: { caller: 'proxy: a, b' },
    })
  })

  it('a secret may have letters of any language, which nginx sends as UTF-8', async () => {
    const secretHeader = { name: 'X-Proxy-Secret', value: `Größe-${SECRET}` }
    const app = await startApp({
      config: withProxy({ from: ['127.0.0.1'], preset: 'authelia', secretHeader }),
    })
    const secret = `X-Proxy-Secret: ${secretHeader.value}`
    expect(await upload(app, 'Remote-User: alice', secret)).toMatchObject({
      status: 200,
      line: { caller: 'proxy: alice' },
    })
  })

  it('the Unix socket of the server', async () => {
    const host = join(await makeDirectory(), 'upload.sock')
    const app = await startApp({ config: withProxy({ from: ['unix'], preset: 'tailscale' }, {}, { host }) })
    const headers = { 'Content-Type': 'text/plain', 'Tailscale-User-Login': 'alice@example.com' }
    const put = (more: object) =>
      ask('http://localhost', 'PUT', '/upload/a.txt', {
        headers: { ...headers, ...more },
        body: 'hi',
        socketPath: host,
      })
    expect(await put({})).toMatchObject({ status: 200 })
    expect(await put({ 'Tailscale-User-Login': '' })).toMatchObject({ status: 401 })
    expect(app.log.find(line => line['stored'] === 1)).toMatchObject({ caller: 'proxy: alice@example.com' })
  })

  it('where it is not enough, the key decides what the person may do', async () => {
    const keys = [{ name: 'paths', key: 'an0ther-key', sources: ['path'] }]
    const app = await startApp({ config: withProxy({ preset: 'authelia', requireKey: true }, { keys }) })
    const line = { caller: 'proxy: alice' }
    expect(await upload(app, 'Remote-User: alice')).toMatchObject({ status: 401, line })
    expect(await upload(app, 'Remote-User: alice', 'X-Upload-Key: no')).toMatchObject({
      status: 401,
      line: { ...line, wrongKey: true },
    })
    expect(await upload(app, 'Remote-User: alice', `X-Upload-Key: ${KEY}`)).toMatchObject({
      status: 200,
      line,
    })
    expect(await upload(app, 'Remote-User: alice', 'X-Upload-Key: an0ther-key')).toMatchObject({
      status: 403,
    })
  })

  it.each([
    ['Remote-User: alice'],
    ['X-Remote-User: alice'],
    ['X_authentik_username: alice'],
    ['X-Auth-Request-Email: alice'],
    ['Tailscale-User-Login: alice'],
    ['Cf-Access-Jwt-Assertion: x'],
    ['X-Goog-IAP-JWT-Assertion: x'],
    ['X-Pomerium-Jwt-Assertion: x'],
    ['X_Forwarded_For: 203.0.113.9'],
  ])('attack: what a proxy forwards with "%s" is taken for a program of this machine', async header => {
    const app = await startApp({ config: { server: { key: KEY } } })
    expect(await upload(app, header)).toMatchObject({
      status: 401,
      message: expect.stringMatching(/proxies add/),
    })
  })
})

it('the operator is not warned of a reverse proxy whose requests are never local', async () => {
  const config = withProxy({ preset: 'authelia' }, {}, { publicUrl: 'https://img.example.com' })
  const app = await startApp({ config })
  await upload(app, 'Remote-User: alice', 'X-Forwarded-For: 203.0.113.9')
  expect(app.log.filter(({ level }) => level === 'warn')).toEqual([])
})

it('attack: a person whom the proxy names reads the metrics', async () => {
  const token = 'the-token-of-the-scraper'
  const config = { ...withProxy({ preset: 'authelia' }), metrics: { enabled: true, token } }
  const app = await startApp({ config })
  const read = async (headers: Record<string, string>) =>
    (await ask(app.url, 'GET', '/metrics', { headers })).status
  expect(await read({ 'Remote-User': 'alice' })).toBe(401)
  expect(await read({ 'Remote-User': 'alice', Authorization: `Bearer ${token}` })).toBe(200)
})

describe('pages of other sites', () => {
  const named = shareApp({
    config: withProxy({ preset: 'authelia' }, { allowedOrigins: ['https://ok.example'] }),
  })
  const keys = [{ name: 'proxied', key: 'a-key-of-the-proxy', addedByProxy: true }]
  const publicUrl = 'https://img.example.com/path'
  const keyed = shareApp({ config: { server: { publicUrl }, auth: { keys, loopbackExempt: false } } })
  const own = () => `Origin: ${named().url}`

  it.each<[string, () => string[], status: number]>([
    ['no page', () => [], 200],
    ['its own page', () => [own(), 'Sec-Fetch-Site: same-origin'], 200],
    ['a program', () => ['Origin: app://obsidian.md', 'Sec-Fetch-Site: cross-site'], 200],
    ['a trusted site', () => ['Origin: https://ok.example', 'Sec-Fetch-Site: cross-site'], 200],
    ['another site', () => ['Origin: https://evil.example'], 403],
    ['another port', () => [`Origin: ${named().url}1`, 'Sec-Fetch-Site: same-site'], 403],
    ['another scheme', () => [own().replace('http:', 'https:')], 403],
    ['its own behind TLS', () => [own().replace('http:', 'https:'), 'X-Forwarded-Proto: https'], 200],
    ['a sandboxed frame', () => ['Origin: null'], 403],
    ['an image', () => ['Sec-Fetch-Site: cross-site'], 403],
    ['a rebound name', () => ['Host: evil.example', 'Origin: http://evil.example'], 403],
  ])('who is named by a proxy uploads from %s', async (_, headers, status) => {
    const answer = await upload(named(), 'Remote-User: alice', ...headers())
    expect(answer.status).toBe(status)
    if (status === 403)
      expect(answer).toMatchObject({ code: 'origin_forbidden', line: { caller: 'proxy: alice' } })
  })

  it('the history and finalization are refused, pages and files are not', async () => {
    const headers = { 'Remote-User': 'alice', Origin: 'https://evil.example' }
    const get = async (method: string, path: string) =>
      (await ask(named().url, method, path, { headers })).status
    expect(await get('GET', '/history')).toBe(403)
    expect(await get('POST', '/upload?finalizationId=x')).toBe(403)
    expect(await get('GET', '/')).toBe(200)
    expect(await get('GET', '/files/Default/none')).toBe(404)
  })

  it('with publicUrl no other origin is the own one, for keys that a proxy adds, too', async () => {
    const key = 'X-Upload-Key: a-key-of-the-proxy'
    const from = async (origin: string) => (await upload(keyed(), key, `Origin: ${origin}`)).status
    expect(await from('https://img.example.com')).toBe(200)
    expect(await from(keyed().url)).toBe(403)
    expect((await upload(keyed(), key)).status).toBe(200)
  })
})

it.each<[what: string, proxy: object, says: RegExp, server?: object]>([
  [
    'a range without a secret',
    { from: ['10.0.0.0/8'], preset: 'authelia' },
    /auth\.reverseProxy\.from.*range/s,
  ],
  ['no header', { from: ['10.0.0.1'] }, /auth\.reverseProxy\.userHeader.*missing/s],
  ['the header of keys', { from: ['10.0.0.1'], userHeader: 'X-Upload-Key' }, /userHeader/],
  ['an underscore', { from: ['10.0.0.1'], userHeader: 'X_User' }, /userHeader/],
  ['a socket that is none', { from: ['unix'], preset: 'authelia' }, /server\.host is not a Unix socket/],
  ['a hostname', { from: ['proxy.example'], preset: 'authelia' }, /auth\.reverseProxy\.from/],
  ['an unknown destination', { from: ['::1'], preset: 'authelia', destinations: ['s3/x'] }, /destinations/],
  [
    'one header for both',
    { from: ['::1'], userHeader: 'X-A', secretHeader: { name: 'x-a', value: 'b' } },
    /secretHeader/,
  ],
])('a configuration of auth.reverseProxy with %s was taken', async (_, proxy, says) => {
  const cwd = await makeDirectory()
  const file = join(cwd, 'upload-server.json')
  const providers = { local: { a: { directory: 'a' } } }
  await writeFile(file, JSON.stringify({ auth: { reverseProxy: proxy }, providers }))
  await expect(loadConfig({ env: {}, platform: 'linux', cwd, file })).rejects.toThrow(says)
})

it.each(['proxy: alice', 'token ci'])('a key was called "%s"', async name => {
  const cwd = await makeDirectory()
  const file = join(cwd, 'upload-server.json')
  await writeFile(file, JSON.stringify({ auth: { keys: [{ name, key: 'abc' }] } }))
  await expect(loadConfig({ env: {}, platform: 'linux', cwd, file })).rejects.toThrow(
    /is reserved for other clients/,
  )
})
