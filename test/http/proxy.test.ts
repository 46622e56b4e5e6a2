import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createOutgoing } from '../../src/http/proxy/outgoing.ts'
import { openUrl } from '../../src/uploader/sources/url.ts'
import { answering, clientBy, evil } from '../helpers/client-by-proxy.ts'
import { eventually } from '../helpers/eventually.ts'
import { failureOf } from '../helpers/failure-of.ts'

const signal = new AbortController().signal

afterEach(() => {
  vi.useRealTimers()
})

/** The head of an answer. */
const http = (...lines: string[]) => `HTTP/1.1 ${lines.join('\r\n')}\r\n\r\n`
const socks = (code: string) => `\x05\x00\x05${code}\x00\x01\x00\x00\x00\x00\x00\x00`

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

  it.each([
    [
      http('407 No', 'Proxy-Authenticate: Basic realm="x"'),
      'requires a user name and a password (407 No)',
      false,
    ],
    [http('407 No', 'Proxy-Authenticate: NTLM'), 'does not support Basic authentication', false],
    [http('502 Bad \x1b[31mGateway'), 'could not connect to img.example:443 (502 Bad  [31mGateway)', true],
    [
      `${http('403 Forbidden', 'Content-Length: 3')}no!`,
      'refuses to connect to img.example:443 (403 For',
      false,
    ],
    [http('302 Found', 'Location: http://login/'), 'refuses to connect', false],
    ['', 'it closed the connection', true],
    ['SSH-2.0-OpenSSH_9.2\r\n', 'its response is not valid HTTP', true],
    [http('200 OK', `X: ${'x'.repeat(100_000)}`), 'its response headers are too long', true],
  ])('that answers %j to CONNECT is told by its words', async (answer, words, retryable) => {
    const { host, sockets } = await answering(answer)
    const error = await failureOf(clientBy(`http://${host}`).put('https://img.example'))
    expect(error.message).toContain(`the proxy "${host}"`)
    expect(error.message).toContain(words)
    expect(error.retryable).toBe(retryable)
    await eventually(() => expect(sockets.every(socket => socket.destroyed)).toBe(true))
  })

  it.each([
    [http('407 No'), 'the proxy "HOST" requires a user name'],
    [
      http('503 Busy', 'X-Squid-Error: ERR_CONNECT_FAIL 111'),
      'the proxy "HOST" could not connect to img.example (503 Busy)',
    ],
    [
      http('504 Late', 'Proxy-Status: p; error=x'),
      'the proxy "HOST" could not connect to img.example (504 Late)',
    ],
    [
      http('403 No', 'Server: tinyproxy/1.11.1'),
      'the proxy "HOST" refuses to connect to img.example (403 No)',
    ],
    [http('403 Forbidden', 'Via: 1.1 p'), 'img.example returned 403'],
  ])('whose own answer to plain HTTP is %j is told from the server', async (answer, words) => {
    const { host } = await answering(answer)
    const error = await failureOf(clientBy(`http://${host}`).put('http://img.example'))
    expect(error.message).toContain(words.replace('HOST', host))
  })

  it.each([
    ['\x05\xff', 'requires a user name and a password'],
    [socks('\x02'), 'refuses to connect to img.example:443 (NotAllowed)'],
    [socks('\x04'), 'could not connect to img.example:443 (HostUnreachable)'],
    [http('400 Bad Request'), 'is not a SOCKS5 proxy'],
    ['\x05', 'it closed the connection'],
  ])('that answers %j to SOCKS is told by its words', async (answer, words) => {
    const { host } = await evil(socket => socket.once('data', () => socket.end(answer, 'latin1')))
    const error = await failureOf(clientBy(`socks5h://${host}`).put('https://img.example'))
    expect(error.message).toContain(`the proxy "${host}" `)
    expect(error.message).toContain(words)
  })

  it.each(['http', 'https', 'socks5h'])(
    'by %s that never answers is given up after 10 seconds',
    async protocol => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
      const { host, sockets } = await evil(socket => socket.resume())
      const failure = failureOf(clientBy(`${protocol}://${host}`).put('https://img.example'))
      while (sockets.length === 0) await new Promise(resolve => setImmediate(resolve))
      await vi.advanceTimersByTimeAsync(10_000)
      expect((await failure).message).toContain(
        `the proxy "${host}" can't be used: it did not respond in time`,
      )
    },
  )

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

