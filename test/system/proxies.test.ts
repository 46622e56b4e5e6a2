import { describe, expect, it, type TestContext } from 'vitest'
import { ask } from '../helpers/ask.ts'
import { expectNoWayAround } from '../helpers/behind-proxy.ts'
import { download } from '../helpers/form.ts'
import { makePicture } from '../helpers/picture.ts'
import { sendRaw } from '../helpers/raw-request.ts'
import {
  APACHE,
  BASIC,
  CADDY,
  EXAMPLES,
  type Example,
  KEY,
  NGINX,
  NGINX_SSO,
  SECRET,
  type SignIn,
  startExample,
} from '../helpers/sign-in-proxies.ts'
import { serve } from '../uploader/sources/servers.ts'

const FORM = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhi\r\n--b--\r\n'
const TYPE = 'Content-Type: multipart/form-data; boundary=b'

/** Uploads a file with these header lines. @returns the status and who the server says it was */
async function upload({ app, url }: SignIn, headers: readonly string[], path = '/upload') {
  const count = app.log.length
  const { status, body } = await sendRaw(url, {
    line: `POST ${path} HTTP/1.1`,
    headers: [TYPE, ...headers],
    body: FORM,
  })
  // The line is written once the response has been sent.
  const lines = () => app.log.slice(count).filter(line => 'req' in line)
  if (body.includes('"requestId"') || status === 200) await expect.poll(lines).not.toEqual([])
  return { status, line: lines().at(-1), body: body.toString() }
}

/** What a client may send that wants to be somebody else. */
function claims(header: string): [what: string, lines: string[]][] {
  const twin = header.replaceAll('-', '_')
  return [
    ['the header', [`${header}: root`]],
    ['the header in upper case', [`${header.toUpperCase()}: root`]],
    ['the header twice', [`${header}: root`, `${header.toLowerCase()}: root`]],
    ['the header, empty', [`${header}:`]],
    ['a list', [`${header}: alice, root`]],
    ['the twin', [`${twin}: root`]],
    ['the twin in upper case, twice', [`${twin.toUpperCase()}: root`, `${twin}: root`]],
    ['half a twin', [`${header.replace('-', '_')}: root`]],
    ['a secret', [`${header}: root`, 'X-Proxy-Secret: guessed']],
    ['the right secret', [`${header}: root`, `X-Proxy-Secret: ${SECRET}`]],
    ['a twin of the secret', [`${header}: root`, `X_Proxy_Secret: ${SECRET}`]],
    ['that the proxy drops its header', [`Connection: ${header}`, `${header}: root`]],
    ['that the proxy drops its secret', ['Connection: X-Proxy-Secret', `${header}: root`]],
    ['a trailer', ['TE: trailers', `Trailer: ${header}`]],
    ['an address', ['X-Forwarded-For: 203.0.113.9', 'Forwarded: for=203.0.113.9', `${header}: root`]],
  ]
}

