import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { UploadError } from '../../src/errors.ts'
import {
  type AccessSettings,
  createAccess,
  type RequestFacts,
  requestFacts,
} from '../../src/routes/access.ts'
import { createFailureWindow } from '../../src/routes/failure-window.ts'
import type { SourceKind } from '../../src/uploader/input.ts'

const KEY = 'k3y-0f-the-server'
const CI_KEY = 'k3y-0f-the-ci'

const NO_KEY: AccessSettings = {
  keys: [],
  loopbackExempt: true,
  anonymous: false,
  allowedOrigins: [],
  allowNullOrigin: false,
  allowedHosts: [],
  maxFailures: 3,
  sources: {
    path: { enabled: true, roots: [] },
    url: { enabled: true, allowPrivate: false },
    clipboard: { enabled: true },
  },
}
const ONE_KEY: AccessSettings = { ...NO_KEY, keys: [{ name: 'server', key: KEY }] }
const TWO_KEYS: AccessSettings = {
  ...NO_KEY,
  keys: [
    { name: 'server', key: KEY },
    { name: 'ci', key: CI_KEY, destinations: ['s3/screens'], sources: ['form'] },
  ],
}
const OPEN: AccessSettings = { ...NO_KEY, anonymous: true }
const OPEN_WITH_KEY: AccessSettings = { ...ONE_KEY, anonymous: true }

const HERE = { peerAddress: '127.0.0.1', host: '127.0.0.1:36677' }
const STRANGER = { peerAddress: '203.0.113.9', host: 'img.example.com' }

interface Ask extends IncomingHttpHeaders {
  peerAddress?: string | undefined
  clientAddress?: string
  query?: string
}

/** Facts of a request, with the headers beside the addresses and the query. */
function facts({ peerAddress, clientAddress, query, ...headers }: Ask): RequestFacts {
  return {
    method: 'POST',
    peerAddress,
    clientAddress: clientAddress ?? peerAddress ?? '',
    headers,
    rawHeaders: Object.entries(headers).flatMap(([name, value]) => [name, String(value)]),
    scheme: 'http',
    query: new URLSearchParams(query),
  }
}

const noFailures = () => createFailureWindow(() => 0)

/** The name of the caller, or the code of the refusal. */
async function decide(settings: AccessSettings, ask: Ask): Promise<string> {
  const access = createAccess(settings, noFailures())
  try {
    return (await access.admit(facts(ask))).name
  } catch (error) {
    return refusalOf(error).code
  }
}

async function refuse(settings: AccessSettings, ask: Ask): Promise<UploadError> {
  const access = createAccess(settings, noFailures())
  try {
    await access.admit(facts(ask))
  } catch (error) {
    return refusalOf(error)
  }
  throw new Error('was admitted')
}

function refusalOf(error: unknown): UploadError {
  if (error instanceof UploadError) return error
  throw error
}

const here = (ask: Ask = {}): Ask => ({ ...HERE, ...ask })
const stranger = (ask: Ask = {}): Ask => ({ ...STRANGER, ...ask })
const RIGHT_KEY = { query: `key=${KEY}` }
const WRONG_KEY = { query: 'key=wrong' }
const EVIL_PAGE = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }
const NOT_EXEMPT: AccessSettings = { ...ONE_KEY, loopbackExempt: false }
const EMPTY_KEY: AccessSettings = { ...NO_KEY, keys: [{ name: 'server', key: '' }] }

