import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createOutgoing } from '../../src/http/proxy/outgoing.ts'
import { type OpenUrlOptions, openUrl } from '../../src/uploader/sources/url.ts'
import { answering, clientBy, evil } from '../helpers/client-by-proxy.ts'
import { eventually } from '../helpers/eventually.ts'
import { failureOf } from '../helpers/failure-of.ts'
import { serve } from '../uploader/sources/servers.ts'

const signal = new AbortController().signal

afterEach(() => {
  vi.useRealTimers()
})

/** The head of an answer. */
const http = (...lines: string[]) => `HTTP/1.1 ${lines.join('\r\n')}\r\n\r\n`
const socks = (code: string) => `\x05\x00\x05${code}\x00\x01\x00\x00\x00\x00\x00\x00`

const NO_LOGIN = 'requires a user name and a password'
const REFUSES = 'refuses to connect to img.example'
const COULD_NOT = 'could not connect to img.example'

describe('a proxy', () => {
  it.each([
    ['http://127.0.0.1:1', `the proxy "127.0.0.1:1" can't be used: it refuses connections`, true],
    ['socks5h://127.0.0.1:1', `the proxy "127.0.0.1:1" can't be used: it refuses connections`, true],
    ['http://proxy.invalid:3128', `the proxy "proxy.invalid:3128" can't be used: its hostname`, undefined],
  ])('%s that is not there is named', async (proxy, words, retryable) => {
    for (const url of ['http://img.example', 'https://img.example']) {
      const error = await failureOf(clientBy(proxy).put(url))
      expect(error.message).toContain(words)
      if (retryable !== undefined) expect(error.retryable).toBe(retryable)
    }
  })

  it.each<[to: string, answer: string, words: string, retryable: boolean]>([
    ['CONNECT', http('407 No', 'Proxy-Authenticate: Basic realm="x"'), `${NO_LOGIN} (407 No)`, false],
    ['CONNECT', http('407 No', 'Proxy-Authenticate: NTLM'), 'does not support Basic authentication', false],
    ['CONNECT', http('502 Bad \x1b[31mGateway'), `${COULD_NOT}:443 (502 Bad  [31mGateway)`, true],
    ['CONNECT', `${http('403 No', 'Content-Length: 3')}no!`, `${REFUSES}:443 (403 No)`, false],
    ['CONNECT', http('302 Found', 'Location: http://login/'), REFUSES, false],
    ['CONNECT', '', "can't be used: it closed the connection", true],
    ['CONNECT', 'SSH-2.0-OpenSSH_9.2\r\n', "can't be used: its response is not valid HTTP", true],
    ['CONNECT', http('200 OK', `X: ${'x'.repeat(100_000)}`), 'its response headers are too long', true],
    ['HTTP', http('407 No'), NO_LOGIN, false],
    ['HTTP', http('503 Busy', 'X-Squid-Error: ERR_CONNECT_FAIL 111'), `${COULD_NOT} (503 Busy)`, true],
    ['HTTP', http('504 Late', 'Proxy-Status: p; error=x'), `${COULD_NOT} (504 Late)`, true],
    ['HTTP', http('403 No', 'Server: tinyproxy/1.11.1'), `${REFUSES} (403 No)`, false],
    ['SOCKS', '\x05\xff', NO_LOGIN, false],
    ['SOCKS', socks('\x02'), `${REFUSES}:443 (NotAllowed)`, false],
    ['SOCKS', socks('\x04'), `${COULD_NOT}:443 (HostUnreachable)`, true],
    ['SOCKS', http('400 Bad Request'), 'is not a SOCKS5 proxy', false],
    ['SOCKS', '\x05', 'it closed the connection', true],
  ])('that answers to %s with %j is told by its words', async (to, answer, words, retryable) => {
    const { host, sockets } = await answering(answer)
    const client = clientBy(`${to === 'SOCKS' ? 'socks5h' : 'http'}://${host}`)
    const error = await failureOf(client.put(`${to === 'HTTP' ? 'http' : 'https'}://img.example`))
    expect(error.message).toContain(`the proxy "${host}" `)
    expect(error.message).toContain(words)
    expect(error.retryable).toBe(retryable)
    await eventually(() => expect(sockets.every(socket => socket.destroyed)).toBe(true))
  })

  it('is told from the server that rejects what it forwards', async () => {
    const { host } = await answering(http('403 Forbidden', 'Via: 1.1 p'))
    const error = await failureOf(clientBy(`http://${host}`).put('http://img.example'))
    expect(error.message).toMatch(/^img\.example returned 403/)
  })

  it('is left with the destination', async () => {
    const { host, sockets } = await evil(socket => socket.resume())
    const client = clientBy(`http://${host}`)
    const failure = failureOf(client.put('https://img.example'))
    await eventually(() => expect(sockets).toHaveLength(1))
    client.close()
    await failure
    await eventually(() => expect(sockets[0]?.destroyed).toBe(true))
  })
})

