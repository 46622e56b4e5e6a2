import { expect, it } from 'vitest'
import { ask } from '../helpers/ask.ts'
import { askMe } from '../helpers/page-me.ts'
import { startApp, type TestApp } from '../helpers/start-app.ts'

const proxied = (proxy: object) => ({
  server: { key: 'k3y-0f-the-server' },
  auth: { reverseProxy: { from: ['127.0.0.1'], ...proxy } },
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
    const { me, guide } = await askMe(app.url, { [header]: 'alice' })
    expect(me.visitor).toMatchObject({ admittedBy: 'proxy', user: 'alice' })
    expect(guide).toMatch(says)
    expect(guide).toMatch(curl)
    const file = JSON.parse((await get(app, '/upload-server.sxcu', { [header]: 'alice' })).body)
    expect(file.Headers?.Authorization).toBe(shareX)
  },
)

it('the page asks for no key where none helps', async () => {
  const app = await startApp({ config: proxied({ preset: 'authelia' }) })
  const { me } = await askMe(app.url, { 'remote-user': 'alice,root' })
  expect(me.visitor).toMatchObject({ code: 'unauthorized', isKeyUseless: true })
  expect((await askMe(app.url)).me.visitor).toMatchObject({ code: 'unauthorized', isKeyUseless: false })
})

it('the page names the maximum file size of the person, not that of the server', async () => {
  const app = await startApp({ config: proxied({ preset: 'authelia', fileSize: '5MB' }) })
  expect((await askMe(app.url, { 'remote-user': 'alice' })).me.fileSize).toBe(5 * 1024 * 1024)
  expect((await askMe(app.url)).me.fileSize).toBe(100 * 1024 * 1024)
})

it.each<[what: string, headers: () => Record<string, string>, isGreeted: boolean]>([
  ['the script of the page', () => ({ 'Sec-Fetch-Site': 'same-origin' }), true],
  ['a script of another site', () => ({ Origin: 'https://evil.example' }), false],
  ['a sandboxed frame', () => ({ Origin: 'null' }), false],
  ['a name of the attacker that leads here', () => ({ Host: 'evil.example' }), false],
  ['a reverse proxy that sends its own name for the server', () => ({ Host: 'upload-server:36677' }), true],
])('the page and the history are read by %s', async (_, headers, isGreeted) => {
  const app = await startApp({ config: proxied({ preset: 'authelia' }) })
  const { me, reply } = await askMe(app.url, { 'Remote-User': 'alice', ...headers() })
  expect(me.visitor.admittedBy === 'proxy').toBe(isGreeted)
  expect(reply.body.includes('alice')).toBe(isGreeted)
  const history = await get(app, '/history', { 'Remote-User': 'alice', ...headers() })
  expect(history.status).toBe(isGreeted ? 200 : 403)
})
