import { describe, expect, it } from 'vitest'
import { ask } from '../helpers/ask.ts'
import { askMe } from '../helpers/page-me.ts'
import { shareApp, startApp, type TestApp } from '../helpers/start-app.ts'

// Whom a reverse proxy names, and which pages may use it, stands in test/routes/access.test.ts.

const KEY = 'k3y-0f-the-server'
const proxied = (proxy: object, more: object = {}) => ({
  server: { key: KEY },
  auth: { reverseProxy: { from: ['127.0.0.1'], ...proxy } },
  page: { history: true },
  ...more,
})
const AUTHELIA = { preset: 'authelia' }
const EVIL = 'https://evil.example'

const get = (app: TestApp, path: string, headers: Record<string, string>) =>
  ask(app.url, 'GET', path, { headers })
const put = (app: TestApp, headers: Record<string, string>) =>
  ask(app.url, 'PUT', '/upload/a.txt', {
    headers: { 'Content-Type': 'text/plain', ...headers },
    body: Buffer.from('hi'), // Node would send the headers as UTF-8 with a text
  })

const shared = shareApp({ config: proxied(AUTHELIA) })

it('a person is the caller in the log and in the history, and {user} of the key template', async () => {
  const app = await startApp({ config: proxied(AUTHELIA, { keyTemplate: '{user}/{filename}{extname}' }) })
  const zoe = Buffer.from('zoë').toString('latin1')
  const sent = { 'Remote-User': zoe } as Record<string, string>
  for (const headers of [sent, { 'Remote-User': '..\\..\\root' }, { 'X-Upload-Key': KEY }])
    expect((await put(app, headers)).status).toBe(200)
  expect(app.log.filter(line => line['stored'] === 1)).toMatchObject([
    { caller: 'proxy: zoë', admittedBy: 'proxy' },
    { caller: 'proxy: ..\\..\\root', admittedBy: 'proxy' },
    { caller: 'server', admittedBy: 'key' },
  ])
  const history = async (user: string) =>
    JSON.parse((await get(app, '/history', { 'Remote-User': user })).body).result
  expect(await history(zoe)).toHaveLength(1)
  expect(await history('bob')).toEqual([])
  expect((await app.files()).join(' ')).toMatch(
    /files\/root-[0-9a-f]{6}\/a\.txt \S*files\/server\/a\.txt \S*files\/zoë/,
  )
})

it('attack: a person whom the proxy names reads the metrics', async () => {
  const token = 'the-token-of-the-scraper'
  const app = await startApp({ config: proxied(AUTHELIA, { metrics: { enabled: true, token } }) })
  const alice = { 'Remote-User': 'alice' }
  expect((await get(app, '/metrics', alice)).status).toBe(401)
  expect((await get(app, '/metrics', { ...alice, Authorization: `Bearer ${token}` })).status).toBe(200)
})

it.each([
  [AUTHELIA, 'remote-user', /can’t sign in there/, /Bearer \$UPLOAD_KEY/, 'Bearer YOUR_KEY'],
  [{ preset: 'tailscale' }, 'tailscale-user-login', /recognizes your machine/, /curl -F file/, undefined],
  [
    { userHeader: 'X-User' },
    'x-user',
    /If it asks for a user name and password/,
    /curl -u &quot;\$UPLOAD_USER&quot;/,
    'Basic {base64:NAME:PASSWORD}',
  ],
])(
  'for a person whom %j names, the examples fit what is in front',
  async (proxy, header, says, curl, shareX) => {
    const app = await startApp({ config: proxied(proxy) })
    const { me, guide } = await askMe(app.url, { [header]: 'alice' })
    expect(me.visitor).toMatchObject({ admittedBy: 'proxy', user: 'alice' })
    expect(guide).toMatch(says)
    expect(guide).toMatch(curl)
    const file = JSON.parse((await get(app, '/upload-server.sxcu', { [header]: 'alice' })).body)
    expect(file.Headers?.Authorization).toBe(shareX)
  },
)

it('the page asks for no key where none helps', async () => {
  const { me } = await askMe(shared().url, { 'remote-user': 'alice,root' })
  expect(me.visitor).toMatchObject({ code: 'unauthorized', isKeyUseless: true })
  expect((await askMe(shared().url)).me.visitor).toMatchObject({ code: 'unauthorized', isKeyUseless: false })
})

it('the page names the maximum file size of the person, not that of the server', async () => {
  const app = await startApp({ config: proxied({ ...AUTHELIA, fileSize: '5MB' }) })
  expect((await askMe(app.url, { 'remote-user': 'alice' })).me.fileSize).toBe(5 * 1024 * 1024)
  expect((await askMe(app.url)).me.fileSize).toBe(100 * 1024 * 1024)
})

it.each<[what: string, headers: Record<string, string>, isGreeted: boolean]>([
  ['the script of the page', { 'Sec-Fetch-Site': 'same-origin' }, true],
  ['a script of another site', { Origin: EVIL }, false],
  ['a sandboxed frame', { Origin: 'null' }, false],
  ['a name of the attacker that leads here', { Host: 'evil.example' }, false],
  ['a reverse proxy that sends its own name for the server', { Host: 'upload-server:36677' }, true],
])('the page and the history are read by %s', async (_, more, isGreeted) => {
  const headers = { 'Remote-User': 'alice', ...more }
  const { me, reply } = await askMe(shared().url, headers)
  expect(me.visitor.admittedBy === 'proxy').toBe(isGreeted)
  expect(reply.body.includes('alice')).toBe(isGreeted)
  expect((await get(shared(), '/history', headers)).status).toBe(isGreeted ? 200 : 403)
  const finish = await ask(shared().url, 'POST', '/upload?finalizationId=x', { headers })
  expect(finish.status, 'a browser sends an origin with a POST').toBe('Origin' in more ? 403 : 404)
})

describe('a proxy on this machine that shows itself', () => {
  const warnings = (app: TestApp) =>
    app.log.filter(line => line['level'] === 'warn' && /proxy on this machine/.test(String(line['msg'])))
  const FORWARDED = { 'X-Forwarded-For': '203.0.113.9' }

  it.each(['X-Forwarded-For', 'X-Real-IP', 'Via', 'Forwarded'])(
    'by %s: the log says once what to set',
    async name => {
      const app = await startApp({ config: { server: { key: KEY } } })
      await ask(app.url, 'GET', '/')
      expect(warnings(app)).toEqual([])
      for (const path of ['/files/Default/a', '/page/me', '/upload'])
        await get(app, path, { [name]: '203.0.113.9' })
      expect(warnings(app)).toMatchObject([{ msg: expect.stringContaining('auth.loopbackExempt to false') }])
    },
  )

  it.each<[where: string, config: Record<string, unknown>]>([
    ['auth.loopbackExempt is false', { auth: { loopbackExempt: false } }],
    ['its requests are never local', proxied(AUTHELIA, { server: { publicUrl: 'https://img.example.com' } })],
  ])('is not spoken of where %s', async (_, config) => {
    const app = await startApp({ config })
    await get(app, '/', { 'Remote-User': 'alice', ...FORWARDED })
    expect(warnings(app)).toEqual([])
  })
})
