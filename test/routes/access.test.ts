import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { UploadError } from '../../src/errors.ts'
import {
  type Access,
  type AccessSettings,
  createAccess,
  type RequestFacts,
  requestFacts,
} from '../../src/routes/access.ts'
import { collectKeys } from '../../src/routes/credentials.ts'
import { createFailureWindow } from '../../src/routes/failure-window.ts'
import type { SourceKind } from '../../src/uploader/input.ts'
import { startApp } from '../helpers/start-app.ts'

// Who a client is, and whether a page of another site sent the request: a row is settings, a request and the decision. To
// add a case, add a row. Every tenth request of this machine is also sent over a socket.

const KEY = 'k3y-0f-the-server'
const CI_KEY = 'k3y-0f-the-ci'
const PROXIED_KEY = 'k3y-0f-the-proxy'
const SECRET = 's3cret-0f-the-proxy'

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
const keyed = (...keys: AccessSettings['keys']): AccessSettings => ({ ...NO_KEY, keys })
const ONE_KEY = keyed({ name: 'server', key: KEY })
const TWO_KEYS = keyed(
  { name: 'server', key: KEY },
  { name: 'ci', key: CI_KEY, destinations: ['s3/screens'], sources: ['form'] },
)
const NOT_EXEMPT: AccessSettings = { ...ONE_KEY, loopbackExempt: false }
const OPEN: AccessSettings = { ...NO_KEY, anonymous: true }
const OPEN_WITH_KEY: AccessSettings = { ...ONE_KEY, anonymous: true }
/** Where a reverse proxy names people. */
const behind = (proxy: Partial<AccessSettings['reverseProxy']> = {}, more: Partial<AccessSettings> = {}) => ({
  ...ONE_KEY,
  reverseProxy: {
    from: ['127.0.0.1'],
    userHeader: 'remote-user',
    isPreset: true,
    requireKey: false,
    ...proxy,
  },
  ...more,
})

interface Request {
  /** Undefined for a Unix socket. */
  readonly peer: string | undefined
  /** Behind trusted proxies. Default: the peer. */
  readonly client?: string
  readonly method?: string
  readonly query: string
  /** Header lines, as they are sent. */
  readonly lines: readonly string[]
}

/** @param sent header lines, and the query, which begins with "?" */
function from(peer: string | undefined, ...sent: string[]): Request {
  const lines = sent.filter(line => !line.startsWith('?'))
  const host = lines.some(line => /^host:/i.test(line)) ? [] : ['Host: 127.0.0.1:36677']
  return { peer, query: sent.find(line => line.startsWith('?')) ?? '', lines: [...host, ...lines] }
}
const here = (...sent: string[]) => from('127.0.0.1', ...sent)
const stranger = (...sent: string[]) => from('203.0.113.9', 'Host: img.example.com', ...sent)

