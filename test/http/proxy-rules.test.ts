import { describe, expect, it } from 'vitest'
import { configSchema } from '../../src/config/schema.ts'
import { completeProxy, hideLogin, parseProxy, secretsOfProxy } from '../../src/http/proxy/address.ts'
import { isLoopback, parseNoProxy } from '../../src/http/proxy/no-proxy.ts'
import { createOutgoing, targetOf } from '../../src/http/proxy/outgoing.ts'

describe('the address of a proxy', () => {
  it.each([
    ['http://proxy.example.com:3128', { protocol: 'http:', host: 'proxy.example.com', port: 3128 }],
    ['http://proxy.example.com', { port: 80, label: 'proxy.example.com:80' }],
    ['https://proxy.example.com/', { protocol: 'https:', port: 443 }],
    ['socks5://10.0.0.1', { protocol: 'socks5:', host: '10.0.0.1', port: 1080 }],
    ['socks5h://[fd00::1]:9050', { host: 'fd00::1', port: 9050, label: '[fd00::1]:9050' }],
    ['http://me:p%40ss%3A@proxy:8080', { login: { username: 'me', password: 'p@ss:' }, label: 'proxy:8080' }],
    ['http://me@proxy:8080', { login: { username: 'me', password: '' } }],
  ])('%s is read', (address, expected) => {
    expect(parseProxy(address)).toMatchObject(expected)
  })

  it.each([
    ...['', 'proxy:3128', 'socks4://proxy:1080', 'ftp://proxy', 'http://', 'http://proxy:99999'],
    ...['http://proxy/path', 'http://proxy?x', 'environment'],
  ])('%j is refused', address => {
    expect(parseProxy(address)).toBeUndefined()
  })

  it.each([
    ['proxy:3128', 'http://proxy:3128'],
    [' me:secret@proxy ', 'http://me:secret@proxy'],
    ['socks://127.0.0.1:1080/', 'socks5h://127.0.0.1:1080/'],
    ['HTTPS://proxy', 'HTTPS://proxy'],
  ])('as people write it, %j, is %s', (written, complete) => {
    expect(completeProxy(written)).toBe(complete)
  })

  it('shows no password', () => {
    expect(hideLogin('http://me:p%40ss@proxy:8080')).toBe('http://me:[secret]@proxy:8080/')
    expect(hideLogin('socks5://me:p%40ss@proxy:8080')).not.toContain('ss@')
    expect(hideLogin('environment')).toBe('environment')
    expect(secretsOfProxy('http://me:p%40ss@proxy:8080')).toEqual(['p%40ss', 'p@ss'])
  })
})

/** An entry, what bypasses the proxy by it, and what does not. */
const NO_PROXY = `
example.com | example.com img.example.com EXAMPLE.com. a.b.example.com | notexample.com example.com.evil.net
.example.com | img.example.com example.com | notexample.com
*.example.com | img.example.com | notexample.com
*example.com | img.example.com example.com | notexample.com example.com.evil.net
Example.COM. | example.com | example.org
münchen.example | xn--mnchen-3ya.example img.münchen.example | munchen.example
xn--mnchen-3ya.example | münchen.example | munchen.example
* | example.com 10.0.0.1 [::1] |
10.0.0.1 | 10.0.0.1 [::ffff:10.0.0.1] | 10.0.0.10 ten.example.com
10.0.0.0/8 | 10.0.0.1 10.255.0.1 | 11.0.0.1 10.example.com [fd00::1]
fd00::/8 | [fd00::1] | [fe80::1] 10.0.0.1
[fd00::1] | [fd00::1] [fd00:0::1] | [fd00::2]
fd00::1 | [fd00::1] | [fd00::2]
example.com:8443 | example.com:8443 a.example.com:8443 | example.com example.com:84
10.0.0.0/8:8443 | 10.0.0.1:8443 | 10.0.0.1
[fd00::1]:8443 | [fd00::1]:8443 | [fd00::1]
a.example, b.example;c.example\td.example | a.example b.example c.example d.example | e.example
, , | | example.com
10.0.0.0/99 300.1.1.1/8 10.* [] :80 http://example.com ex*.com 1*.0.0.1 | | example.com 10.0.0.1
`
const split = (text = '', by: string) => text.split(by).map(part => part.trim())

describe('NO_PROXY', () => {
  it.each(split(NO_PROXY.trim(), '\n').map(line => split(line, '|')))('%j', (text = '', past, through) => {
    const isPast = parseNoProxy([text])
    const ask = (hosts?: string) =>
      split(hosts, ' ').filter(host => host !== '' && isPast(targetOf(new URL(`https://${host}`))))
    expect(ask(past)).toEqual(split(past, ' ').filter(Boolean))
    expect(ask(through)).toEqual([])
  })

  it.each(['http://example.com', 'https://example.com/', 'ex*ple.com', '10.0.0.0/99', ' ', 'a b*c'])(
    'a configuration is not taken with %j, by which nothing goes past',
    entry => {
      const { success, error } = configSchema.shape.network.safeParse({ noProxy: [entry] })
      expect(success).toBe(false)
      expect(error?.issues[0]?.message).toContain('without http://')
    },
  )

  it('attack: a long entry takes linear time', () => {
    const long = [':'.repeat(400_000), '['.repeat(400_000), 'a.'.repeat(400_000), '1:'.repeat(400_000)]
    parseNoProxy(long)({ host: 'example.com', port: 443 })
  })
})

