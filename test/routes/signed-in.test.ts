import { expect, it } from 'vitest'
import { ask } from '../helpers/ask.ts'
import { startApp, type TestApp } from '../helpers/start-app.ts'

const proxied = (proxy: object) => ({
  server: { key: 'k3y-0f-the-server' },
  auth: { proxy: { from: ['127.0.0.1'], ...proxy } },
  page: { history: true },
})

const get = (app: TestApp, path: string, headers: Record<string, string>) =>
  ask(app.url, 'GET', path, { headers })

it.each([
  [{ preset: 'authelia' }, 'remote-user', /can’t sign in there/, /Bearer \$UPLOAD_KEY/, 'Bearer YOUR_KEY'],
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
    const { body } = await get(app, '/', { [header]: 'alice' })
    expect(body).toContain('You are signed in (alice). No key is needed.')
    expect(body).toContain('<details id="key" hidden')
    expect(body).toMatch(says)
    expect(body).toMatch(curl)
    const file = JSON.parse((await get(app, '/upload-server.sxcu', { [header]: 'alice' })).body)
    expect(file.Headers?.Authorization).toBe(shareX)
  },
)

it('the page asks for no key where none helps', async () => {
  const app = await startApp({ config: proxied({ preset: 'authelia' }) })
  const { body } = await get(app, '/', { 'remote-user': 'alice,root' })
  expect(body).toContain('The proxy in front of this server does not say clearly who you are')
  expect(body).not.toContain('<strong>An upload key is required')
  expect(body).not.toContain('id="key"')
  expect((await get(app, '/', {})).body).toContain('id="key"')
})

it('the page names the maximum file size of the person, not that of the server', async () => {
  const app = await startApp({ config: proxied({ preset: 'authelia', fileSize: '5MB' }) })
  const { body } = await get(app, '/', { 'remote-user': 'alice' })
  expect(body).toContain('Up to 5 MB per file.')
  expect(body).toContain(`data-limit="${5 * 1024 * 1024}"`)
  expect((await get(app, '/', {})).body).toContain('Up to 100 MB per file.')
})

it.each<[what: string, headers: () => Record<string, string>, isGreeted: boolean]>([
  ['a link on another site', () => ({ 'Sec-Fetch-Site': 'cross-site' }), true],
  ['a script of another site', () => ({ Origin: 'https://evil.example' }), false],
  ['a sandboxed frame', () => ({ Origin: 'null' }), false],
  ['a name of the attacker that leads here', () => ({ Host: 'evil.example' }), false],
  ['a reverse proxy that sends its own name for the server', () => ({ Host: 'upload-server:36677' }), true],
])('the page and the history are read by %s', async (_, headers, isGreeted) => {
  const app = await startApp({ config: proxied({ preset: 'authelia' }) })
  const { status, body } = await get(app, '/', { 'Remote-User': 'alice', ...headers() })
  expect(status).toBe(200)
  expect(body.includes('alice')).toBe(isGreeted)
  expect(body.includes('id="key-form"')).toBe(isGreeted)
  const { 'Sec-Fetch-Site': unused, ...others } = headers()
  const history = await get(app, '/history', { 'Remote-User': 'alice', ...others })
  expect(history.status).toBe(isGreeted ? 200 : 403)
})