/** The facts as Node gives them, each byte of a header a character. */
function facts({ peer, client = peer ?? '', method = 'POST', query, lines }: Request): RequestFacts {
  const headers: Record<string, string> = {}
  const rawHeaders = lines.flatMap(line => {
    const [, name = '', value = ''] = /^([^:]*): ?(.*)$/s.exec(line) ?? []
    return [name, Buffer.from(value).toString('latin1')]
  })
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = [rawHeaders[i]?.toLowerCase(), rawHeaders[i + 1]]
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`
  }
  const params = new URLSearchParams(query)
  return {
    method,
    peerAddress: peer,
    clientAddress: client,
    headers,
    rawHeaders,
    query: params,
    scheme: 'http',
  }
}

const noFailures = () => createFailureWindow(() => 0)

async function judge(access: Access, request: RequestFacts) {
  const caller = await access.admit(request)
  access.assertSameSite(caller, request)
  return caller
}

function refusalOf(error: unknown): UploadError {
  if (error instanceof UploadError) return error
  throw error
}

/** Whom a request comes from, or why it is refused. */
async function decide(settings: AccessSettings, request: RequestFacts): Promise<string | UploadError> {
  try {
    return (await judge(createAccess(settings, noFailures()), request)).name
  } catch (error) {
    return refusalOf(error)
  }
}

async function refuse(settings: AccessSettings, request: Request): Promise<UploadError> {
  const decision = await decide(settings, facts(request))
  if (typeof decision === 'string') throw new Error(`admitted as ${decision}`)
  return decision
}

const wordsOf = ({ code, message, cause, logged }: UploadError) =>
  [code, message, String(cause ?? ''), JSON.stringify(logged ?? {})].join(' ')

/** The name of the caller, the code of the refusal, or what the refusal or the log says. */
type Decision = string | RegExp
type Row = readonly [what: string, settings: AccessSettings, request: Request, decision: Decision]

function expectDecision(decided: string | UploadError, expected: Decision): void {
  if (typeof expected === 'string')
    expect(typeof decided === 'string' ? decided : decided.code).toBe(expected)
  else expect(typeof decided === 'string' ? decided : wordsOf(decided)).toMatch(expected)
}

const EVIL_PAGE = ['Origin: https://evil.example', 'Sec-Fetch-Site: cross-site']
const WRONG = '?key=wrong'
const RIGHT = `?key=${KEY}`
const UNKNOWN_HOST = /"server\.allowedHosts"/
const UNKNOWN_ORIGIN = /"auth\.allowedOrigins"/
const NULL_ORIGIN = /"auth\.allowNullOrigin"/

const CALLERS: readonly Row[] = [
  // A program on this machine is not asked
  ['where no key is configured', NO_KEY, here(), 'loopback'],
  ['where one is', ONE_KEY, here(), 'loopback'],
  ['and its right key is not looked at', ONE_KEY, here(RIGHT), 'loopback'],
  ['nor is a wrong one', ONE_KEY, here(WRONG), 'loopback'],
  ['on an open server', OPEN_WITH_KEY, here(RIGHT), 'loopback'],
  ['unless the exemption is switched off', NOT_EXEMPT, here(), /"auth\.loopbackExempt" is false/],
  ['but then may send the key', NOT_EXEMPT, here(RIGHT), 'server'],
  // What only looks like this machine needs the key
  ['attack: a web page in a browser here', NO_KEY, here(...EVIL_PAGE), 'unauthorized'],
  ['attack: the same, a key configured', ONE_KEY, here(...EVIL_PAGE), 'unauthorized'],
  ['attack: a stranger through a proxy', NO_KEY, here('X-Forwarded-For: 127.0.0.1'), 'unauthorized'],
  ['attack: Host of this machine', NO_KEY, from('203.0.113.9'), 'unauthorized'],
  ['attack: forwarded for loopback', NO_KEY, { ...stranger(), client: '127.0.0.1' }, 'unauthorized'],
  ['a Unix socket', NO_KEY, from(undefined), 'unauthorized'],
  ['a web page that knows it', ONE_KEY, here(...EVIL_PAGE, RIGHT), 'server'],
  ['a stranger through a proxy who knows it', ONE_KEY, here('Via:', `X-Upload-Key: ${KEY}`), 'server'],
  // A stranger
  ['without a key, none configured', NO_KEY, stranger(), 'unauthorized'],
  ['with a left-over key, none configured', NO_KEY, stranger(WRONG), 'unauthorized'],
  ['without a key', ONE_KEY, stranger(), 'unauthorized'],
  ['with an empty key', ONE_KEY, stranger('?key=', 'Authorization: Bearer'), 'unauthorized'],
  [
    'attack: an empty key, the same configured',
    keyed({ name: 'server', key: '' }),
    stranger('?key='),
    'unauthorized',
  ],
  ['with a wrong key', ONE_KEY, stranger(WRONG), 'unauthorized'],
  ['with a trusted page, which helps only here', ONE_KEY, stranger('Origin: file://'), 'unauthorized'],
  ['with the right key', ONE_KEY, stranger(RIGHT), 'server'],
  ['with another right key', TWO_KEYS, stranger(`?key=${CI_KEY}`), 'ci'],
  ['with two: the first configured', TWO_KEYS, stranger(`?key=${CI_KEY}&key=${KEY}`), 'server'],
  ['on an open server', OPEN, stranger(), 'anonymous'],
  ['on an open server, with a left-over key', OPEN, stranger(WRONG), 'anonymous'],
  ['on an open server, with a wrong key', OPEN_WITH_KEY, stranger(WRONG), 'anonymous'],
  ['on an open server, with a right key', OPEN_WITH_KEY, stranger(RIGHT), 'server'],
  ['on an open server, from a web page here', OPEN, here(...EVIL_PAGE), 'anonymous'],
]

const LOOPBACK = [
  ...['127.0.0.1', '127.0.0.53', '127.255.255.254', '::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1'],
  ...['0000:0000:0000:0000:0000:0000:0000:0001', '::FFFF:127.0.0.1', '::ffff:7f00:1'],
  ...['0:0:0:0:0:ffff:7f00:0001', '0:0:0:0:0:ffff:127.1.2.3'],
]
const ELSEWHERE = [
  ...['', '126.255.255.255', '128.0.0.1', '0.0.0.0', '::', '::2', '10.0.0.1', '192.168.1.5', '172.17.0.1'],
  ...['169.254.1.1', 'fe80::1', '::ffff:128.0.0.1', '::ffff:192.168.1.5', '::127.0.0.1', '64:ff9b::7f00:1'],
  ...['2002:7f00:1::', '127.1', '2130706433', '0x7f.0.0.1', '127.0.0.1, 203.0.113.9', 'localhost'],
]
const PEERS: readonly Row[] = [
  ...LOOPBACK.map((peer): Row => [`the peer ${peer} is this machine`, ONE_KEY, from(peer), 'loopback']),
  ...ELSEWHERE.map((peer): Row => [`the peer "${peer}" is not`, ONE_KEY, from(peer), 'unauthorized']),
]

const MARKS = [
  ...['Forwarded', 'X-Forwarded-For', 'X-Forwarded-Host', 'X-Forwarded-Proto', 'X-Forwarded-Port', 'Via'],
  ...['X-Forwarded-Prefix', 'X-Forwarded-Anything', 'X-Real-IP'],
]
const PROXY_MARKS: readonly Row[] = [
  ...MARKS.flatMap(name =>
    ['203.0.113.9', '127.0.0.1', 'localhost', ''].map(
      (value): Row => [
        `${name} ends the exemption, whatever its value: "${value}"`,
        ONE_KEY,
        here(`${name}: ${value}`),
        new RegExp(`it has the header "${name.toLowerCase()}", which reverse proxies add`),
      ],
    ),
  ),
  ...['X-Request-Id', 'X-Requested-With', 'X-Upload-Key', 'Accept'].map(
    (name): Row => [`${name} does not`, ONE_KEY, here(`${name}: 1`), 'loopback'],
  ),
  ...[
    ...['Remote-User: alice', 'X-Remote-User: alice', 'X_authentik_username: alice', 'X_Forwarded_For: ::1'],
    ...['X-Auth-Request-Email: alice', 'Tailscale-User-Login: alice', 'Cf-Access-Jwt-Assertion: x'],
    ...['X-Goog-IAP-JWT-Assertion: x', 'X-Pomerium-Jwt-Assertion: x'],
  ].map(
    (header): Row => [
      `attack: what a proxy forwards with "${header}" is taken for a program of this machine`,
      ONE_KEY,
      here(header),
      /which reverse proxies add/,
    ],
  ),
]

const pairs = (table: Readonly<Record<string, readonly string[]>>) =>
  Object.entries(table).flatMap(([attack, values]) => values.map(value => [attack, value] as const))

const OWN_HOSTS = [
  ...['localhost', 'localhost:36677', 'LocalHost:36677', 'piclist.localhost', 'a.b.localhost:80'],
  ...['127.0.0.1', '127.0.0.1:36677', '127.8.9.10:1', '192.168.1.5:36677', '203.0.113.9', '0.0.0.0:36677'],
  ...['[::1]', '[::1]:36677', '[0:0:0:0:0:0:0:1]:36677', '[::ffff:127.0.0.1]:36677', '[2001:DB8::5]:36677'],
]
const FOREIGN_HOSTS = pairs({
  'DNS rebinding': ['evil.example', 'evil.example:36677'],
  'a name that only begins or ends like ours': ['localhost.evil.example', 'evillocalhost'],
  'an address in the name': ['127.0.0.1.nip.io', '127.0.0.1.nip.io:36677'],
  'the root dot, which is another name': ['localhost.', 'a.localhost.', '127.0.0.1.'],
  'a short address': ['127.1', '127.1:36677', '127.0.1'],
  'an address as one number': ['2130706433', '0x7f000001'],
  'an octal or hexadecimal address': ['0177.0.0.1', '127.0.0.01', '0x7f.0.0.1'],
  'what only looks like ours': ['①②⑦.⓪.⓪.①', 'locаlhost', 'localhos%74'],
  'an octet too large': ['127.0.0.256'],
  'IPv6 without brackets, or with a zone': ['::1', '[::1%evil.example]'],
  'no IPv6 address in brackets': ['[127.0.0.1]', '[localhost]', '[]'],
  'brackets left open, or text behind them': ['[::1', '[::1].evil.example'],
  'an empty label': ['.localhost', 'a..localhost'],
  'user information': ['localhost@evil.example', 'localhost:80@evil.example'],
  'no port': ['localhost:evil', 'localhost:80:80', 'localhost:', ':36677'],
  'a path or a fragment': ['localhost/evil.example', 'localhost/', 'evil.example#localhost'],
  'two hosts': ['localhost, evil.example', 'localhost evil.example'],
})
/** Of `server.allowedHosts`. */
const LISTED_HOSTS: readonly (readonly [allowed: string, host: string, passes: boolean])[] = [
  ['img.example.com', 'img.example.com', true],
  ['img.example.com', 'img.example.com:8443', true],
  ['IMG.example.com', 'img.EXAMPLE.com', true],
  ['img.example.com:8443', 'img.example.com:8443', true],
  ['img.example.com:8443', 'img.example.com', false],
  ['img.example.com:8443', 'img.example.com:8444', false],
  ['img.example.com', 'a.img.example.com', false],
  ['img.example.com', 'img.example.com.evil.example', false],
  ['img.example.com', 'imgxexample.com', false],
  ['', ':36677', false],
  ['*', 'evil.example', false],
]
const HOSTS: readonly Row[] = [
  ...OWN_HOSTS.map((host): Row => [`Host ${host} is own`, ONE_KEY, here(`Host: ${host}`), 'loopback']),
  ...FOREIGN_HOSTS.map(
    ([attack, host]): Row => [`Host: ${attack}, ${host}`, ONE_KEY, here(`Host: ${host}`), UNKNOWN_HOST],
  ),
  ['Host is refused: empty', ONE_KEY, here('Host:'), /it has no Host header/],
  ['Host is refused: empty, and listed', { ...ONE_KEY, allowedHosts: [''] }, here('Host:'), /no Host header/],
  ['Host is refused: none', ONE_KEY, { ...here(), lines: [] }, /it has no Host header/],
  ...LISTED_HOSTS.map(
    ([allowed, host, passes]): Row => [
      `with "${allowed}" in server.allowedHosts, ${host} passes: ${passes}`,
      { ...ONE_KEY, allowedHosts: [allowed] },
      here(`Host: ${host}`),
      passes ? 'loopback' : UNKNOWN_HOST,
    ],
  ),
]

const ELECTRON =
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Typora/1.9 Chrome/126.0 Electron/31.2.0 Safari/537.36'
const CHROME = ELECTRON.replace(/ (?:Electron|Typora)\/\S+/g, '')
const TRUSTED_ORIGINS = [
  ...['app://obsidian.md', 'app://-', 'app://', 'lsp://logseq.io', 'tauri://localhost', 'file://'],
  ...['http://tauri.localhost', 'https://tauri.localhost', 'capacitor://localhost', 'yank-note://localhost'],
  ...['vscode-webview://0f2k3u9f4cl8m4a4n8h9r2s1t0v6', 'safari-web-extension://0f1a2b3c'],
  ...['chrome-extension://abcdefghijklmnopabcdefghijklmnop', 'moz-extension://2c1f0a5e-5d6b-4b7e-8c1e'],
  ...['obsidian-md+x.y://a', 'http://localhost', 'https://localhost', 'http://localhost:5173'],
  ...['HTTP://LocalHost:5173', 'http://dev.localhost:3000', 'http://127.0.0.1', 'http://127.0.0.1:36677'],
  ...['https://127.1.2.3:1', 'http://[::1]', 'http://[::1]:36677'],
]
const FOREIGN_ORIGINS = pairs({
  'any web page': ['https://evil.example', 'http://evil.example:8080', 'https://203.0.113.9'],
  'a name that only begins or ends like ours': ['http://localhost.evil.example', 'http://evillocalhost'],
  'an address in the name': ['http://127.0.0.1.nip.io'],
  'the root dot': ['http://localhost.'],
  'another spelling of an address': ['http://127.1', 'http://0177.0.0.1', 'http://2130706433'],
  'the address of all interfaces': ['http://0.0.0.0:36677'],
  'a page of another machine at home': ['http://192.168.1.1', 'http://[fe80::1]'],
  'mapped into IPv6': ['http://[::ffff:7f00:1]'],
  'text behind the brackets': ['http://[::1]x'],
  'two origins': ['http://localhost, https://evil.example', 'https://evil.example, http://localhost'],
  'two origins by a space': ['http://localhost https://evil.example'],
  'two application origins': ['app://obsidian.md, https://evil.example'],
  'user information': ['http://localhost@evil.example', 'http://localhost:80@evil.example'],
  'a path, which no origin has': ['http://localhost/', 'https://evil.example/app://obsidian.md'],
  'a trusted scheme as host': ['https://app://obsidian.md'],
  'tauri below another domain': ['https://tauri.localhost.evil.example'],
  'a scheme that is none': ['1app://obsidian.md', 'app:obsidian.md', 'localhost', 'data:', '', ' ', '*'],
  'a blob of a page': ['blob:https://evil.example'],
  'null in other words': ['NULL', 'null, null'],
  'a port that is no number': ['http://localhost:evil'],
})
/** Of `auth.allowedOrigins`. */
const LISTED_ORIGINS: readonly (readonly [allowed: string, origin: string, passes: boolean])[] = [
  ['https://notes.example.com', 'https://notes.example.com', true],
  ['https://Notes.example.com/', 'https://notes.example.com', true],
  ['https://notes.example.com:8443', 'https://notes.example.com:8443', true],
  ['https://notes.example.com', 'http://notes.example.com', false],
  ['https://notes.example.com', 'https://notes.example.com:8443', false],
  ['https://notes.example.com', 'https://a.notes.example.com', false],
  ['https://notes.example.com', 'https://notes.example.com.evil.example', false],
  ['https://notes.example.com', 'https://notes.example.com, https://evil.example', false],
  ['*', 'https://evil.example', false],
  ['', '', false],
  ['/', '', false],
  ['https://', 'https://evil.example', false],
]
const CROSS = 'Sec-Fetch-Site: cross-site'
const ORIGINS: readonly Row[] = [
  ...TRUSTED_ORIGINS.flatMap(origin =>
    // Also where the browser calls it cross-site.
    [[], [CROSS]].map(
      (more): Row => [`Origin ${origin} passes`, ONE_KEY, here(`Origin: ${origin}`, ...more), 'loopback'],
    ),
  ),
  ...FOREIGN_ORIGINS.flatMap(([attack, origin]) =>
    // Also where it looks like a program.
    [[], ['Sec-Fetch-Site: same-origin', ELECTRON]].map(
      (more): Row => [
        `Origin: ${attack}, ${origin}`,
        ONE_KEY,
        here(`Origin: ${origin}`, ...more),
        UNKNOWN_ORIGIN,
      ],
    ),
  ),
  ...LISTED_ORIGINS.flatMap(([allowed, origin, passes]) =>
    [[], [CROSS]].map(
      (more): Row => [
        `with "${allowed}" in auth.allowedOrigins, ${origin} passes: ${[passes, ...more].join(', ')}`,
        { ...ONE_KEY, allowedOrigins: [allowed] },
        here(`Origin: ${origin}`, ...more),
        passes ? 'loopback' : UNKNOWN_ORIGIN,
      ],
    ),
  ),
  ...[CHROME, CROSS, 'User-Agent: electron/31', 'User-Agent: Electron'].map(
    (line): Row => [
      `attack: a sandboxed frame of a web page, ${line}`,
      ONE_KEY,
      here('Origin: null', line),
      NULL_ORIGIN,
    ],
  ),
  ['the file page of an Electron program', ONE_KEY, here('Origin: null', ELECTRON), 'loopback'],
  ['the same, called cross-site', ONE_KEY, here('Origin: null', ELECTRON, CROSS), 'loopback'],
  [
    'Origin null, where auth.allowNullOrigin is set',
    { ...ONE_KEY, allowNullOrigin: true },
    here('Origin: null', CROSS),
    'loopback',
  ],
  ['Origin null, listed', { ...ONE_KEY, allowedOrigins: ['null'] }, here('Origin: null'), NULL_ORIGIN],
  ...['cross-site', 'Cross-Site', 'none, cross-site'].map(
    (site): Row => [
      `Sec-Fetch-Site ${site}`,
      ONE_KEY,
      here(`Sec-Fetch-Site: ${site}`),
      /another site sent it/,
    ],
  ),
  ...['same-origin', 'same-site', 'none', ''].map(
    (site): Row => [`Sec-Fetch-Site "${site}"`, ONE_KEY, here(`Sec-Fetch-Site: ${site}`), 'loopback'],
  ),
]

const EVERYTHING: AccessSettings = {
  ...ONE_KEY,
  allowedOrigins: ['https://a.example'],
  allowedHosts: ['a.example'],
  allowNullOrigin: true,
}
const LISTED = ['Host: a.example', 'Origin: https://a.example']
const TOGETHER: readonly Row[] = [
  ['all rules hold', EVERYTHING, here(...LISTED), 'loopback'],
  ['a listed Origin helps no Host', EVERYTHING, here('Host: evil.example', LISTED[1] ?? ''), /its Host/],
  ['a listed Host helps no Origin', EVERYTHING, here('Host: a.example', EVIL_PAGE[0] ?? ''), /its Origin/],
  ['neither helps a proxy', EVERYTHING, here(...LISTED, 'Via:'), /"via"/],
  ['500 headers', ONE_KEY, here(...Array(499).fill('A: b')), 'loopback'],
  [
    'attack: a thousand headers push the mark of the proxy out of what Node keeps',
    ONE_KEY,
    here(...Array(500).fill('A: b')),
    /it has more than 500 headers/,
  ],
]

const HORSE = keyed({ name: 'server', key: 'correct horse' })
const found = (where: string, ...sent: string[]): Row => [
  `a key: ${where}`,
  HORSE,
  stranger(...sent),
  'server',
]
const missed = (where: string, ...sent: string[]): Row => [
  `no key: ${where}`,
  HORSE,
  stranger(...sent),
  'unauthorized',
]
const BASE64 = keyed({ name: 'server', key: 'ab+cd/ef+g==' })
const KEYS: readonly Row[] = [
  found('key', '?key=correct+horse'),
  found('key, percent-encoded', '?picbed=s3&key=correct%20horse'),
  found('secret', '?secret=correct+horse'),
  found('Bearer', 'Authorization: Bearer correct horse'),
  found('Bearer in small letters', 'Authorization: bearer correct horse'),
  found('Bearer with more blanks', 'Authorization: BEARER   correct horse'),
  found('raw Authorization', 'Authorization: correct horse'),
  found('X-Upload-Key', 'X-Upload-Key: correct horse'),
  found('X-PicGo-Secret', 'X-PicGo-Secret: correct horse'),
  found('a second key', '?key=wrong&key=correct+horse'),
  found('secret beside a wrong key', '?key=wrong&secret=correct+horse'),
  found('key beside an unrelated Authorization', '?key=correct+horse', 'Authorization: Basic YTpi'),
  found('a header beside wrong keys', '?key=wrong&secret=wrong', 'X-Upload-Key: correct horse'),
  missed('empty values', '?key=&secret=', 'Authorization:', 'X-Upload-Key:'),
  missed('another one', '?key=Correct+horse'),
  missed('a beginning', '?key=correct'),
  missed('more than the key', '?key=correct+horse+battery'),
  missed('another scheme', 'Authorization: Basic correct horse'),
  missed('another header', 'X-Api-Key: correct horse', 'Cookie: key=correct horse'),
  missed('another parameter', '?Key=correct+horse&token=correct+horse&configName=correct+horse'),
  ...['schlüssel', '密钥-é', '🔑🗝️', 'пароль'].flatMap(key =>
    [`?${new URLSearchParams({ key })}`, `X-Upload-Key: ${key}`, `Authorization: Bearer ${key}`].map(
      (sent): Row => [
        `a key of any letters, ${sent}`,
        keyed({ name: 'server', key }),
        stranger(sent),
        'server',
      ],
    ),
  ),
  ['a base64 key that nobody encoded', BASE64, stranger('?key=ab+cd/ef+g=='), 'server'],
  ['a base64 key that is encoded', BASE64, stranger('?key=ab%2Bcd%2Fef%2Bg%3D%3D'), 'server'],
]

const ALICE = 'Remote-User: alice'
const withSecret = behind({
  from: ['127.0.0.0/8'],
  userHeader: 'x-who',
  isPreset: false,
  secretHeader: { name: 'X-Proxy-Secret', value: `Größe-${SECRET}` },
})
const RIGHT_SECRET = `X-Proxy-Secret: Größe-${SECRET}`
const MISTAKES: readonly (readonly [what: string, lines: readonly string[], why: RegExp])[] = [
  ['two people', [ALICE, 'Remote-User: root'], /more than once/],
  ['one person twice', [ALICE, 'remote-user: alice'], /more than once/],
  ['a list', ['Remote-User: alice, root'], /comma/],
  ['nobody', ['Remote-User:'], /is empty/],
  ['a long name', [`Remote-User: ${'a'.repeat(256)}`], /longer than 255 bytes/],
  ['control characters', ['Remote-User: a\tb'], /control characters/],
  ['bytes that are not UTF-8', ['Remote-User: a\u{fffd}'], /not valid UTF-8/],
  ['a twin with an underscore', [ALICE, 'Remote_User: root'], /underscores/],
  ['one of so many headers', [ALICE, ...Array(501).fill('X-A: b')], /more than 500 headers/],
  ['a variable of Caddy', ['Remote-User: {http.reverse_proxy.header.Remote-User}'], /placeholder/],
  ['nobody, in the words of Apache', ['Remote-User: (null)'], /placeholder/],
  ['only the twin', ['REMOTE_USER: root'], /underscores/],
]
const PEOPLE: readonly Row[] = [
  ['whom the proxy names', behind(), here('Remote-User: zoë'), 'proxy: zoë'],
  ['whom the proxy names, who has a key as well', behind(), here(ALICE, RIGHT), 'proxy: alice'],
  ...MISTAKES.flatMap(([what, lines, why]): Row[] => [
    [`attack: the header names ${what}`, behind(), here(...lines), why],
    [`attack: the header names ${what}, beside a right key, too`, behind(), here(...lines, RIGHT), why],
  ]),
  ['nobody is named: not anonymous', behind({}, { anonymous: true }), here(), /auth\.reverseProxy/],
  ['nobody is named: a key counts', behind({}, { anonymous: true }), here(RIGHT), 'server'],
  ['a peer that is not listed names nobody', behind({ from: ['192.0.2.7'] }), here(ALICE), 'unauthorized'],
  ['a peer that is not listed has a key', behind({ from: ['192.0.2.7'] }), here(ALICE, RIGHT), 'server'],
  ['a program beside a proxy elsewhere', behind({ from: ['192.0.2.7'] }), here(), 'loopback'],
  ...['X-Who', 'X_Who'].map(
    (name): Row => [
      `another proxy on this machine sends the header that is configured, as ${name}`,
      behind({ from: ['192.0.2.7'], userHeader: 'x-who' }),
      here(`${name}: alice`),
      /which reverse proxies add/,
    ],
  ),
  ['a proxy on a Unix socket', behind({ from: ['unix'] }), from(undefined, ALICE), 'proxy: alice'],
  ...[[], ['X-Proxy-Secret: wrong'], [`${RIGHT_SECRET}x`], ['X-Proxy-Secret: Größe']].map(
    (secret): Row => [
      `a secret is compared whole: ${secret.join()}`,
      withSecret,
      here('X-Who: alice', ...secret),
      /unauthorized.*"x-proxy-secret\\" is missing or wrong/,
    ],
  ),
  ['a secret without a name', withSecret, here(RIGHT_SECRET), /"x-who\\" is missing/],
  [
    'a secret that is there twice',
    withSecret,
    here('X-Who: alice', RIGHT_SECRET, 'X-Proxy-Secret: wrong'),
    'unauthorized',
  ],
  ['a secret, and a name with a comma', withSecret, here('X-Who: a, b', RIGHT_SECRET), 'proxy: a, b'],
  ['a name that is not enough', behind({ requireKey: true }), here(ALICE), /^unauthorized.*"proxy: alice"/],
  [
    'a name beside a wrong key',
    behind({ requireKey: true }),
    here(ALICE, WRONG),
    /^unauthorized.*"proxy: alice","wrongKey":true/,
  ],
  ['a name beside the right key', behind({ requireKey: true }), here(ALICE, RIGHT), 'proxy: alice'],
]

const ADDED = keyed({ name: 'proxied', key: PROXIED_KEY, addedByProxy: true })
const AT_URL: AccessSettings = { ...ADDED, publicUrl: 'https://img.example.com/path' }
const OWN_PAGE = 'http://127.0.0.1:36677'
const TLS_FORWARDED = 'X-Forwarded-Proto: https'
/** Who is named by a proxy, or has a key that a proxy adds: the browser sends it for any page. */
const SITES: readonly Row[] = [
  ...(
    [
      ['no page', [], true],
      ['its own page', [`Origin: ${OWN_PAGE}`, 'Sec-Fetch-Site: same-origin'], true],
      ['a program', ['Origin: app://obsidian.md', CROSS], true],
      ['a trusted site', ['Origin: https://ok.example', CROSS], true],
      ['another site', ['Origin: https://evil.example'], false],
      ['another port', [`Origin: ${OWN_PAGE}1`, 'Sec-Fetch-Site: same-site'], false],
      ['another scheme', [`Origin: ${OWN_PAGE.replace('http', 'https')}`], false],
      ['its own behind TLS', [`Origin: ${OWN_PAGE.replace('http', 'https')}`, TLS_FORWARDED], true],
      ['a sandboxed frame', ['Origin: null'], false],
      ['an image', [CROSS], false],
      ['a rebound name', ['Host: evil.example', 'Origin: http://evil.example'], false],
    ] as const
  ).map(
    ([who, lines, passes]): Row => [
      `who is named by a proxy uploads from ${who}`,
      behind({}, { allowedOrigins: ['https://ok.example'] }),
      here(ALICE, ...lines),
      passes ? 'proxy: alice' : 'origin_forbidden',
    ],
  ),
  ['a key that a proxy adds, from no page', AT_URL, stranger(`?key=${PROXIED_KEY}`), 'proxied'],
  ...(
    [
      ['https://img.example.com', 'proxied'],
      ['http://img.example.com', 'origin_forbidden'],
      [OWN_PAGE, 'origin_forbidden'],
    ] as const
  ).map(
    ([origin, decision]): Row => [
      `with publicUrl no other origin is the own one: ${origin}`,
      AT_URL,
      stranger(`?key=${PROXIED_KEY}`, `Origin: ${origin}`),
      decision,
    ],
  ),
  [
    'attack: a client whom nobody trusts says that its page came over TLS',
    ADDED,
    from('203.0.113.9', `?key=${PROXIED_KEY}`, `Origin: ${OWN_PAGE.replace('http', 'https')}`, TLS_FORWARDED),
    'origin_forbidden',
  ],
  ['a key of one’s own, from any page', ONE_KEY, stranger(RIGHT, ...EVIL_PAGE), 'server'],
]

const ROWS = [CALLERS, PEERS, PROXY_MARKS, HOSTS, ORIGINS, TOGETHER, KEYS, PEOPLE, SITES].flat()

describe('access', () => {
  it.each(ROWS)('%s', async (_what, settings, request, decision) => {
    expectDecision(await decide(settings, facts(request)), decision)
  })

  let server: Server
  let asked: AccessSettings
  let answer: (decided: string | UploadError) => void
  beforeAll(async () => {
    server = createServer(async (req, res) => {
      const params = new URL(req.url ?? '', 'http://server.invalid').searchParams
      answer(await decide(asked, requestFacts(req, params, req.socket.remoteAddress ?? '')))
      res.end('decided')
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
  })
  afterAll(() => void server.close())

  /** Sends a request as it is. @returns the decision, or what Node says of it */
  async function send(settings: AccessSettings, { query, lines }: Request): Promise<string | UploadError> {
    let decided: string | UploadError | undefined
    asked = settings
    answer = one => {
      decided = one
    }
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    const head = [`POST /upload${query} HTTP/1.1`, 'Connection: close', ...lines]
    socket.write(`${head.join('\r\n')}\r\n\r\n`)
    const said = await text(socket)
    return decided ?? said
  }

  it.each(
    ROWS.filter(([, , { peer, lines }]) => peer === '127.0.0.1' && lines.length > 0).filter(
      (_, i) => i % 10 === 0,
    ),
  )('over a socket: %s', async (_what, settings, request, decision) => {
    expectDecision(await send(settings, request), decision)
  })

  it('attack: so many headers that Node drops the last one, which the proxy added', async () => {
    const filler = Array.from({ length: 2100 }, () => 'a:')
    const decided = await send(ONE_KEY, here(...filler, 'X-Forwarded-For: 203.0.113.9'))
    // Node 24.20 refuses them by itself.
    expectDecision(decided, /it has more than 500 headers|^HTTP\/1\.1 431 /)
  })

  it('attack: the mark of the proxy behind the most headers that are admitted', async () => {
    const filler = Array.from({ length: 497 }, () => 'a:')
    expect(await send(ONE_KEY, here(...filler))).toBe('loopback')
    expectDecision(await send(ONE_KEY, here(...filler, 'X-Real-IP:')), /"x-real-ip"/)
  })

  it('attack: a second Origin, a second Sec-Fetch-Site', async () => {
    const origins = here('Origin: http://localhost', 'Origin: https://evil.example')
    expectDecision(await send(ONE_KEY, origins), UNKNOWN_ORIGIN)
    const sites = here('Sec-Fetch-Site: none', 'Sec-Fetch-Site: cross-site')
    expectDecision(await send(ONE_KEY, sites), /another site/)
  })

  it('attack: a preflight that asks for "user-agent" is never answered as for a trusted origin', () => {
    const trusts = (origin: string, allowed: string) =>
      createAccess({ ...NO_KEY, allowedOrigins: [allowed] }, noFailures()).isTrustedOrigin(origin)
    expect(trusts('null', 'null')).toBe(false)
    for (const origin of TRUSTED_ORIGINS) expect(trusts(origin, 'x'), origin).toBe(true)
    for (const [, origin] of FOREIGN_ORIGINS) expect(trusts(origin, 'x'), origin).toBe(false)
    for (const [allowed, origin, passes] of LISTED_ORIGINS)
      expect(trusts(origin, allowed), origin).toBe(passes)
  })
})

it('attack: a request to a running server that only looks like one of this machine', async () => {
  const body = '{"list":["data:,hello"]}'
  const app = await startApp({ config: { server: { host: '::' } } })
  const { port } = new URL(app.url)
  // Over IPv4 its peers have addresses that are mapped into IPv6.
  for (const host of ['127.0.0.1', '[::1]'])
    for (const [headers, status] of [
      [{}, 200],
      [{ Origin: 'app://obsidian.md' }, 200],
      [{ Origin: 'https://evil.example' }, 401],
      [{ 'X-Forwarded-For': '' }, 401],
      [{ Via: '1.1 x' }, 401],
    ] as const)
      expect((await fetch(`http://${host}:${port}/upload`, { method: 'POST', headers, body })).status).toBe(
        status,
      )
})

