import { chmod, chown, readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { ask } from '../helpers/ask.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { download } from '../helpers/form.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { missing, needs, needsRoot } from '../helpers/needs.ts'
import { makePicture } from '../helpers/picture.ts'
import { type RawAnswer, sendRaw } from '../helpers/raw-request.ts'
import {
  APACHE,
  BASIC,
  CADDY,
  EXAMPLES,
  type Example,
  type Front,
  KEY,
  NGINX,
  NGINX_SSO,
  runNginx,
  SECRET,
  SUB_PATH,
  startFront,
  TLS,
} from '../helpers/reverse-proxies.ts'
import { startApp } from '../helpers/start-app.ts'
import { serve } from '../uploader/sources/servers.ts'

// What every reverse proxy of the documents keeps: to add a promise, add a row of PROMISES; to add a proxy, one of EXAMPLES.

const FORM = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhi\r\n--b--\r\n'
const TYPE = 'Content-Type: multipart/form-data; boundary=b'

const get = ({ url, below }: Front, path: string, ...headers: string[]): Promise<RawAnswer> =>
  sendRaw(url, { line: `GET ${below}${path} HTTP/1.1`, headers })

/** Uploads a file with these header lines. @returns the response, and the line of the log */
async function upload({ app, url, below }: Front, headers: readonly string[], path = '/upload') {
  const count = app.log.length
  const { status, body } = await sendRaw(url, {
    line: `POST ${below}${path} HTTP/1.1`,
    headers: [TYPE, ...headers],
    body: FORM,
  })
  // The line is written once the response has been sent.
  const lines = () => app.log.slice(count).filter(line => 'req' in line)
  if (body.includes('"requestId"') || status === 200) await expect.poll(lines).not.toEqual([])
  return { status, line: lines().at(-1), body: body.toString() }
}

const linkIn = (body: string): string => (JSON.parse(body) as { result: string[] }).result[0] ?? ''
const pathIn = (link: string, { url }: Front) => link.replace(url, '')

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

/** Spellings of a path to an upload that begin like one that needs no password. */
const AROUND = [
  '/upload/ //upload /files/../upload /files/..%2fupload /files/%2e%2e/upload /files/%252e%252e/upload',
  '/files/..;/upload /files/..\\upload /files//upload /links/../upload /links/..%2fupload',
  '/links/%2e%2e/upload /heartbeat/../upload /heartbeat/..%2fupload /heartbeat%2f..%2fupload',
  '/upload/..%2fheartbeat /upload%2f..%2fheartbeat /upload/../heartbeat /upload?/../heartbeat',
  '/upload#/../heartbeat /upload;/../heartbeat /heartbeat%3f/upload /with-key/upload',
  '/with-key/../upload /with-key/..%2fupload /with-key//upload /with-key/files/..%2fupload',
  '/files/../with-key/upload',
].flatMap(line => line.split(' '))
const ALIVE = '{"success":true,"result":"alive"}'
const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

type Keep = (here: Front, one: Example) => Promise<void>

/** What holds behind every proxy, whether it knows people or passes on upload keys. */
const PROMISES: Readonly<Record<string, Keep>> = {
  async 'a client uploads, and the logs have its name and no secret'(here, { userHeader }) {
    const { status, line, body } = await upload(here, [here.right])
    expect({ status, body }).toMatchObject({ status: 200, body: expect.stringContaining(here.url) })
    const who = userHeader
      ? { caller: 'proxy: alice', admittedBy: 'proxy' }
      : { caller: 'server', admittedBy: 'key' }
    expect(line).toMatchObject({ ...who, address: '127.0.0.1' })
    expect((await upload(here, [here.right], `/upload?key=${KEY}`)).status).toBe(200)
    await expect.poll(here.accessLog).toContain('/upload')
    if (here.right === BASIC) expect(await here.accessLog()).toContain('alice')
    for (const secret of [KEY, SECRET])
      expect((await here.accessLog()) + here.app.rawLog()).not.toContain(secret)
    expect(await get(here, pathIn(linkIn(body), here))).toMatchObject({ status: 200 })
    // More than a proxy keeps in memory, and in an unknown number of pieces.
    const picture = makePicture(5 * 1024 * 1024)
    const size = `${picture.length.toString(16)}\r\n`
    const chunked = Buffer.concat([Buffer.from(size), picture, Buffer.from('\r\n0\r\n\r\n')])
    for (const [more, sent] of [
      [['Transfer-Encoding: chunked'], chunked],
      [[], picture],
    ] as const) {
      const put = { line: `PUT ${here.below}/upload/b.png HTTP/1.1`, body: sent }
      const headers = ['Content-Type: image/png', here.right, ...more]
      const stored = linkIn((await sendRaw(here.url, { ...put, headers })).body.toString())
      expect(picture.equals((await get(here, pathIn(stored, here))).body)).toBe(true)
    }
    const { visitor } = JSON.parse(String((await get(here, '/page/me', here.right)).body)).result
    if (userHeader) expect(visitor).toMatchObject({ admittedBy: 'proxy', user: 'alice' })
  },

  async 'attack: a remote client without a password claims to be someone'(here, { userHeader }) {
    const sessions = [
      [],
      here.nameless === undefined ? [] : [here.nameless],
      [BASIC.replace(/ \w+=*$/, ` ${Buffer.from('alice:sesame').toString('base64')}`)],
      ...(userHeader ? [[`X-Upload-Key: ${KEY}`], [`Authorization: Bearer ${KEY}`]] : []),
    ]
    for (const session of sessions)
      for (const [what, lines] of [['nothing', []] as const, ...claims(userHeader ?? 'Remote-User')]) {
        const { status } = await upload(here, [...session, ...lines])
        expect.soft(status, what).toBe(401)
      }
    expect((await here.app.files()).filter(path => path.startsWith('files/'))).toEqual([])
    expect(here.app.log.filter(line => 'caller' in line)).toEqual([])
  },

  async 'attack: nobody counts as a program of this machine, whatever the proxy is told'(here) {
    const local = ['Host: localhost', 'X-Forwarded-For: 127.0.0.1', 'Forwarded: for=127.0.0.1']
    for (const header of ['Accept: */*', 'X-Real-IP: 127.0.0.1', ...local]) {
      const headers = ['Content-Type: application/json', header]
      const line = `POST ${here.below}/upload HTTP/1.1`
      const sent = { line, headers, body: '{"list":["/etc/hostname"]}' }
      const answer = await sendRaw(here.url, sent)
      // Caddy answers by itself for another host.
      if (answer.headers.has('x-request-id')) expect.soft(answer.status, header).toBe(401)
    }
    expect(here.app.log.filter(line => 'caller' in line)).toEqual([])
  },

  async 'attack: what callers claim about where they come from is replaced, and so is the ID of a request'(
    here,
  ) {
    const claimed = ['X-Forwarded-For: 203.0.113.9', 'X-Real-IP: 203.0.113.9', 'Forwarded: for=203.0.113.9']
    const ids = ['X-Request-Id: chosen-by-the-client', `traceparent: ${TRACE}`]
    const more = ['X-Forwarded-Host: evil.example', 'X-Upload-Key: wrong', ...ids]
    const { status, line, body } = await upload(here, [here.right, ...claimed, ...more])
    expect({ status, line }).toMatchObject({
      status: 200,
      line: { address: '127.0.0.1', traceparent: TRACE },
    })
    expect(body).toContain(`${here.url}/files/`)
    expect(here.app.rawLog()).not.toMatch(/203\.0\.113\.9|evil|chosen/)
    await expect.poll(here.accessLog).toContain(String(line?.['requestId']))
  },

  async 'links, files and the health check need no password, and name no one there'(here, { userHeader }) {
    const forged = [`${userHeader ?? 'Remote-User'}: root`, `X-Proxy-Secret: ${SECRET}`]
    for (const headers of [[], [here.right], forged]) {
      const answers = ['/heartbeat', '/links/s3/private/none.png', '/files/Default/none.png'].map(
        async path => {
          const { status, body } = await get(here, path, ...headers)
          return `${status} ${body}`
        },
      )
      const missed = expect.stringMatching(/^404 .*not_found/)
      expect(await Promise.all(answers)).toEqual([`200 ${ALIVE}`, missed, missed])
    }
    expect((await upload(here, [forged[0] ?? ''], '/files/..%2fupload')).status).not.toBe(200)
    expect(here.app.rawLog()).not.toContain('"caller"')
  },

  async 'a link to a private bucket leads there without a password, one for clients with a key'(here) {
    for (const [name, status] of [
      ['private', 302],
      ['callers', 401],
    ] as const) {
      const { body } = await upload(here, [here.right], `/upload?destination=s3/${name}`)
      const link = linkIn(body)
      expect(link).toContain(`${here.url}/links/s3/${name}/`)
      const path = pathIn(link, here)
      expect((await get(here, path)).status).toBe(status)
      const answer = await get(here, path, `X-Upload-Key: ${KEY}`)
      expect(answer.status).toBe(302)
      expect((await download(String(answer.headers.get('location')))).toString()).toBe('hi')
    }
  },

  async 'attack: no spelling of a path leads through the open places to an upload'(here) {
    // What reaches the server all the same is refused by it; no answer is that of an upload.
    for (const target of AROUND)
      for (const method of ['POST', 'PUT']) {
        const line = `${method} ${here.below}${target} HTTP/1.1`
        const sent = { line, headers: [TYPE], body: FORM, isRewritten: true }
        const { status, body } = await sendRaw(here.url, sent)
        expect.soft(status === 200 ? String(body) : ALIVE, `${method} ${target}`).toBe(ALIVE)
      }
    expect((await here.app.files()).filter(path => path.startsWith('files/'))).toEqual([])
    expect((await upload(here, [here.right])).status).toBe(200)
  },
}

/** What holds behind those that sign people in. */
const OF_PEOPLE: Readonly<Record<string, Keep>> = {
  async 'attack: a person claims to be another one'(here, { userHeader = '' }) {
    for (const [what, lines] of claims(userHeader)) {
      for (const headers of [
        [here.right, ...lines],
        [...lines, here.right],
      ]) {
        const { status, line } = await upload(here, headers)
        expect.soft([200, 401], what).toContain(status)
        if (status === 200) expect.soft(line, what).toMatchObject({ caller: 'proxy: alice' })
        else expect.soft(line?.['caller'], what).toBeUndefined()
      }
    }
    expect(here.app.rawLog()).not.toMatch(/"caller":"(?!proxy: alice")|203\.0\.113\.9/)
  },

  async 'attack: a page of another site uploads in the name of its visitor'(here) {
    const from = async (line: string) => (await upload(here, [here.right, line])).status
    for (const origin of ['https://evil.example', `${here.url}1`, 'null'])
      expect(await from(`Origin: ${origin}`), origin).toBe(403)
    expect(await from('Sec-Fetch-Site: cross-site')).toBe(403)
    expect(await from(`Origin: ${here.url}`)).toBe(200)
  },

  async 'a program has an upload key instead of the password'(here, { userHeader }) {
    const at = '/with-key/upload'
    for (const header of [`X-Upload-Key: ${KEY}`, `Authorization: Bearer ${KEY}`]) {
      const { status, line, body } = await upload(here, [header], at)
      expect({ status, line }).toMatchObject({ status: 200, line: { caller: 'server', admittedBy: 'key' } })
      expect(body).toContain(`${here.url}/files/`)
    }
    const forged = [`${userHeader}: root`, `X-Proxy-Secret: ${SECRET}`]
    const session = here.right === BASIC ? [] : [[here.right, `${userHeader}: root`]]
    for (const headers of [[], ['X-Upload-Key: wrong'], forged, ...session])
      expect((await upload(here, headers, at)).status).toBe(401)
  },
}

