import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { describe, expect, it } from 'vitest'
import { ask } from '../helpers/ask.ts'
import { expectLinks } from '../helpers/expect-answer.ts'
import { formOf, post } from '../helpers/form.ts'
import { makePicture } from '../helpers/picture.ts'
import { shareApp, startApp } from '../helpers/start-app.ts'

// What an upload is answered, by its body, its options and its headers: a request, and what is expected. To add a case, add a
// row. The requests of clients, byte for byte, stand in test/wire, what other routes answer in routes.test.ts.

const DAY_MS = 24 * 60 * 60 * 1000
const local = (name: string, more: object = {}) => ({ [name]: { directory: name, serve: true, ...more } })
const SERVERS = {
  plain: shareApp(),
  /** Keys are folder and name alone. */
  bare: shareApp({ config: { keyTemplate: '{path}/{filename}{extname}' } }),
  /** There is no place for a folder. */
  flat: shareApp({ config: { keyTemplate: '{filename}{extname}' } }),
  small: shareApp({ config: { limits: { fileSize: '2000000B' } } }),
  hooked: shareApp({ config: { finalization: { hooks: [{ name: 'never', command: ['false'] }] } } }),
  expiring: shareApp({
    config: {
      default: 'local/both',
      providers: {
        local: {
          ...local('both', { expiry: { default: '30d', max: '90d' } }),
          ...local('most', { expiry: { max: '12h' } }),
          ...local('asked', { expiry: { default: 'never' } }),
          ...local('stays'),
        },
      },
    },
  }),
}

interface Sent {
  /** Default: `plain`. */
  readonly on?: keyof typeof SERVERS
  readonly headers?: Record<string, string>
  readonly body?: string | Uint8Array
}
interface Expected {
  /** Default: 200. */
  readonly status?: number
  /** Of the JSON, or what the text is like. */
  readonly body?: object | RegExp
  /** Members of the first item. */
  readonly item?: object
  /** What is behind the links. */
  readonly files?: readonly (string | Uint8Array)[]
  readonly type?: string
  /** Days until the file expires. */
  readonly days?: number | undefined
}
/** Its name, if there is one, is what the row is about or the attack. */
type Row = readonly [target: string, sent: Sent, expected: Expected, name?: string]

function describeRows(title: string, rows: readonly Row[]): void {
  const named = rows.map(row => {
    const [target, { headers = {}, body = '' }, , name] = row
    const sent = `${target} ${Object.entries(headers).join(' ')} ${String(body).slice(0, 60)}`
    return [name ?? (sent.includes('\0') ? target : sent), row] as const
  })
  describe(title, () => {
    it.for(named)('%s', async ([, [sentTo, { on = 'plain', headers = {}, body }, expected]]) => {
      const [method = '', target = ''] = sentTo.split(' ')
      const app = SERVERS[on]()
      const before = (await app.files()).length
      const reply = await ask(app.url, method, target, { headers, ...(body !== undefined && { body }) })
      expect(reply.status, reply.body).toBe(expected.status ?? 200)
      const { type = 'application/json' } = expected
      expect(reply.headers['content-type']).toBe(`${type}; charset=utf-8`)
      if (expected.body instanceof RegExp) expect(reply.body).toMatch(expected.body)
      if (type !== 'application/json') return
      const answer = JSON.parse(reply.body)
      expect(answer).toMatchObject(expected.body instanceof RegExp ? {} : (expected.body ?? {}))
      if (expected.item) expect(answer.items[0]).toMatchObject(expected.item)
      if (expected.files) await expectLinks(answer.result, expected.files)
      if ('days' in expected) expect(daysOf(answer)).toBe(expected.days)
      if (answer.success) return
      expect(answer.result).toBeUndefined()
      expect(await app.files(), 'nothing is left behind').toHaveLength(before)
    })
  })
}

/** Days from now until the first file of an answer may go. */
function daysOf({ items }: { items?: { expiresAt?: string }[] }): number | undefined {
  const at = items?.[0]?.expiresAt
  return at === undefined ? undefined : Math.round(((Date.parse(at) - Date.now()) / DAY_MS) * 100) / 100
}

