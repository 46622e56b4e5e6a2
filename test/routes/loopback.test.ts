import type { IncomingHttpHeaders } from 'node:http'
import { describe, expect, it } from 'vitest'
import { findExemptionDenial, isTrustedOrigin, type LoopbackRules } from '../../src/routes/loopback.ts'

const RULES: LoopbackRules = {
  loopbackExempt: true,
  allowedOrigins: [],
  allowNullOrigin: false,
  allowedHosts: [],
}
const CHROME =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36'
const ELECTRON =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Typora/1.9 Chrome/126.0 Electron/31.2.0 Safari/537.36'

function denial(headers: IncomingHttpHeaders, rules: Partial<LoopbackRules> = {}): string | undefined {
  return findExemptionDenial({ host: '127.0.0.1:36677', ...headers }, 10, { ...RULES, ...rules })
}

describe('a header that a proxy leaves', () => {
  it.each([
    'forwarded',
    'x-forwarded-for',
    'x-forwarded-host',
    'x-forwarded-proto',
    'x-forwarded-port',
    'x-forwarded-prefix',
    'x-forwarded-anything',
    'x-real-ip',
    'via',
  ])('%s ends the exemption, whatever its value', name => {
    for (const value of ['203.0.113.9', '127.0.0.1', 'localhost', '']) {
      expect(denial({ [name]: value })).toBe(`it has the header "${name}", which reverse proxies add`)
    }
  })

  it.each(['x-request-id', 'x-requested-with', 'x-upload-key', 'accept'])('%s is none', name => {
    expect(denial({ [name]: '1' })).toBeUndefined()
  })

  it('attack: a thousand headers push the mark of the proxy out of what Node keeps', () => {
    expect(findExemptionDenial({ host: 'localhost' }, 501, RULES)).toBe('it has more than 500 headers')
    expect(findExemptionDenial({ host: 'localhost' }, 500, RULES)).toBeUndefined()
  })
})

describe('Host', () => {
  it.each([
    'localhost',
    'localhost:36677',
    'LocalHost:36677',
    'piclist.localhost',
    'a.b.localhost:80',
    '127.0.0.1',
    '127.0.0.1:36677',
    '127.8.9.10:1',
    '192.168.1.5:36677',
    '203.0.113.9',
    '0.0.0.0:36677',
    '[::1]',
    '[::1]:36677',
    '[0:0:0:0:0:0:0:1]:36677',
    '[::ffff:127.0.0.1]:36677',
    '[2001:DB8::5]:36677',
  ])('%j is a name of this machine', host => {
    expect(denial({ host })).toBeUndefined()
  })

  it.each([
    ['DNS rebinding', 'evil.example'],
    ['DNS rebinding on our port', 'evil.example:36677'],
    ['a name that only begins like ours', 'localhost.evil.example'],
    ['a name that only ends like ours', 'evillocalhost'],
    ['an address in the name', '127.0.0.1.nip.io'],
    ['an address in the name, with our port', '127.0.0.1.nip.io:36677'],
    ['the root dot, which is another name', 'localhost.'],
    ['the root dot below localhost', 'a.localhost.'],
    ['the root dot after an address', '127.0.0.1.'],
    ['a short address', '127.1'],
    ['a short address with a port', '127.1:36677'],
    ['an address as one number', '2130706433'],
    ['an octal address', '0177.0.0.1'],
    ['leading zeros', '127.0.0.01'],
    ['a hexadecimal address', '0x7f.0.0.1'],
    ['an address as one hexadecimal number', '0x7f000001'],
    ['an address of three parts', '127.0.1'],
    ['digits that only look like ours', '①②⑦.⓪.⓪.①'],
    ['an octet too large', '127.0.0.256'],
    ['IPv6 without brackets', '::1'],
    ['IPv6 with a zone', '[::1%evil.example]'],
    ['an IPv4 address in brackets', '[127.0.0.1]'],
    ['a name in brackets', '[localhost]'],
    ['brackets left open', '[::1'],
    ['text behind the brackets', '[::1].evil.example'],
    ['nothing in the brackets', '[]'],
    ['an empty label', '.localhost'],
    ['an empty label inside', 'a..localhost'],
    ['user information', 'localhost@evil.example'],
    ['user information with a port', 'localhost:80@evil.example'],
    ['a port that is no number', 'localhost:evil'],
    ['two ports', 'localhost:80:80'],
    ['a colon without a port', 'localhost:'],
    ['a path', 'localhost/evil.example'],
    ['an empty path', 'localhost/'],
    ['a fragment', 'evil.example#localhost'],
    ['two hosts', 'localhost, evil.example'],
    ['white space', 'localhost evil.example'],
    ['a percent-encoded name', 'localhos%74'],
    ['a letter that only looks like one of ours', 'locаlhost'],
    ['only a port', ':36677'],
  ])('is refused: %s, %j', (_attack, host) => {
    expect(denial({ host })).toContain('"server.allowedHosts"')
  })

  it.each([undefined, ''])('is refused: %j', host => {
    expect(denial({ host })).toBe('it has no Host header')
    expect(denial({ host }, { allowedHosts: [''] })).toBe('it has no Host header')
  })

  it.each([
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
  ])('with %j in server.allowedHosts, %j passes: %s', (allowed, host, passes) => {
    expect(denial({ host }, { allowedHosts: [allowed] }) === undefined).toBe(passes)
  })
})