/** Sends the lines after the request line as they are, and answers with the caller, or the code of the refusal. */
async function send(
  settings: AccessSettings,
  lines: readonly string[],
  query = '',
  show = (error: UploadError): string => error.code,
): Promise<string> {
  const access = createAccess(settings, noFailures())
  const server = createServer(async (req, res) => {
    const params = new URL(req.url ?? '', 'http://server.invalid').searchParams
    try {
      res.end((await access.admit(requestFacts(req, params, req.socket.remoteAddress ?? ''))).name)
    } catch (error) {
      res.end(show(refusalOf(error)))
    }
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  try {
    const socket = connect(address.port, '127.0.0.1')
    socket.write(`${[`POST /upload${query} HTTP/1.1`, 'Connection: close', ...lines].join('\r\n')}\r\n\r\n`)
    const [head = '', body] = (await text(socket)).split('\r\n\r\n')
    return body || head
  } finally {
    server.close()
  }
}

/** Who is admitted, and as whom, or the code of the refusal. */
const DECISIONS: readonly [who: string, settings: AccessSettings, ask: Ask, decision: string][] = [
  // A program on this machine is not asked
  ['where no key is configured', NO_KEY, here(), 'loopback'],
  ['where one is', ONE_KEY, here(), 'loopback'],
  ['over IPv6', ONE_KEY, here({ peerAddress: '::1', host: '[::1]:36677' }), 'loopback'],
  ['over a dual-stack socket', ONE_KEY, here({ peerAddress: '::ffff:127.0.0.1' }), 'loopback'],
  ['and its right key is not looked at', ONE_KEY, here(RIGHT_KEY), 'loopback'],
  ['nor is a wrong one', ONE_KEY, here(WRONG_KEY), 'loopback'],
  ['on an open server', OPEN_WITH_KEY, here(RIGHT_KEY), 'loopback'],
  ['when it is Obsidian', ONE_KEY, here({ origin: 'app://obsidian.md' }), 'loopback'],
  ['unless the exemption is switched off', NOT_EXEMPT, here(), 'unauthorized'],
  ['but then may send the key', NOT_EXEMPT, here(RIGHT_KEY), 'server'],
  // What only looks like this machine needs the key
  ['attack: a web page in a browser here', NO_KEY, here(EVIL_PAGE), 'unauthorized'],
  ['attack: the same, a key configured', ONE_KEY, here(EVIL_PAGE), 'unauthorized'],
  ['attack: a stranger through a proxy', NO_KEY, here({ 'x-forwarded-for': '127.0.0.1' }), 'unauthorized'],
  ['attack: Host of this machine', NO_KEY, here({ peerAddress: '203.0.113.9' }), 'unauthorized'],
  ['attack: forwarded for loopback', NO_KEY, stranger({ clientAddress: '127.0.0.1' }), 'unauthorized'],
  ['another machine at home', NO_KEY, here({ peerAddress: '192.168.1.7' }), 'unauthorized'],
  ['the other side of a container bridge', NO_KEY, here({ peerAddress: '172.17.0.1' }), 'unauthorized'],
  ['a Unix socket', NO_KEY, here({ peerAddress: undefined }), 'unauthorized'],
  ['a web page that knows it', ONE_KEY, here({ ...EVIL_PAGE, ...RIGHT_KEY }), 'server'],
  ['a stranger through a proxy who knows it', ONE_KEY, here({ via: '', 'x-upload-key': KEY }), 'server'],
  // A stranger
  ['without a key, none configured', NO_KEY, stranger(), 'unauthorized'],
  ['with a left-over key, none configured', NO_KEY, stranger(WRONG_KEY), 'unauthorized'],
  ['without a key', ONE_KEY, stranger(), 'unauthorized'],
  ['with an empty key', ONE_KEY, stranger({ query: 'key=', authorization: 'Bearer' }), 'unauthorized'],
  ['attack: an empty key, the same configured', EMPTY_KEY, stranger({ query: 'key=' }), 'unauthorized'],
  ['with a wrong key', ONE_KEY, stranger(WRONG_KEY), 'unauthorized'],
  ['with a trusted page, which helps only here', ONE_KEY, stranger({ origin: 'file://' }), 'unauthorized'],
  ['with the right key', ONE_KEY, stranger(RIGHT_KEY), 'server'],
  ['with the right key as Bearer', ONE_KEY, stranger({ authorization: `Bearer ${KEY}` }), 'server'],
  ['with a right key beside a wrong one', ONE_KEY, stranger({ query: `key=x&secret=${KEY}` }), 'server'],
  ['with another right key', TWO_KEYS, stranger({ query: `key=${CI_KEY}` }), 'ci'],
  ['with two: the first configured', TWO_KEYS, stranger({ query: `key=${CI_KEY}&key=${KEY}` }), 'server'],
  ['on an open server', OPEN, stranger(), 'anonymous'],
  ['on an open server, with a left-over key', OPEN, stranger(WRONG_KEY), 'anonymous'],
  ['on an open server, with a wrong key', OPEN_WITH_KEY, stranger(WRONG_KEY), 'anonymous'],
  ['on an open server, with a right key', OPEN_WITH_KEY, stranger(RIGHT_KEY), 'server'],
  ['on an open server, from a web page here', OPEN, here(EVIL_PAGE), 'anonymous'],
]

describe('access', () => {
  it.each(DECISIONS)('%s', async (_who, settings, ask, decision) => {
    expect(await decide(settings, ask)).toBe(decision)
  })

  it.each(DECISIONS.filter((_, index) => index % 10 === 0))(
    'over a socket: %s',
    async (_who, settings, { peerAddress: _peer, clientAddress: _client, query, ...headers }, decision) => {
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
      expect(await send(settings, lines, query && `?${query}`)).toBe(decision)
    },
  )
})

describe('what a caller may name', () => {
  const { path, url } = NO_KEY.sources
  const off = { enabled: false }
  const ROOTS = { path: { ...path, roots: ['/srv'] } }
  const PRIVATE = { url: { ...url, allowPrivate: true } }
  const ALL_OFF = { path: { ...off, roots: [] }, url: { ...off, allowPrivate: false }, clipboard: off }
  type Changes = Partial<AccessSettings['sources']>

  /** A server with a key for those kinds, or for the default, and with changes to its sources. */
  function withKey(
    kinds: SourceKind[] | undefined,
    sources: Changes = {},
    anonymous = false,
  ): AccessSettings {
    const keys = [{ name: 'ci', key: KEY, sources: kinds }]
    return { ...NO_KEY, keys, anonymous, sources: { ...NO_KEY.sources, ...sources } }
  }
  const common = (sources?: Changes) => withKey(undefined, sources)
  const open = (sources?: Changes) => withKey(undefined, sources, true)

  it.each<[string, AccessSettings, kinds: string, addresses: string]>([
    ['everything', common(), 'form url path clipboard', 'private'],
    ['everything, whatever the roots are', common(ROOTS), 'form url path clipboard', 'private'],
    ['every address where that is configured', common(PRIVATE), 'form url path clipboard', 'any'],
    ['no clipboard where that is switched off', common({ clipboard: off }), 'form url path', 'private'],
    ['forms only where all is switched off', common(ALL_OFF), 'form', 'private'],
  ])('on this machine: %s', async (_what, settings, kinds, addresses) => {
    const caller = await createAccess(settings, noFailures()).admit(facts(here()))
    expect([[...caller.sources].join(' '), caller.addresses, caller.roots]).toEqual([
      kinds,
      addresses,
      undefined,
    ])
  })

  it.each<[string, AccessSettings, kinds: string, addresses: string, roots: string[]]>([
    ['forms and URLs', common(), 'form url', 'public', []],
    ['paths below the roots', common(ROOTS), 'form url path', 'public', ['/srv']],
    ['every address where that is configured', common(PRIVATE), 'form url', 'any', []],
    ['forms only where all is switched off', common(ALL_OFF), 'form', 'public', []],
    ['no more than its list', withKey(['form'], ROOTS), 'form', 'public', ['/srv']],
    ['the clipboard when listed', withKey(['clipboard']), 'clipboard', 'public', []],
    ['paths when listed, but without roots none passes', withKey(['path']), 'path', 'public', []],
    ['nothing switched off although listed', withKey(['form', 'url', 'path'], ALL_OFF), 'form', 'public', []],
    ['nothing by an empty list', withKey([]), '', 'public', []],
  ])('with a key: %s', async (_what, settings, kinds, addresses, roots) => {
    const caller = await createAccess(settings, noFailures()).admit(facts(stranger(RIGHT_KEY)))
    expect([[...caller.sources].join(' '), caller.addresses, caller.roots]).toEqual([kinds, addresses, roots])
  })

  it.each<[string, AccessSettings, kinds: string, addresses: string, roots: string[]]>([
    ['forms and URLs', open(), 'form url', 'public', []],
    ['paths below the roots', open(ROOTS), 'form url path', 'public', ['/srv']],
    ['forms only where all is switched off', open(ALL_OFF), 'form', 'public', []],
    ['the default, whatever a key may', withKey(['clipboard'], {}, true), 'form url', 'public', []],
  ])('anonymous: %s', async (_what, settings, kinds, addresses, roots) => {
    const caller = await createAccess(settings, noFailures()).admit(facts(stranger()))
    expect([[...caller.sources].join(' '), caller.addresses, caller.roots]).toEqual([kinds, addresses, roots])
  })

  it('only a key may be bound to destinations', async () => {
    const access = createAccess(TWO_KEYS, noFailures())
    const of = async (ask: Ask) => (await access.admit(facts(ask))).destinations
    expect(await of(stranger({ query: `key=${CI_KEY}` }))).toEqual(['s3/screens'])
    expect(await of(stranger(RIGHT_KEY))).toBeUndefined()
    expect(await of(here())).toBeUndefined()
  })

  it('says how each was admitted', async () => {
    const access = createAccess(OPEN_WITH_KEY, noFailures())
    const by = async (ask: Ask) => (await access.admit(facts(ask))).admittedBy
    expect([await by(here()), await by(stranger(RIGHT_KEY)), await by(stranger())]).toEqual([
      'loopback',
      'key',
      'anonymous',
    ])
  })
})

describe('the limit of wrong keys', () => {
  /** Three wrong keys are allowed in a minute. */
  function start(settings: AccessSettings = ONE_KEY) {
    const clock = { ms: 0 }
    const access = createAccess(
      settings,
      createFailureWindow(() => clock.ms),
    )
    const ask = async (request: Ask): Promise<string> => {
      try {
        return (await access.admit(facts(request))).name
      } catch (error) {
        const { code, retryAfterS } = refusalOf(error)
        return retryAfterS === undefined ? code : `${code} ${retryAfterS}`
      }
    }
    const guess = async (times: number, request: Ask = STRANGER) => {
      for (let i = 0; i < times; i++) await ask({ ...request, query: `key=guess${i}` })
    }
    return { clock, ask, guess }
  }
  const RIGHT = stranger(RIGHT_KEY)

  it('refuses the address after so many, right key or wrong or none, until the window has passed', async () => {
    const { clock, ask, guess } = start()
    await guess(2)
    expect(await ask(stranger({ query: 'key=third' }))).toBe('unauthorized')
    clock.ms = 1000
    expect(await ask(RIGHT)).toBe('rate_limited 59')
    expect(await ask(stranger(WRONG_KEY))).toBe('rate_limited 59')
    expect(await ask(STRANGER)).toBe('rate_limited 59')
    clock.ms = 60_000
    expect(await ask(RIGHT)).toBe('server')
  })

  it('counts only wrong keys: neither none, nor an empty one, nor a wrong one beside a right one', async () => {
    const { ask } = start()
    for (let i = 0; i < 10; i++) {
      await ask(STRANGER)
      await ask(stranger({ query: 'key=&secret=', authorization: 'Bearer' }))
      await ask({ ...RIGHT, authorization: 'Basic YTpi' })
    }
    expect(await ask(RIGHT)).toBe('server')
  })

  it('counts several wrong keys of one request once', async () => {
    const { ask } = start()
    const many = {
      ...STRANGER,
      query: 'key=a&key=b&secret=c',
      'x-upload-key': 'd',
      authorization: 'Bearer e',
    }
    await ask(many)
    await ask(many)
    expect(await ask(RIGHT)).toBe('server')
    await ask(many)
    expect(await ask(RIGHT)).toBe('rate_limited 60')
  })

  it('attack: the owner of one key uses it between guesses at another', async () => {
    const { ask } = start(TWO_KEYS)
    for (let i = 0; i < 3; i++) {
      await ask(stranger({ query: `key=guess${i}` }))
      await ask(stranger({ query: `key=${CI_KEY}` }))
    }
    expect(await ask(stranger({ query: `key=${CI_KEY}` }))).toBe('rate_limited 60')
  })

  it('attack: a stranger behind a trusted proxy locks out himself and nobody else', async () => {
    const { ask, guess } = start()
    const proxied = { peerAddress: '10.0.0.2', host: 'img.example.com' }
    await guess(3, { ...proxied, clientAddress: '203.0.113.66' })
    expect(await ask({ ...proxied, clientAddress: '203.0.113.66', query: `key=${KEY}` })).toBe(
      'rate_limited 60',
    )
    expect(await ask({ ...proxied, clientAddress: '203.0.113.67', query: `key=${KEY}` })).toBe('server')
  })

  it('attack: a web page here guesses keys, and programs here go on working', async () => {
    const { ask, guess } = start()
    const page = here({ origin: 'https://evil.example' })
    await guess(3, page)
    expect(await ask({ ...page, query: `key=${KEY}` })).toBe('rate_limited 60')
    expect(await ask(HERE)).toBe('loopback')
  })

  it('never counts what programs on this machine send', async () => {
    const { ask, guess } = start()
    await guess(10, HERE)
    expect(await ask(here({ origin: 'https://a.example', query: `key=${KEY}` }))).toBe('server')
  })

  it('ignores left-over keys where none is configured', async () => {
    const { ask, guess } = start(OPEN)
    await guess(10)
    expect(await ask(stranger({ query: 'key=old' }))).toBe('anonymous')
  })

  it('protects the keys of an open server too', async () => {
    const { ask, guess } = start(OPEN_WITH_KEY)
    await guess(3)
    expect(await ask(RIGHT)).toBe('rate_limited 60')
  })

  it.each([
    ['plain', 'k3y-0f-the-old-ci', 'k3y-0f-the-old-ci'],
    ['in UTF-8', 'Schlüssel', 'Schl%C3%BCssel'],
    ['with a plus sign', 'a+b', 'a+b'],
  ])('does not count a key that has expired, %s, and the log names it', async (_, key, inQuery) => {
    const old = { name: 'old ci', key, expires: Date.parse('2020-01-01') }
    const settings = { ...ONE_KEY, keys: [...ONE_KEY.keys, old] }
    const { ask } = start(settings)
    const header = stranger({ 'x-upload-key': Buffer.from(key).toString('latin1') })
    for (let i = 0; i < 3; i++) {
      expect(await ask(header)).toBe('unauthorized')
      expect(await ask(stranger({ query: `key=${inQuery}` }))).toBe('unauthorized')
    }
    expect((await refuse(settings, header)).logged).toEqual({ proxy: undefined, expiredKey: 'old ci' })
    for (let i = 0; i < 3; i++) await ask({ ...header, query: `key=guess${i}` })
    expect(await ask(RIGHT)).toBe('rate_limited 60')
  })

  it('is switched off by 0', async () => {
    const { ask, guess } = start({ ...ONE_KEY, maxFailures: 0 })
    await guess(100)
    expect(await ask(RIGHT)).toBe('server')
  })
})

describe('the words of a refusal', () => {
  it('are the same for no key and a wrong one', async () => {
    const none = (await refuse(ONE_KEY, STRANGER)).message
    expect((await refuse(ONE_KEY, stranger(WRONG_KEY))).message).toBe(none)
    expect((await refuse(ONE_KEY, stranger({ authorization: 'Bearer wrong' }))).message).toBe(none)
    expect(none).toMatch(/^Missing or invalid upload key\. Send it in the X-Upload-Key header/)
  })

  it('say how to set a key where there is none', async () => {
    const { message } = await refuse(NO_KEY, STRANGER)
    for (const way of ['"server.key"', 'UPLOAD_SERVER_KEY', '--key']) expect(message).toContain(way)
  })

  it('say why this machine was not recognised', async () => {
    for (const settings of [NO_KEY, ONE_KEY]) {
      const { message } = await refuse(settings, here({ host: 'img.example.com' }))
      expect(message).toContain('The request came from this machine but is treated as remote: its Host')
    }
  })

  it('say that auth.loopbackExempt is false', async () => {
    expect((await refuse({ ...ONE_KEY, loopbackExempt: false }, HERE)).message).toContain(
      '"auth.loopbackExempt"',
    )
  })

  it('tell a stranger nothing about this machine', async () => {
    const { message } = await refuse(ONE_KEY, stranger({ origin: 'https://a.example', via: '1.1 proxy' }))
    expect(message).not.toContain('machine')
    expect(message).toBe((await refuse(ONE_KEY, STRANGER)).message)
  })

  it('never hold a key or an address', async () => {
    const asks: Ask[] = [
      stranger({ query: 'key=s3cr3t-guess' }),
      here({ host: 'http://evil.example', 'x-upload-key': 's3cr3t-guess' }),
      here({ origin: 'https://evil.example', authorization: 's3cr3t-guess' }),
    ]
    for (const ask of asks) {
      const { message } = await refuse(TWO_KEYS, ask)
      for (const secret of [KEY, CI_KEY, 's3cr3t-guess', '://']) expect(message).not.toContain(secret)
    }
  })

  it('give the seconds to wait after too many wrong keys', async () => {
    const access = createAccess({ ...ONE_KEY, maxFailures: 1 }, noFailures())
    const ask = () => access.admit(facts(stranger(WRONG_KEY)))
    await expect(ask()).rejects.toThrow(/^Missing or invalid upload key/)
    await expect(ask()).rejects.toThrow(
      'Too many failed attempts with wrong upload keys from this IP address. Try again in 60 s',
    )
  })
})

it('a preflight may trust the origins of the configuration', async () => {
  const access = createAccess({ ...NO_KEY, allowedOrigins: ['https://notes.example.com'] }, noFailures())
  expect(access.isTrustedOrigin('https://notes.example.com')).toBe(true)
  expect(access.isTrustedOrigin('https://evil.example')).toBe(false)
})

describe('over a real socket', () => {
  const sendFor = (settings: AccessSettings, lines: readonly string[], query?: string) =>
    send(settings, lines, query, error => error.message)

  it('admits a program on this machine', async () => {
    expect(await sendFor(ONE_KEY, ['Host: localhost:1'])).toContain('loopback')
  })

  it('attack: so many headers that Node drops the last one, which the proxy added', async () => {
    const filler = Array.from({ length: 2100 }, () => 'a:')
    const answer = await sendFor(ONE_KEY, ['Host: localhost', ...filler, 'X-Forwarded-For: 203.0.113.9'])
    // Node 24.20 refuses them by itself.
    expect(answer).toMatch(/it has more than 500 headers|^HTTP\/1\.1 431 /)
  })

  it('attack: the mark of the proxy behind the most headers that are admitted', async () => {
    const filler = Array.from({ length: 497 }, () => 'a:')
    expect(await sendFor(ONE_KEY, ['Host: localhost', ...filler])).toContain('loopback')
    expect(await sendFor(ONE_KEY, ['Host: localhost', ...filler, 'X-Real-IP:'])).toContain('"x-real-ip"')
  })

  it('attack: a second Origin, a second Sec-Fetch-Site', async () => {
    const twoOrigins = ['Host: localhost', 'Origin: http://localhost', 'Origin: https://evil.example']
    expect(await sendFor(ONE_KEY, twoOrigins)).toContain('"auth.allowedOrigins"')
    const twoSites = ['Host: localhost', 'Sec-Fetch-Site: none', 'Sec-Fetch-Site: cross-site']
    expect(await sendFor(ONE_KEY, twoSites)).toContain('another site')
  })

  it('finds a key of any letters in a header and in the query', async () => {
    const settings = { ...NO_KEY, keys: [{ name: 'server', key: '密钥 é' }] }
    const page = ['Host: localhost', 'Origin: https://a.example']
    expect(await sendFor(settings, [...page, 'Authorization: Bearer 密钥 é'])).toContain('server')
    expect(await sendFor(settings, page, `?key=${encodeURIComponent('密钥 é')}`)).toContain('server')
    expect(await sendFor(settings, [...page, 'Authorization: Bearer 密钥'])).toContain(
      'Missing or invalid upload key',
    )
  })
})