const encode = encodeURIComponent
const PNG = makePicture()
const as = (type: string) => ({ 'Content-Type': type })
const list = (...entries: string[]) => JSON.stringify({ list: entries })
const refused = (code: string, message: RegExp = /./) => ({
  status: 400,
  body: { code, message: expect.stringMatching(message) },
})
const CLIPBOARD = { status: 422, body: { code: 'source_failed' } }
const UNNAMED = { origin: '', contentType: 'image/png', fileName: expect.stringMatching(/^file-\w+\.png$/) }
const FILE_TYPES = ['image/png', 'video/mp4', 'application/octet-stream']
const named = (sent: string) => ({ headers: { 'X-File-Name': sent, ...as('text/plain') }, body: PNG })
const origin = (origin: string) => ({ files: [PNG], item: { origin } })

describeRows('a body that is a file', [
  ...[...FILE_TYPES, 'IMAGE/PNG; q=1', 'image/x-whatever', 'audio/ogg'].map(
    (type): Row => ['POST /upload', { headers: as(type), body: PNG }, { files: [PNG], item: UNNAMED }],
  ),
  // Named by the query, by a header, by the path.
  ...[
    ['a+b%20c.png', 'a b c.png'],
    ['%E5%9B%BE%20%E7%89%87.png', '图 片.png'],
    ['..%2F..%2Fetc%2Fpasswd.png', 'passwd.png'],
    ['C%3A%5Cpictures%5Cshot.png', 'shot.png'],
  ].map(
    ([sent, name = '']): Row => [
      `POST /upload?filename=${sent}`,
      { headers: as('text/plain'), body: PNG },
      origin(name),
    ],
  ),
  ['POST /upload', named('%E5%9B%BE%20%E7%89%87.png'), origin('图 片.png')],
  ['POST /upload', named(Buffer.from('图 片.png').toString('latin1')), origin('图 片.png')],
  ['POST /upload', named('caf\u00e9 100%.png'), origin('café 100%.png')],
  ['POST /upload', named('../../etc/passwd.png'), origin('passwd.png')],
  ['POST /upload?filename=own.png', named('other.png'), origin('own.png')],
  ['PUT /upload/a%20b.png', { body: PNG }, origin('a b.png')],
  ['PUT /upload/x.png?filename=a+b.png', { body: PNG }, origin('a b.png')],
  ['PUT /upload?filename=a%20b.png', { body: PNG }, origin('a b.png')],
  // What has a name, or is PUT, is stored byte by byte.
  ...['{"list":["/etc/hostname"]}', 'some text', ''].map(
    (body): Row => [
      'POST /upload?filename=a.txt',
      { headers: as('application/json'), body },
      { files: [body] },
    ],
  ),
  ['PUT /upload', { headers: as('text/plain'), body: '{"list":[]}' }, { files: ['{"list":[]}'] }],
  // What is called like an image, and is none, is stored with a warning.
  [
    'PUT /upload/empty.png',
    { on: 'flat', body: '' },
    { body: /"\\"empty.png\\" was stored, but is empty\."/ },
  ],
  [
    'PUT /upload/page.GIF',
    { on: 'flat', body: 'text' },
    { body: /but is text\/plain by its bytes, not an image\."/ },
  ],
  ['PUT /upload/a.txt', { on: 'flat', body: '' }, { body: /^(?!.*"warning")/ }],
  ['PUT /upload/real.jpg', { on: 'flat', body: PNG }, { body: /^(?!.*"warning")/ }],
])

const BIG = randomBytes(2_000_001)
const CHUNKED = { 'Transfer-Encoding': 'chunked' }
const TOO_BIG = { status: 413, body: { code: 'too_large', errors: [{ index: 0, origin: 'big.bin' }] } }

describeRows('a body that is no file', [
  ...FILE_TYPES.flatMap((type): Row[] => [
    ['POST /upload', { headers: as(type), body: '\ufeff {"list":["data:,hello"]}' }, { files: ['hello'] }],
    ['POST /upload', { headers: as(type), body: '{"list":["relative"]}' }, refused('invalid_request')],
    ['POST /upload', { headers: as(type), body: 'no JSON' }, refused('invalid_request')],
    ['POST /upload', { headers: as(type), body: '' }, CLIPBOARD],
    ['POST /upload?filename=', { headers: as(type), body: '{}' }, CLIPBOARD],
  ]),
  ['PUT /upload', {}, refused('no_file')],
  [
    'PUT /upload',
    { headers: { 'Content-Range': 'bytes 0-3/8' }, body: 'x' },
    refused('invalid_request', /Content-Range/),
  ],
  ['PUT /upload/big.bin', { on: 'small', body: BIG }, TOO_BIG, 'is too large, and fails by its name'],
  ['PUT /upload/big.bin', { on: 'small', body: BIG, headers: CHUNKED }, TOO_BIG, 'the same in chunks'],
])

it('a client that asks first need not send a file over limits.fileSize', async () => {
  const headers = { Expect: '100-continue', 'Content-Length': 2_000_001 }
  const call = request(`${SERVERS.small().url}/upload/a.png`, { method: 'PUT', headers })
  call.on('continue', () => expect.fail('the body was asked for')).flushHeaders()
  const [response] = await once(call, 'response')
  expect(response.statusCode).toBe(413)
  call.destroy()
})

const TEXT = { Accept: 'text/plain' }
const ODD = 'PUT /upload/a%20%3Cb%5D.png?reply='
const text = (body: RegExp, status = 200, type = 'text/plain') => ({ status, type, body })
const markdown = (body: RegExp) => text(body, 200, 'text/markdown')
const ONE = list('data:,one')
const HALF = list('data:,one', '/no/such/file')
const NOTHING = list('/no/such/file')
const PENDING = /^All files were stored, but hook .*\nfinalizationId: [\w-]{36}\n$/

describeRows('what an answer is written in', [
  ['POST /upload', { headers: TEXT, body: list('data:,one', 'data:,two') }, text(/^http\S+\nhttp\S+\n$/)],
  // No more than the status of what failed.
  ['POST /upload', { headers: { Accept: 'text/*;q=0.5' }, body: HALF }, text(/^http\S+\n$/, 422)],
  ['POST /upload?picbed=no', { headers: TEXT, body: ONE }, text(/^Provider "no" does not exist.*\.\n$/, 400)],
  ['POST /upload', { headers: TEXT, body: '!' }, text(/^The body is neither a form nor JSON.*\.\n$/, 400)],
  ['POST /upload?finalizationId=no', { headers: TEXT, body: '' }, text(/^No pending upload.*\.\n$/, 404)],
  ['POST /upload', { on: 'hooked', headers: TEXT, body: ONE }, text(PENDING, 424)],
  [`${ODD}text`, { on: 'bare', body: PNG }, text(/^http:\/\/\S+\/a%20_b%5D\.png\n$/)],
  [`${ODD}Markdown`, { on: 'bare', body: PNG }, markdown(/^!\[a \\<b\\\]\.png\]\(http:\S+\)\n$/)],
  [`${ODD}html`, { on: 'bare', body: PNG }, text(/^<img src="http:\S+" alt="a &lt;b\]\.png">\n$/)],
  [`${ODD}bbcode`, { on: 'bare', body: PNG }, text(/^\[img\]http:\S+\[\/img\]\n$/)],
  [`${ODD}json`, { headers: TEXT, body: PNG }, { body: { success: true } }],
  [
    `${ODD}xml`,
    { body: PNG },
    refused('invalid_request', /^"reply" must be json, text, markdown, html, bbcode\.$/),
  ],
  ['PUT /upload/a', { headers: { Accept: 'text/markdown' }, body: PNG }, markdown(/^!\[a\]\(http:\S+\)\n$/)],
  ['POST /upload?reply=markdown', { body: ONE }, markdown(/^\[file-\w+\.txt\]\(http:\S+\)\n$/)],
  ['POST /upload?reply=html', { body: NOTHING }, text(/^"\/no\/such\/file" does not exist.*\n$/, 422)],
  ...[
    ...[
      '*/*',
      'application/json',
      'application/json, text/plain, */*',
      'text/plain, */*; q=0.01',
      'image/png',
    ],
    'text/plain, application/json, application/*+json, */*',
    'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  ].flatMap((Accept): Row[] => [
    ['POST /upload', { headers: { Accept }, body: ONE }, { files: ['one'] }],
    ['POST /upload', { headers: { Accept }, body: '!' }, refused('invalid_request')],
  ]),
])