describe.each(EXAMPLES)('behind docs/examples/$file', one => {
  const promises = Object.entries({ ...PROMISES, ...(one.userHeader && OF_PEOPLE) })
  it.for(promises)('%s', async ([, keep], context) => keep(await startFront(one, context), one))
})

it.for<[Example, string, string]>([
  [NGINX, 'set_real_ip_from 10.76.0.1', 'set_real_ip_from 127.0.0.1'],
  [CADDY, 'header_up X-User', 'trusted_proxies 127.0.0.1\n      header_up X-User'],
])(
  'behind $file, a client of a TLS proxy has its own address, which the TLS proxy adds',
  async ([one, line, trusting], context) => {
    const here = await startFront(one, context, {
      example(example) {
        expect(example).toContain(line)
        return example.replace(line, trusting)
      },
    })
    const answer = await upload(here, [here.right, 'X-Forwarded-For: 198.51.100.7, 203.0.113.9'])
    expect(answer).toMatchObject({ status: 200, line: { address: '203.0.113.9' } })
  },
)

it('attack: what is behind the open places hears a name or the password', async context => {
  const heard = await serve((_req, res) => res.end())
  const { host } = new URL(heard.origin)
  const here = await startFront(NGINX, context, {
    example: example => example.replace(/server 127\.0\.0\.1:\d+;/, `server ${host};`),
  })
  const headers = [here.right, 'X-User: root', 'X-Proxy-Secret: mine']
  const open = ['/files/Default/a.png', '/links/s3/a/b', '/heartbeat']
  for (const path of [...open, '/files/..%2fupload', '/upload/..%2fheartbeat'])
    await get(here, path, ...headers)
  await sendRaw(here.url, { headers })
  const told = heard.requests.map(({ url: path, headers: sent }) => [
    path,
    sent.authorization,
    sent['x-user'],
  ])
  for (const one of told.slice(0, 3)) expect(one.slice(1)).toEqual([undefined, undefined])
  expect(told.at(-1)).toEqual(['/upload', undefined, 'alice'])
  expect(new Set(heard.requests.map(({ headers: sent }) => sent['x-proxy-secret']))).toEqual(
    new Set([SECRET]),
  )
})