describe('what a caller may name', () => {
  const { path, url } = NO_KEY.sources
  const off = { enabled: false }
  const ROOTS = { path: { ...path, roots: ['/srv'] } }
  const PRIVATE = { url: { ...url, allowPrivate: true } }
  const ALL_OFF = { path: { ...off, roots: [] }, url: { ...off, allowPrivate: false }, clipboard: off }
  const ALL = 'form url path clipboard'
  type Changes = Partial<AccessSettings['sources']>
  type Who = 'loopback' | 'key' | 'anonymous' | 'proxy'

  it.each<[who: Who, what: string, of: SourceKind[] | undefined, Changes, kinds: string, more?: object]>([
    ['loopback', 'everything', undefined, {}, ALL],
    ['loopback', 'everything, whatever the roots are', undefined, ROOTS, ALL],
    ['loopback', 'every address where that is configured', undefined, PRIVATE, ALL, { addresses: 'any' }],
    ['loopback', 'no clipboard where it is switched off', undefined, { clipboard: off }, 'form url path'],
    ['loopback', 'forms only where all is switched off', undefined, ALL_OFF, 'form'],
    ['key', 'forms and URLs', undefined, {}, 'form url'],
    ['key', 'paths below the roots', undefined, ROOTS, 'form url path', { roots: ['/srv'] }],
    ['key', 'every address where that is configured', undefined, PRIVATE, 'form url', { addresses: 'any' }],
    ['key', 'forms only where all is switched off', undefined, ALL_OFF, 'form'],
    ['key', 'no more than its list', ['form'], ROOTS, 'form', { roots: ['/srv'] }],
    ['key', 'the clipboard when listed', ['clipboard'], {}, 'clipboard'],
    ['key', 'paths when listed, but without roots none passes', ['path'], {}, 'path'],
    ['key', 'nothing switched off although listed', ['form', 'url', 'path'], ALL_OFF, 'form'],
    ['key', 'nothing by an empty list', [], {}, ''],
    ['anonymous', 'forms and URLs', undefined, {}, 'form url'],
    ['anonymous', 'paths below the roots', undefined, ROOTS, 'form url path', { roots: ['/srv'] }],
    ['anonymous', 'forms only where all is switched off', undefined, ALL_OFF, 'form'],
    ['anonymous', 'the default, whatever a key may', ['clipboard'], {}, 'form url'],
    ['proxy', 'what its key may, where a key is required', ['path'], {}, 'path'],
  ])('by %s: %s', async (who, _what, sources, changes, kinds, more) => {
    const base =
      who === 'proxy' ? behind({ requireKey: true }) : { ...NO_KEY, anonymous: who === 'anonymous' }
    const keys = [{ name: 'ci', key: KEY, sources, destinations: ['s3/screens'] }]
    const settings = { ...base, keys, sources: { ...NO_KEY.sources, ...changes } }
    const asked = { loopback: here(), key: stranger(RIGHT), anonymous: stranger(), proxy: here(ALICE, RIGHT) }
    const caller = await judge(createAccess(settings, noFailures()), facts(asked[who]))
    const isLocal = who === 'loopback'
    expect(caller).toMatchObject({
      ...{ admittedBy: who, addresses: isLocal ? 'private' : 'public', roots: isLocal ? undefined : [] },
      destinations: who === 'key' || who === 'proxy' ? ['s3/screens'] : undefined,
      ...more,
    })
    expect([...caller.sources].join(' ')).toBe(kinds)
  })
})