const at = (key: string) => ({
  item: { imgUrl: expect.stringMatching(new RegExp(`/files/Default/${key}$`)) },
})
const folder = (path: string, key: string): Row => [
  `PUT /upload/a.txt?path=${encode(path)}`,
  { on: 'bare', body: 'one' },
  at(key.split('/').map(encode).join('/')),
]
const leaves = (path: string): Row => [
  `PUT /upload/a.txt?path=${encode(path)}`,
  { on: 'bare', body: 'one' },
  refused('invalid_request'),
  `attack: ${path} never leaves the destination`,
]

describeRows('the folder that a request asks for', [
  folder('notes/2026/trip', 'notes/2026/trip/a.txt'),
  folder('notes//./2026/', 'notes/2026/a.txt'),
  folder('.', 'a.txt'),
  folder(' 旅行 / a b ', '旅行/a b/a.txt'),
  folder('CON/.git/a:b*c/x\u0000y/…', '_CON/_.git/a_b_c/x_y/…/a.txt'),
  folder('%2e%2e/...', '%2e%2e/_.../a.txt'),
  // It stands in the default template, and vanishes without one.
  ['PUT /upload/a.txt?path=notes', { body: 'x' }, at('\\d{4}/\\d\\d/notes/a-\\w{8}\\.txt')],
  ['PUT /upload/a.txt', { body: 'x' }, at('\\d{4}/\\d\\d/a-\\w{8}\\.txt')],
  ['POST /upload?path=x', { on: 'bare', body: ONE }, at('x/file\\S*')],
  [
    'PUT /upload/a.txt?path=x',
    { on: 'flat', body: 'x' },
    refused('path_forbidden', /"keyTemplate" needs \{path\}/),
  ],
  ...['../x', 'a/../../x', 'a/ .. /x', '/etc', ' /etc', 'C:/x', 'a\\..\\x'].map(leaves),
  leaves(`${'a/'.repeat(16)}b`),
  leaves('é'.repeat(257)),
])