describe('a TLS handshake that hangs is given up after 10 seconds', () => {
  it.each<[string, (host: string) => Promise<Error>, string | undefined]>([
    ['of a server', host => failureOf(clientBy('none').put(`https://${host}`)), undefined],
    [
      'behind CONNECT',
      host => failureOf(clientBy(`http://${host}`).put('https://img.example')),
      http('200 OK'),
    ],
    [
      'behind SOCKS5',
      host => failureOf(clientBy(`socks5h://${host}`).put('https://img.example')),
      '\x05\x00|\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00',
    ],
    [
      'of a source',
      host =>
        failureOf(
          openUrl(new URL(`https://${host}`), { addresses: 'any', timeoutMs: 30_000, signal, maxBytes: 9 }),
        ),
      undefined,
    ],
  ])('%s', async (_, ask, greeting = '') => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    let isHello = false
    const { host } = await evil(socket => {
      const answers = greeting === '' ? [] : greeting.split('|')
      socket.on('data', () => {
        const answer = answers.shift()
        if (answer === undefined) isHello = true
        else socket.write(answer, 'latin1')
      })
    })
    const failure = ask(host)
    while (!isHello) await new Promise(resolve => setImmediate(resolve))
    await vi.advanceTimersByTimeAsync(10_000)
    expect((await failure).message).toMatch(/(?:127\.0\.0\.1|img\.example).* (?:did|does) not respond/)
  })
})

describe('a source', () => {
  const fetchBy = async (proxy: string, url: string, addresses: 'public' | 'private' | 'any') => {
    const outgoing = createOutgoing({ proxy, noProxy: [] }, {})
    const lookup = async () => ['93.184.215.14']
    const options = {
      addresses,
      timeoutMs: 20_000,
      signal,
      maxBytes: 1000,
      outgoing,
      lookup,
    }
    const { body } = await openUrl(new URL(url), options)
    return text(body as never)
  }

  it('is asked of the proxy by the address that was checked', async () => {
    const asked: string[] = []
    const { host } = await evil(socket =>
      socket.once('data', data => {
        asked.push(String(data).split('\r\n')[0] ?? '')
        socket.write('HTTP/1.1 200 OK\r\n\r\n')
        socket.once('data', request => {
          asked.push(/^Host: .*/im.exec(String(request))?.[0] ?? '')
          socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi')
        })
      }),
    )
    expect(await fetchBy(`http://${host}`, 'http://img.example/a.png', 'public')).toBe('hi')
    expect(asked).toEqual(['CONNECT 93.184.215.14:80 HTTP/1.1', 'Host: img.example'])
  })

  it('attack: an address behind the proxy is asked for, by number and by name', async () => {
    const { host, sockets } = await answering('HTTP/1.1 200 OK\r\n\r\n')
    for (const url of ['http://10.0.0.1/', 'http://[::ffff:10.0.0.1]/', 'https://169.254.169.254/'])
      expect(await failureOf(fetchBy(`http://${host}`, url, 'public'))).toMatchObject({
        code: 'source_forbidden',
      })
    expect(sockets).toHaveLength(0)
  })

  it('names a proxy that refuses', async () => {
    const { host } = await answering('HTTP/1.1 403 Forbidden\r\n\r\n')
    expect(await failureOf(fetchBy(`http://${host}`, 'https://img.example/', 'public'))).toMatchObject({
      code: 'source_failed',
      message: `"img.example" could not be fetched: the proxy "${host}" refuses to connect to 93.184.215.14:443 (403 Forbidden).`,
    })
  })
})