const TRUSTED_ORIGINS = [
  'app://obsidian.md',
  'app://-',
  'app://',
  'lsp://logseq.io',
  'tauri://localhost',
  'http://tauri.localhost',
  'https://tauri.localhost',
  'capacitor://localhost',
  'file://',
  'vscode-webview://0f2k3u9f4cl8m4a4n8h9r2s1t0v6',
  'chrome-extension://abcdefghijklmnopabcdefghijklmnop',
  'moz-extension://2c1f0a5e-5d6b-4b7e-8c1e-0f1a2b3c4d5e',
  'safari-web-extension://0f1a2b3c',
  'yank-note://localhost',
  'obsidian-md+x.y://a',
  'http://localhost',
  'https://localhost',
  'http://localhost:5173',
  'HTTP://LocalHost:5173',
  'http://dev.localhost:3000',
  'http://127.0.0.1',
  'http://127.0.0.1:36677',
  'https://127.1.2.3:1',
  'http://[::1]',
  'http://[::1]:36677',
]

const FOREIGN_ORIGINS: [attack: string, origin: string][] = [
  ['any web page', 'https://evil.example'],
  ['any web page without TLS', 'http://evil.example:8080'],
  ['a name that only begins like ours', 'http://localhost.evil.example'],
  ['a name that only ends like ours', 'http://evillocalhost'],
  ['an address in the name', 'http://127.0.0.1.nip.io'],
  ['the root dot', 'http://localhost.'],
  ['a short address', 'http://127.1'],
  ['an octal address', 'http://0177.0.0.1'],
  ['an address as one number', 'http://2130706433'],
  ['the address of all interfaces', 'http://0.0.0.0:36677'],
  ['a page of another machine at home', 'http://192.168.1.1'],
  ['a page of another machine, IPv6', 'http://[fe80::1]'],
  ['a public address', 'https://203.0.113.9'],
  ['mapped into IPv6', 'http://[::ffff:7f00:1]'],
  ['text behind the brackets', 'http://[::1]x'],
  ['two origins', 'http://localhost, https://evil.example'],
  ['two origins, the right one last', 'https://evil.example, http://localhost'],
  ['two origins by a space', 'http://localhost https://evil.example'],
  ['two application origins', 'app://obsidian.md, https://evil.example'],
  ['user information', 'http://localhost@evil.example'],
  ['user information with a port', 'http://localhost:80@evil.example'],
  ['a path, which no origin has', 'http://localhost/'],
  ['a trusted scheme in the path', 'https://evil.example/app://obsidian.md'],
  ['a trusted scheme as host', 'https://app://obsidian.md'],
  ['tauri below another domain', 'https://tauri.localhost.evil.example'],
  ['a scheme that is none', '1app://obsidian.md'],
  ['a blob of a page', 'blob:https://evil.example'],
  ['no scheme', 'localhost'],
  ['a scheme without slashes', 'app:obsidian.md'],
  ['data', 'data:'],
  ['empty', ''],
  ['only blanks', ' '],
  ['null in capitals', 'NULL'],
  ['two nulls', 'null, null'],
  ['a port that is no number', 'http://localhost:evil'],
  ['a star', '*'],
]

describe('Origin', () => {
  it('is absent in what programs send, which passes', () => {
    expect(denial({})).toBeUndefined()
  })

  it.each(TRUSTED_ORIGINS)('%j passes, also where the browser calls it cross-site', origin => {
    expect(denial({ origin })).toBeUndefined()
    expect(denial({ origin, 'sec-fetch-site': 'cross-site' })).toBeUndefined()
    expect(isTrustedOrigin(origin, [])).toBe(true)
  })

  it.each(FOREIGN_ORIGINS)('is refused: %s, %j', (_attack, origin) => {
    expect(denial({ origin })).toContain('"auth.allowedOrigins"')
    expect(denial({ origin, 'sec-fetch-site': 'same-origin', 'user-agent': ELECTRON })).toBeDefined()
    expect(isTrustedOrigin(origin, [])).toBe(false)
  })

  it.each([
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
  ])('with %j in auth.allowedOrigins, %j passes: %s', (allowed, origin, passes) => {
    const rules = { allowedOrigins: [allowed] }
    expect(denial({ origin }, rules) === undefined).toBe(passes)
    expect(denial({ origin, 'sec-fetch-site': 'cross-site' }, rules) === undefined).toBe(passes)
    expect(isTrustedOrigin(origin, rules.allowedOrigins)).toBe(passes)
  })
})