const inDays = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString()
const expires = (query: string, days: number | undefined, name = 'both'): Row => [
  `PUT /upload/a.txt?configName=${name}${query}`,
  { on: 'expiring', body: randomUUID() },
  { days },
]
const refuses = (query: string, name: string, message: string, code = 'expiry_forbidden'): Row => [
  `PUT /upload/a.txt?configName=${name}${query}`,
  { on: 'expiring', body: 'one' },
  { status: 400, body: { code, message: expect.stringContaining(message) } },
  `attack: "${query.replace(/=\d{4}-.*\.\d+Z$/, '=in 91 days')}" is refused at ${name}`,
]

describeRows('when files may go', [
  ...[expires('', 30), expires('&expires=', 30), expires('&expires=90m', 0.06), expires('&expires=12h', 0.5)],
  expires('&expires=90d', 90),
  expires(`&expires=${inDays(7)}`, 7),
  expires(`&expires=${inDays(7).replace(/\..*/, '%2B00:00').replace('T', '%20')}`, 7),
  expires(`&expires=${inDays(7).replace(/\..*/, '+00:00')}`, 7),
  ...[expires('', 0.5, 'most'), expires('', undefined, 'asked'), expires('&expires=1d', 1, 'asked')],
  ...[expires('&expires=NEVER', undefined, 'asked'), expires('', undefined, 'stays')],
  refuses('&expires=91d', 'both', 'The maximum "expires" at local/both is 90d.'),
  refuses('&expires=never', 'both', 'at local/both is 90d.'),
  refuses(`&expires=${inDays(91)}`, 'both', 'at local/both is 90d.'),
  refuses('&expires=13h', 'most', 'at local/most is 12h.'),
  refuses('&expires=1d', 'stays', 'Files at local/stays never expire'),
  refuses(
    '&expires=never',
    'stays',
    'needs an "expiry" in its configuration, such as { "default": "never", "max"',
  ),
  refuses('&expires=2020-01-01T00:00:00Z', 'both', 'in the past', 'invalid_request'),
  ...['0d', '-1d', '1w', '1.5h', '1', '1000000000d', 'soon', '2027-02-30T00:00:00Z', '2027-01-01'].map(one =>
    refuses(`&expires=${one}`, 'both', '"expires"', 'invalid_request'),
  ),
])