describe.each(EXAMPLES)('behind docs/examples/$file', one => {
  const { userHeader } = one
  const start = (context: TestContext) => startExample(one, context)

  it('a person uploads, and the log of the server has the name and no secret', async context => {
    const here = await start(context)
    const { status, line, body } = await upload(here, [here.alice])
    expect({ status, body }).toMatchObject({ status: 200, body: expect.stringContaining(here.url) })
    expect(line).toMatchObject({ caller: 'proxy: alice', admittedBy: 'proxy', address: '127.0.0.1' })
    expect((await upload(here, [here.alice], `/upload?key=${KEY}`)).status).toBe(200)
    await expect.poll(here.accessLog).toContain('/upload')
    if (here.alice === BASIC) expect(await here.accessLog()).toContain('alice')
    for (const secret of [KEY, SECRET])
      expect((await here.accessLog()) + here.app.rawLog()).not.toContain(secret)
    const [, path = ''] = new RegExp(`${here.url}(/files/[^"]*)`).exec(body) ?? []
    expect(await sendRaw(here.url, { line: `GET ${path} HTTP/1.1` })).toMatchObject({ status: 200 })
    // More than a proxy keeps in memory, and in an unknown number of pieces.
    const picture = makePicture(5 * 1024 * 1024)
    const [name = '', value = ''] = here.alice.split(': ')
    for (const headers of [{ 'Transfer-Encoding': 'chunked' }, { 'Content-Length': picture.length }]) {
      const sent = { [name]: value, 'Content-Type': 'image/png', ...headers }
      const reply = await ask(here.url, 'PUT', '/upload/b.png', { headers: sent, body: picture })
      expect(picture.equals(await download(JSON.parse(reply.body).result[0]))).toBe(true)
    }
    const page = await sendRaw(here.url, { line: 'GET /page/me HTTP/1.1', headers: [here.alice] })
    expect(JSON.parse(page.body.toString()).result.visitor).toMatchObject({
      admittedBy: 'proxy',
      user: 'alice',
    })
  })

  it('attack: a person claims to be another one', async context => {
    const here = await start(context)
    for (const [what, lines] of claims(userHeader)) {
      for (const headers of [
        [here.alice, ...lines],
        [...lines, here.alice],
      ]) {
        const { status, line } = await upload(here, headers)
        expect.soft([200, 401], what).toContain(status)
        if (status === 200) expect.soft(line, what).toMatchObject({ caller: 'proxy: alice' })
        else expect.soft(line?.['caller'], what).toBeUndefined()
      }
    }
    expect(here.app.rawLog()).not.toMatch(/"caller":"(?!proxy: alice")|203\.0\.113\.9/)
  })

  it('attack: a remote client without a password claims to be someone', async context => {
    const here = await start(context)
    const sessions = [
      [],
      here.nameless === undefined ? [] : [here.nameless],
      [BASIC.replace(/ \w+=*$/, ` ${Buffer.from('alice:sesame').toString('base64')}`)],
      [`X-Upload-Key: ${KEY}`],
      [`Authorization: Bearer ${KEY}`],
    ]
    for (const session of sessions)
      for (const [what, lines] of [['nothing', []] as const, ...claims(userHeader)]) {
        const { status } = await upload(here, [...session, ...lines])
        expect.soft(status, what).toBe(401)
      }
    expect(await here.app.files()).toEqual([])
    expect(here.app.log.filter(line => 'caller' in line)).toEqual([])
  })

  it('attack: what callers claim about where they come from is replaced, and so is the ID of a request', async context => {
    const here = await start(context)
    const claimed = [
      'X-Forwarded-For: 203.0.113.9',
      'X-Real-IP: 203.0.113.9',
      'X-Forwarded-Host: evil.example',
    ]
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const ids = ['X-Request-Id: chosen-by-the-client', `traceparent: ${traceparent}`]
    const more = ['X-Upload-Key: wrong', 'Forwarded: for=203.0.113.9', ...ids]
    const { status, line, body } = await upload(here, [here.alice, ...claimed, ...more])
    expect({ status, line }).toMatchObject({ status: 200, line: { address: '127.0.0.1', traceparent } })
    expect(body).toContain(`${here.url}/files/`)
    expect(here.app.rawLog()).not.toMatch(/203\.0\.113\.9|evil|chosen/)
    await expect.poll(here.accessLog).toContain(String(line?.['requestId']))
  })

  it('attack: a page of another site uploads in the name of its visitor', async context => {
    const here = await start(context)
    const from = async (origin: string) => (await upload(here, [here.alice, `Origin: ${origin}`])).status
    expect(await from('https://evil.example')).toBe(403)
    expect(await from(`${here.url}1`)).toBe(403)
    expect(await from('null')).toBe(403)
    expect((await upload(here, [here.alice, 'Sec-Fetch-Site: cross-site'])).status).toBe(403)
    expect(await from(here.url)).toBe(200)
  })

  it('links, files and the health check need no password, and name no one there', async context => {
    const here = await start(context)
    const get = async (path: string, ...headers: string[]) => {
      const { status, body } = await sendRaw(here.url, { line: `GET ${path} HTTP/1.1`, headers })
      return `${status} ${body.toString().replace(/,"requestId".*/, '')}`
    }
    for (const headers of [[], [here.alice], [`${userHeader}: root`, `X-Proxy-Secret: ${SECRET}`]]) {
      expect(await get('/heartbeat', ...headers)).toBe('200 {"success":true,"result":"alive"}')
      for (const path of ['/links/s3/private/none.png', '/files/Default/none.png'])
        expect(await get(path, ...headers)).toMatch(/^404 .*not_found/)
    }
    expect((await upload(here, [`${userHeader}: root`], '/files/..%2fupload')).status).not.toBe(200)
    expect(here.app.rawLog()).not.toContain('"caller"')
  })

  it('a link to a private bucket leads there without a password, one for clients with a key', async context => {
    const here = await start(context)
    for (const [name, status] of [
      ['private', 302],
      ['callers', 401],
    ] as const) {
      const { body } = await upload(here, [here.alice], `/upload?destination=s3/${name}`)
      expect(body).toContain('"result"')
      const [link = ''] = JSON.parse(body).result as string[]
      expect(link).toContain(`${here.url}/links/s3/${name}/`)
      const line = `GET ${new URL(link).pathname} HTTP/1.1`
      expect((await sendRaw(here.url, { line })).status).toBe(status)
      const headers = [`X-Upload-Key: ${KEY}`]
      const answer = await sendRaw(here.url, { line, headers })
      expect(answer.status).toBe(302)
      expect((await download(String(answer.headers.get('location')))).toString()).toBe('hi')
    }
  })

  it('attack: no spelling of a path leads through the open places to an upload', async context => {
    const { app, url, alice } = await start(context)
    const [name = '', value = ''] = alice.split(': ')
    await expectNoWayAround(app, url, { [name]: value })
  })

  it('a program has an upload key instead of the password', async context => {
    const here = await start(context)
    const at = '/with-key/upload'
    for (const header of [`X-Upload-Key: ${KEY}`, `Authorization: Bearer ${KEY}`]) {
      const { status, line, body } = await upload(here, [header], at)
      expect({ status, line }).toMatchObject({ status: 200, line: { caller: 'server', admittedBy: 'key' } })
      expect(body).toContain(`${here.url}/files/`)
    }
    for (const headers of [[], ['X-Upload-Key: wrong'], [`${userHeader}: root`, `X-Proxy-Secret: ${SECRET}`]])
      expect((await upload(here, headers, at)).status).toBe(401)
    if (!here.alice.startsWith('Cookie')) return
    expect((await upload(here, [here.alice, `${userHeader}: root`], at)).status).toBe(401)
  })
})