describe('Origin null', () => {
  it('attack: a sandboxed frame of a web page', () => {
    expect(denial({ origin: 'null', 'user-agent': CHROME })).toContain('"auth.allowNullOrigin"')
    expect(denial({ origin: 'null', 'sec-fetch-site': 'cross-site' })).toContain('"auth.allowNullOrigin"')
    expect(denial({ origin: 'null', 'user-agent': 'electron/31' })).toContain('"auth.allowNullOrigin"')
    expect(denial({ origin: 'null', 'user-agent': 'Electron' })).toContain('"auth.allowNullOrigin"')
  })

  it('passes for the file page of an Electron program', () => {
    expect(denial({ origin: 'null', 'user-agent': ELECTRON })).toBeUndefined()
    expect(denial({ origin: 'null', 'user-agent': ELECTRON, 'sec-fetch-site': 'cross-site' })).toBeUndefined()
  })

  it('passes when the configuration says so, and by no list of origins', () => {
    expect(
      denial({ origin: 'null', 'sec-fetch-site': 'cross-site' }, { allowNullOrigin: true }),
    ).toBeUndefined()
    expect(denial({ origin: 'null' }, { allowedOrigins: ['null'] })).toContain('"auth.allowNullOrigin"')
  })

  it('attack: a preflight that asks for "user-agent" is never answered as for a trusted origin', () => {
    expect(isTrustedOrigin('null', ['null'])).toBe(false)
  })
})

describe('Sec-Fetch-Site without an Origin', () => {
  it.each([
    ['cross-site', false],
    ['Cross-Site', false],
    ['none, cross-site', false],
    ['same-origin', true],
    ['same-site', true],
    ['none', true],
    ['', true],
  ])('%j passes: %s', (site, passes) => {
    expect(denial({ 'sec-fetch-site': site }) === undefined).toBe(passes)
  })
})

describe('the exemption', () => {
  it('can be switched off', () => {
    expect(denial({}, { loopbackExempt: false })).toBe('"auth.loopbackExempt" is false')
  })

  it('never weakens one rule by another', () => {
    const everything = {
      allowedOrigins: ['https://a.example'],
      allowedHosts: ['a.example'],
      allowNullOrigin: true,
    }
    expect(denial({ host: 'a.example', origin: 'https://a.example' }, everything)).toBeUndefined()
    expect(denial({ host: 'evil.example', origin: 'https://a.example' }, everything)).toContain('Host')
    expect(denial({ host: 'a.example', origin: 'https://evil.example' }, everything)).toContain('Origin')
    expect(denial({ host: 'a.example', origin: 'https://a.example', via: '' }, everything)).toContain('via')
  })
})

describe('the words of a refusal', () => {
  it.each<[string, IncomingHttpHeaders, string]>([
    [
      'a Host',
      { host: 'img.example.com:8443' },
      'its Host "img.example.com:8443" is not a name of this machine',
    ],
    [
      'an Origin',
      { origin: 'https://evil.example' },
      'its Origin "evil.example" with the scheme "https" is another site',
    ],
    ['a text instead of an Origin', { origin: 'evil' }, 'its Origin "evil" is another site'],
    [
      'an Origin that smuggles an address',
      { origin: 'a://b/http://evil.example/p.png' },
      'its Origin (unreadable)',
    ],
    ['a Host that smuggles an address', { host: 'http://evil.example/p.png' }, 'its Host (unreadable)'],
    ['a Host that smuggles quotes', { host: 'a"b' }, 'its Host (unreadable)'],
    ['a Host without end', { host: 'a'.repeat(5000) }, 'its Host (unreadable)'],
    [
      'a header name without end',
      { [`x-forwarded-${'a'.repeat(5000)}`]: '' },
      'it has the header "x-forwarded-aaa',
    ],
  ])('name %s, short and without any address', (_what, headers, words) => {
    const said = denial(headers) ?? ''
    expect(said).toContain(words)
    expect(said).not.toContain('://')
    expect(said.length).toBeLessThan(250)
  })
})