const SELF =
  'https://localhost https://a.localhost https://127.0.0.1 http://127.9.9.9 https://[::1] https://[::ffff:127.0.0.1]'

describe('the proxy of a connection', () => {
  const env = {
    HTTPS_PROXY: 'http://upper:1',
    https_proxy: 'http://lower:1',
    HTTP_PROXY: 'plain:2',
    all_proxy: 'socks5://all:3',
    NO_PROXY: 'internal.example',
  }
  const OWN = 'http://own:9'
  it.each<[settings: object, own: string | undefined, urls: string, label: string | undefined]>([
    // From the environment, the lower case first.
    [{}, undefined, 'https://example.com', 'lower:1'],
    [{}, undefined, 'http://example.com', 'plain:2'],
    [{}, undefined, 'tcp://example.com', 'all:3'],
    [{}, undefined, 'https://internal.example', undefined],
    [{ noProxy: ['example.org'] }, undefined, 'https://example.org', undefined],
    // That of network.proxy, for every protocol, but for network.noProxy.
    [{ proxy: OWN }, undefined, 'https://internal.example http://internal.example tcp://a.example', 'own:9'],
    [{ proxy: OWN, noProxy: ['example.org'] }, undefined, 'https://img.example.org', undefined],
    [{ proxy: 'none' }, undefined, 'https://example.com', undefined],
    // None for this machine, unless a destination says so itself.
    [{}, undefined, SELF, undefined],
    [{ proxy: OWN }, undefined, SELF, undefined],
    [{}, 'environment', SELF, undefined],
    [{}, OWN, SELF, 'own:9'],
    // That of the destination, whatever the rest says.
    [{ noProxy: ['*'] }, 'socks5h://own:9', 'https://internal.example', 'own:9'],
    [{ proxy: OWN }, 'none', 'https://example.com', undefined],
    [{ proxy: OWN }, 'environment', 'https://example.com', 'lower:1'],
  ])('by %j and its own, %s, for %s is %s', (settings, own, urls, label) => {
    const outgoing = createOutgoing({ proxy: 'environment', noProxy: [], ...settings }, env).with(own)
    for (const url of urls.split(' ')) {
      const target = targetOf(new URL(url.replace('tcp:', 'https:')))
      const protocol = url.startsWith('tcp:') ? 'tcp:' : target.protocol
      expect(outgoing.proxyFor({ ...target, protocol })?.label).toBe(label)
    }
  })

  it('that can not be used keeps everything from going past it', () => {
    const settings = { proxy: 'environment', noProxy: [] }
    const { proxyFor } = createOutgoing(settings, { ALL_PROXY: 'socks4://user:pw@proxy' })
    const ask = (url: string) => proxyFor(targetOf(new URL(url)))
    expect(() => ask('https://example.com')).toThrow(/ALL_PROXY is not a valid proxy URL/)
    expect(() => createOutgoing({ ...settings, proxy: 'socks4://proxy' }, {})).toThrow('valid proxy URL')
    expect(ask('https://localhost')).toBeUndefined()
  })

  const self = 'localhost,127.0.0.0/8,::1'
  const all = (address: string | undefined, no_proxy: string | undefined) => ({
    ...{ http_proxy: address, https_proxy: address, all_proxy: address, no_proxy },
  })
  it.each([
    [{ proxy: 'environment' }, undefined, {}],
    [
      { proxy: 'environment', noProxy: ['a.example'] },
      undefined,
      { no_proxy: `${self},internal.example,a.example` },
    ],
    [{ proxy: 'none', noProxy: ['a.example'] }, undefined, all(undefined, undefined)],
    [{ proxy: 'http://own:9', noProxy: ['a.example'] }, undefined, all('http://own:9', `${self},a.example`)],
    [{ proxy: 'none' }, 'socks5h://own:9', all('socks5h://own:9', self)],
    [{ proxy: 'http://own:9' }, 'environment', {}],
  ])('%j and %j are told to programs', (settings, own, expected) => {
    const { variables } = createOutgoing({ noProxy: [], ...settings }, env).with(own)
    const lower = Object.entries(variables).filter(([name]) => name === name.toLowerCase())
    expect(Object.fromEntries(lower)).toStrictEqual(expected)
    for (const [name, value] of lower) expect(variables[name.toUpperCase()]).toBe(value)
  })

  it('knows this machine', () => {
    expect(isLoopback('LOCALHOST.')).toBe(true)
    expect(isLoopback('localhost.example.com')).toBe(false)
  })
})