/** What happens, in order: a request comes, the last one got this answer, the clock shows so many milliseconds. */
type Step = Request | string | number
const guesses = (times: number, request: Request = stranger()): Request[] =>
  Array.from({ length: times }, (_, i) => ({ ...request, query: `?key=guess${i}` }))
const right = stranger(RIGHT)
const manyWrong = stranger('?key=a&key=b&secret=c', 'X-Upload-Key: d', 'Authorization: Bearer e')
const ciKey = stranger(`?key=${CI_KEY}`)
const proxied = from('10.0.0.2', 'Host: img.example.com', RIGHT)
const aside = behind({ from: ['192.0.2.7'] })

describe('the limit of three wrong keys in a minute', () => {
  it.each<[what: string, settings: AccessSettings, steps: Step[]]>([
    [
      'refuses the address after so many, right key or wrong or none, until the window has passed',
      ONE_KEY,
      [
        ...[...guesses(2), stranger('?key=third'), 'unauthorized', 1000, right, 'rate_limited 59'],
        ...[stranger(WRONG), 'rate_limited 59', stranger(), 'rate_limited 59', 60_000, right, 'server'],
      ],
    ],
    [
      'counts only wrong keys: neither none, nor an empty one, nor a wrong one beside a right one',
      ONE_KEY,
      [
        ...Array(5)
          .fill([
            ...[stranger(), stranger('?key=&secret=', 'Authorization: Bearer')],
            stranger(RIGHT, 'Authorization: Basic YTpi'),
          ])
          .flat(),
        ...[right, 'server'],
      ],
    ],
    [
      'counts several wrong keys of one request once',
      ONE_KEY,
      [manyWrong, manyWrong, right, 'server', manyWrong, right, 'rate_limited 60'],
    ],
    [
      'attack: the owner of one key uses it between guesses at another',
      TWO_KEYS,
      [...guesses(3).flatMap(guess => [guess, ciKey]), ciKey, 'rate_limited 60'],
    ],
    [
      'attack: a stranger behind a trusted proxy locks out himself and nobody else',
      ONE_KEY,
      [
        ...guesses(3, { ...proxied, client: '203.0.113.66' }),
        ...[{ ...proxied, client: '203.0.113.66' }, 'rate_limited 60'],
        ...[{ ...proxied, client: '203.0.113.67' }, 'server'],
      ],
    ],
    [
      'attack: a web page here guesses keys, and programs here go on working',
      ONE_KEY,
      [...guesses(3, here(...EVIL_PAGE)), here(...EVIL_PAGE, RIGHT), 'rate_limited 60', here(), 'loopback'],
    ],
    [
      'never counts what programs on this machine send, or what a proxy gets wrong',
      aside,
      [
        ...[...guesses(5, here()), ...Array(5).fill(from('192.0.2.7', 'Remote-User:'))],
        ...[here(...EVIL_PAGE, RIGHT), 'server', from('192.0.2.7', ALICE), 'proxy: alice'],
        ...[from('192.0.2.7', RIGHT), 'server'],
      ],
    ],
    [
      'ignores left-over keys where none is configured',
      OPEN,
      [...guesses(9), stranger('?key=old'), 'anonymous'],
    ],
    ['protects the keys of an open server', OPEN_WITH_KEY, [...guesses(3), right, 'rate_limited 60']],
    ['is switched off by 0', { ...ONE_KEY, maxFailures: 0 }, [...guesses(9), right, 'server']],
  ])('%s', async (_, settings, steps) => {
    let ms = 0
    let last = ''
    const access = createAccess(
      settings,
      createFailureWindow(() => ms),
    )
    for (const step of steps)
      if (typeof step === 'number') ms = step
      else if (typeof step === 'string') expect(last).toBe(step)
      else last = await access.admit(facts(step)).then(({ name }) => name, answerOf)
  })

  it('attack: a thousand guesses in one request', () => {
    const query = new URLSearchParams(Array.from({ length: 1000 }, (_, i) => `key=guess${i}`).join('&'))
    expect(collectKeys({ 'x-upload-key': 'header' } as IncomingHttpHeaders, query)).toHaveLength(8)
  })

  it.each([
    ['plain', 'k3y-0f-the-old-ci', 'k3y-0f-the-old-ci'],
    ['in UTF-8', 'Schlüssel', 'Schl%C3%BCssel'],
    ['with a plus sign', 'a+b', 'a+b'],
  ])('does not count a key that has expired, %s, and the log names it', async (_, key, inQuery) => {
    const settings = keyed(...ONE_KEY.keys, { name: 'old ci', key, expires: Date.parse('2020-01-01') })
    const access = createAccess(settings, noFailures())
    const old = stranger(`X-Upload-Key: ${key}`)
    const ask = (request: Request) => access.admit(facts(request)).then(({ name }) => name, answerOf)
    for (const request of [old, stranger(`?key=${inQuery}`), old, stranger(`?key=${inQuery}`)])
      expect(await ask(request)).toBe('unauthorized')
    expect((await refuse(settings, old)).logged).toEqual({ proxy: undefined, expiredKey: 'old ci' })
    for (const guess of guesses(3, old)) await ask(guess)
    expect(await ask(right)).toBe('rate_limited 60')
  })
})