it.for<[Example, string, string]>([
  [NGINX, 'set_real_ip_from 10.76.0.1', 'set_real_ip_from 127.0.0.1'],
  [CADDY, 'header_up X-User', 'trusted_proxies 127.0.0.1\n      header_up X-User'],
])(
  'behind $file, a client of a TLS proxy has its own address, which the TLS proxy adds',
  async ([one, line, trusting], context) => {
    const here = await startExample(one, context, config => {
      expect(config).toContain(line)
      return config.replace(line, trusting)
    })
    const answer = await upload(here, [here.alice, 'X-Forwarded-For: 198.51.100.7, 203.0.113.9'])
    expect(answer).toMatchObject({ status: 200, line: { address: '203.0.113.9' } })
  },
)

it('attack: what is behind the open places hears a name or the password', async context => {
  const heard = await serve((_req, res) => res.end())
  const { host } = new URL(heard.origin)
  const { url, alice } = await startExample(NGINX, context, config =>
    config.replace(/server 127\.0\.0\.1:\d+;/, `server ${host};`),
  )
  const headers = [alice, 'X-User: root', 'X-Proxy-Secret: mine']
  const open = [
    '/files/Default/a.png',
    '/links/s3/a/b',
    '/heartbeat',
    '/files/..%2fupload',
    '/upload/..%2fheartbeat',
  ]
  for (const path of open) await sendRaw(url, { line: `GET ${path} HTTP/1.1`, headers })
  await sendRaw(url, { line: 'POST /upload HTTP/1.1', headers })
  const told = heard.requests.map(({ url: path, headers: sent }) => [
    path,
    sent.authorization,
    sent['x-user'],
  ])
  for (const one of told.slice(0, 3)) expect(one.slice(1)).toEqual([undefined, undefined])
  expect(told.map(([path]) => path)).toContain('/upload')
  expect(told.at(-1)).toEqual(['/upload', undefined, 'alice'])
  expect(new Set(heard.requests.map(({ headers: sent }) => sent['x-proxy-secret']))).toEqual(
    new Set([SECRET]),
  )
})

it('nginx with auth_request leads a browser to the form, and its uploads to none', async context => {
  const { url } = await startExample(NGINX_SSO, context)
  const { status, headers } = await sendRaw(url, { line: 'GET /?lang=zh HTTP/1.1' })
  expect({ status, to: headers.get('location') }).toEqual({
    status: 302,
    to: `${url}/oauth2/sign_in?rd=/?lang=zh`,
  })
  expect((await sendRaw(url, { line: 'GET /oauth2/sign_in HTTP/1.1' })).body.toString()).toContain('sign in')
  expect((await sendRaw(url, { body: 'x' })).status).toBe(401)
})

describe('attack: a reverse proxy that forgets to remove what clients send', () => {
  /** Lets the lines of clients through: without those that remove or replace the header. */
  const forget = (line: RegExp) => (config: string) => {
    expect(config).toMatch(line)
    return config.replace(line, '')
  }
  const cases: [what: string, one: Example, change: (config: string) => string, lines: string[]][] = [
    [
      'nginx with underscores_in_headers',
      NGINX,
      config => config.replace(/\nserver \{\n/, '$&underscores_in_headers on;\n'),
      ['X_User: root'],
    ],
    [
      'Apache adds',
      APACHE,
      config => forget(/RequestHeader unset X-User/)(config).replace('set X-User', 'add X-User'),
      ['X-User: root'],
    ],
    ['Apache, the twin', APACHE, forget(/RequestHeader unset X_User/), ['X_User: root']],
    ['Caddy, the twin', CADDY, forget(/request_header -X_User/), ['X_User: root']],
    [
      'Caddy adds',
      CADDY,
      config => forget(/request_header -X-User/)(config).replace('header_up X-User', 'header_up +X-User'),
      ['X-User: root'],
    ],
  ]
  it.for(cases)('%s: 401, and the log says why', async ([, one, change, lines], context) => {
    const here = await startExample(one, context, change)
    const { status, line } = await upload(here, [here.alice, ...lines])
    expect(status).toBe(401)
    expect(JSON.stringify(line)).toMatch(/auth\.reverseProxy: .*(?:more than once|underscores)/)
    expect((await upload(here, [here.alice])).status).toBe(200)
  })
})