it.each<[what: string, proxy: string | undefined, answers: string[], words: string]>([
  ...['http', 'https', 'socks5h'].map((by): [string, string, string[], string] => [
    `a proxy by ${by}`,
    by,
    [],
    `the proxy "HOST" can't be used: it did not`,
  ]),
  ['the TLS handshake of a server', 'none', [], "HOST can't be reached: it did not"],
  ['one behind CONNECT', 'http', [http('200 OK')], "img.example can't be reached: it did not"],
  ['one behind SOCKS5', 'socks5h', ['\x05\x00', socks('\x00').slice(2)], "img.example can't be reached: it"],
  ['that of a source', undefined, [], '"HOST" could not be fetched: it did not'],
])('%s that hangs is given up after 10 seconds', async (_, proxy, answers, words) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  let last: Buffer | undefined
  const { host } = await evil(socket =>
    socket.on('data', data => {
      const answer = answers.shift()
      if (answer === undefined) last = data
      else socket.write(answer, 'latin1')
    }),
  )
  const limits = { addresses: 'any', timeoutMs: 30_000, signal, maxBytes: 9 } as const
  const asked =
    proxy === undefined
      ? openUrl(new URL(`https://${host}`), limits)
      : clientBy(proxy === 'none' ? proxy : `${proxy}://${host}`).put(
          `https://${proxy === 'none' ? host : 'img.example'}`,
        )
  const failure = failureOf(asked)
  while (last === undefined) await new Promise(resolve => setImmediate(resolve))
  await vi.advanceTimersByTimeAsync(10_000)
  expect((await failure).message).toContain(words.replace('HOST', host))
  // TLS names the server.
  if (words.startsWith('img.example')) expect(String(last)).toContain('img.example')
})

describe('a source', () => {
  async function fetchBy(proxy: string, url: string, more: Partial<OpenUrlOptions> = {}) {
    const outgoing = createOutgoing({ proxy: `http://${proxy}`, noProxy: [] }, {})
    const options = { addresses: 'public', timeoutMs: 20_000, signal, maxBytes: 1000 } as const
    const lookup = async () => ['93.184.215.14']
    const { body } = await openUrl(new URL(url), { ...options, outgoing, lookup, ...more })
    return text(body as never)
  }

  it('is asked of the proxy by the address that was checked', async () => {
    const asked: string[] = []
    const answers = [http('200 OK'), `${http('200 OK', 'Content-Length: 2')}hi`]
    const { host } = await evil(socket =>
      socket.on('data', data => {
        asked.push(...String(data).split('\r\n'))
        socket.write(answers.shift() ?? '')
      }),
    )
    expect(await fetchBy(host, 'http://img.example/a.png')).toBe('hi')
    expect(asked[0]).toBe('CONNECT 93.184.215.14:80 HTTP/1.1')
    expect(asked).toContain('Host: img.example')
  })

  it('attack: an address behind the proxy is asked for, by number and by name', async () => {
    const { host, sockets } = await answering(http('200 OK'))
    for (const url of ['http://10.0.0.1/', 'http://[::ffff:10.0.0.1]/', 'https://169.254.169.254/'])
      expect(await failureOf(fetchBy(host, url))).toMatchObject({ code: 'source_forbidden' })
    expect(sockets).toHaveLength(0)
  })

  it('attack: a name of this machine makes the proxy connect to itself', async () => {
    const { host, sockets } = await answering(http('200 OK'))
    const { port } = await serve((_, res) => res.end('here'))
    const more = { addresses: 'private', lookup: async () => ['127.0.0.1'] } as const
    expect(await fetchBy(host, `http://own.example:${port}/`, more)).toBe('here')
    expect(sockets).toHaveLength(0)
  })

  it('names a proxy that refuses', async () => {
    const { host } = await answering(http('403 Forbidden'))
    expect(await failureOf(fetchBy(host, 'https://img.example/'))).toMatchObject({
      code: 'source_failed',
      message: `"img.example" could not be fetched: the proxy "${host}" refuses to connect to 93.184.215.14:443 (403 Forbidden).`,
    })
  })
})