function answerOf(error: unknown): string {
  const { code, retryAfterS } = refusalOf(error)
  return retryAfterS === undefined ? code : `${code} ${retryAfterS}`
}

describe('the words of a refusal', () => {
  it('are the same for no key and a wrong one, and tell a stranger nothing about this machine', async () => {
    const none = (await refuse(ONE_KEY, stranger())).message
    for (const sent of [[WRONG], ['Authorization: Bearer wrong'], [...EVIL_PAGE, 'Via: 1.1 proxy']])
      expect((await refuse(ONE_KEY, stranger(...sent))).message).toBe(none)
    expect(none).toMatch(/^Missing or invalid upload key\. Send it in the X-Upload-Key header/)
    expect(none).not.toContain('machine')
  })

  it('say how to set a key where there is none, and do not name the header to whom a proxy names unclearly', async () => {
    const { message } = await refuse(NO_KEY, stranger())
    for (const way of ['"server.key"', 'UPLOAD_SERVER_KEY', '--key']) expect(message).toContain(way)
    expect((await refuse(behind(), here('Remote-User:'))).message).not.toMatch(/remote-user/i)
  })

  it.each<[what: string, line: string, words: string]>([
    ['a Host', 'Host: img.example.com:8443', 'its Host "img.example.com:8443" is not a name of this machine'],
    ['an Origin', EVIL_PAGE[0] ?? '', 'its Origin "evil.example" with the scheme "https" is another site'],
    ['a text instead of an Origin', 'Origin: evil', 'its Origin "evil" is another site'],
    ['an Origin that smuggles an address', 'Origin: a://b/http://x.example/p.png', 'its Origin (unreadable)'],
    ['a Host that smuggles an address', 'Host: http://x.example/p.png', 'its Host (unreadable)'],
    ['a Host that smuggles quotes', 'Host: a"b', 'its Host (unreadable)'],
    ['a Host without end', `Host: ${'a'.repeat(5000)}`, 'its Host (unreadable)'],
    ['a header name without end', `X-Forwarded-${'a'.repeat(5000)}: `, 'it has the header "x-forwarded-aaa'],
  ])('name %s, short and without any address or key', async (_what, line, words) => {
    for (const settings of [NO_KEY, TWO_KEYS]) {
      const { message } = await refuse(settings, here(line, 'Authorization: s3cr3t-guess'))
      expect(message).toContain('The request came from this machine but is treated as remote: ')
      expect(message).toContain(words)
      for (const hidden of [KEY, CI_KEY, 's3cr3t-guess', '://']) expect(message).not.toContain(hidden)
      expect(message.length).toBeLessThan(450)
    }
  })
})