describe('a text field of a form', () => {
  const send = (on: keyof typeof SERVERS, query: string, fields: [string, string][], headers = {}) => {
    const body = new FormData()
    // A field counts before the file and behind it, and the first of a name.
    for (const [name, value] of fields) body.append(name, value)
    body.append('file', new Blob(['one']), 'a.txt')
    body.append('path', 'second')
    return post(`${SERVERS[on]().url}/upload${query}`, { body, headers })
  }
  const keyOf = ({ result }: { result: string[] }) =>
    new URL(result[0] ?? '').pathname.replace('/files/Default/', '')

  it('says the folder where the query does not, and is ignored where the template has no place for it', async () => {
    expect(keyOf(await send('bare', '', [['path', 'notes']]))).toBe('notes/a.txt')
    expect(keyOf(await send('bare', '', [['other', 'x']]))).toBe('second/a.txt')
    expect(keyOf(await send('bare', '?path=query', [['path', 'notes']]))).toBe('query/a.txt')
    expect(keyOf(await send('flat', '', [['path', 'C:\\Users\\me']]))).toMatch(/^a(?:-\d)?\.txt$/)
    expect(await send('bare', '', [['path', '../x']])).toMatchObject({ status: 400, code: 'invalid_request' })
    const long = await send('bare', '', [['path', 'a'.repeat(5_000_000)]])
    expect(long).toMatchObject({ status: 400, message: '"path" must have up to 512 bytes.' })
  })

  it('says when a file may go where the query does not and the destination can follow', async () => {
    const fields: [string, string][] = [['expires', '2d']]
    const days = async (query: string) => daysOf((await send('expiring', query, fields)) as never)
    expect([await days(''), await days('?expires=3d'), await days('?configName=stays')]).toEqual([
      2,
      3,
      undefined,
    ])
  })

  it('counts to the request for an Idempotency-Key, as in the query', async () => {
    const headers = { 'Idempotency-Key': 'k1' }
    const first = await send('bare', '?path=notes&expires=', [], headers)
    expect((await send('bare', '', [['path', 'notes']], headers)).result).toEqual(first.result)
    expect(await send('bare', '', [['path', 'trip']], headers)).toMatchObject({
      code: 'idempotency_key_reused',
    })
    const again = { 'Idempotency-Key': 'k2' }
    expect(await send('expiring', '?expires=5d', [], again)).toMatchObject({ status: 200 })
    expect(await send('expiring', '', [['expires', '6d']], again)).toMatchObject({ status: 422 })
  })
})

it('copies go with what they are copies of, whatever their own destination says', async () => {
  const main = local('main', { expiry: { default: '30d' }, mirrors: ['local/copy'] })
  const app = await startApp({
    config: {
      cleanup: { interval: '50ms' },
      default: 'local/main',
      keyTemplate: '{filename}{extname}',
      providers: { local: { ...main, ...local('copy', { expiry: { max: '90d', default: '60d' } }) } },
    },
  })
  const send = (query: string, name: string) =>
    post(`${app.url}/upload${query}`, { body: formOf({ [name]: 'one' }) })
  await send('?configName=copy', 'b.txt')
  await send('', 'c.txt')
  expect((await send('?expires=1s', 'a.txt')).result).toHaveLength(1)
  await expect.poll(app.files).toEqual(['copy/b.txt', 'copy/c.txt', 'main/c.txt'])
})

const IMGUR = { imgur: { a: { clientId: 'x' } } }
it.for<[what: string, providers: object, message: string]>([
  ['where files could not be removed', { imgur: { a: { clientId: 'x', expiry: { max: '1d' } } } }, 'imgur/a'],
  [
    'where those of its mirror could not',
    { ...IMGUR, local: local('x', { expiry: { max: '1d' }, mirrors: ['imgur/a'] }) },
    'its mirror or fallback imgur/a',
  ],
  ['of nothing', { local: local('x', { expiry: {} }) }, 'needs "default" or "max"'],
  [
    'beyond its most',
    { local: local('x', { expiry: { default: '31d', max: '30d' } }) },
    'longer than its "max"',
  ],
  ['of nought', { local: local('x', { expiry: { default: '0d' } }) }, '"30d"'],
  ['without a unit', { local: local('x', { expiry: { max: '30' } }) }, 'write "30s"'],
])('an expiry is a mistake %s', async ([, providers, message]) => {
  await expect(startApp({ config: { providers, default: Object.keys(providers)[0] } })).rejects.toThrow(
    message,
  )
})