it('nginx with auth_request leads a browser to the form, and its uploads to none', async context => {
  const here = await startFront(NGINX_SSO, context)
  const { status, headers } = await get(here, '/?lang=zh')
  expect([status, headers.get('location')]).toEqual([302, `${here.url}/oauth2/sign_in?rd=/?lang=zh`])
  expect(String((await get(here, '/oauth2/sign_in')).body)).toContain('sign in')
  expect((await sendRaw(here.url, { body: 'x' })).status).toBe(401)
})

it('the example for TLS leads plain HTTP to HTTPS', async context => {
  const here = await startFront(TLS, context)
  const { status, headers } = await sendRaw(here.plain, { line: 'GET /files/a%20b.png?x=1 HTTP/1.1' })
  expect([status, headers.get('location')]).toEqual([301, `${here.url}/files/a%20b.png?x=1`])
})

describe('attack: a reverse proxy that forgets to remove what clients send', () => {
  /** Lets the lines of clients through: without those that remove or replace the header. */
  const forget = (line: RegExp) => (config: string) => {
    expect(config).toMatch(line)
    return config.replace(line, '')
  }
  const adding = (set: string, add: string) => (config: string) => config.replace(set, add)
  const cases: [what: string, one: Example, changes: ((config: string) => string)[], line: string][] = [
    [
      'nginx with underscores_in_headers',
      NGINX,
      [config => config.replace(/\nserver \{\n/, '$&underscores_in_headers on;\n')],
      'X_User: root',
    ],
    [
      'Apache adds',
      APACHE,
      [forget(/RequestHeader unset X-User/), adding('set X-User', 'add X-User')],
      'X-User: root',
    ],
    ['Apache, the twin', APACHE, [forget(/RequestHeader unset X_User/)], 'X_User: root'],
    ['Caddy, the twin', CADDY, [forget(/request_header -X_User/)], 'X_User: root'],
    [
      'Caddy adds',
      CADDY,
      [forget(/request_header -X-User/), adding('header_up X-User', 'header_up +X-User')],
      'X-User: root',
    ],
  ]
  it.for(cases)('%s: 401, and the log says why', async ([, one, changes, forged], context) => {
    const example = (config: string) => changes.reduce((text, change) => change(text), config)
    const here = await startFront(one, context, { example })
    const { status, line } = await upload(here, [here.right, forged])
    expect(status).toBe(401)
    expect(JSON.stringify(line)).toMatch(/auth\.reverseProxy: .*(?:more than once|underscores)/)
    expect((await upload(here, [here.right])).status).toBe(200)
  })
})

it.for([
  ['of the server alone: nginx answers 502', {}, 502],
  ['of its group, by server.socketMode', { socketMode: '660' }, 200],
] as const)('nginx runs as www-data, and the socket is %s', async ([, server, status], context) => {
  needsRoot(context, 'nginx runs as another account')
  const [, group] = /^www-data:[^:]*:(\d+):/m.exec(await readFile('/etc/group', 'utf8')) ?? []
  if (group === undefined) missing(context, 'needs the account www-data, as Debian has it')
  // As RuntimeDirectory= and Group= of systemd make it: what lies in the folder belongs to its group.
  const folder = await makeDirectory()
  await chown(folder, 0, Number(group))
  await chmod(folder, 0o2750)
  const here = await startFront(SUB_PATH, context, { account: 'www-data', config: { server }, folder })
  expect((await get(here, '/heartbeat')).status).toBe(status)
})

it('attack: a proxy on this machine that marks nothing can not be told from a program: SECURITY.md says so', async context => {
  needs(context, 'nginx', 'nginx-light')
  const port = await findFreePorts()
  const app = await startApp({ config: { server: { key: KEY } } })
  // It sends its own Host, and no header of its own.
  const servers = `server { listen 127.0.0.1:${port}; location / { proxy_pass ${app.url}; } }`
  await runNginx(servers, { directory: await makeDirectory(), port })
  const body = '{"list":["data:,hello"]}'
  expect((await ask(`http://127.0.0.1:${port}`, 'POST', '/upload', { body })).status).toBe(200)
  for (const file of ['SECURITY.md', 'docs/guides/reverse-proxy.md', 'README.md'])
    expect(await readFile(file, 'utf8')).toContain('auth.loopbackExempt')
})
