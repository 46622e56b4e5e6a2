import type { Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import type { UploadError } from '../../src/errors.ts'
import { allowAddresses } from '../../src/http/addresses.ts'
import { resolve } from '../../src/http/dial.ts'
import { type GuardedFetchOptions, guardedFetch } from '../../src/http/guarded-fetch.ts'
import { answering, serve, serveRaw } from '../uploader/sources/servers.ts'

const never = new AbortController().signal

function get(url: string, options: Partial<GuardedFetchOptions> = {}) {
  return guardedFetch(new URL(url), { addresses: 'private', signal: never, ...options })
}

async function failure(url: string, options: Partial<GuardedFetchOptions> = {}): Promise<UploadError> {
  const error = await get(url, options).then(
    () => new Error('It was fetched.'),
    error => error,
  )
  expect(error).toMatchObject({ name: 'UploadError' })
  expect(error.message).not.toMatch(/https?:\/\//)
  return error
}

/** Expects that nothing is fetched for a URL, because no IP address of it is allowed. */
async function forbidden(url: string, options: Partial<GuardedFetchOptions> = {}): Promise<UploadError> {
  const error = await failure(url, options)
  expect(error.code).toBe('source_forbidden')
  return error
}

const redirecting = (location: string, status = 302) =>
  serve((_req, res) => res.writeHead(status, { location }).end('moved'))
const plain = (text = '') => serve((_req, res) => res.end(text))

describe('guardedFetch', () => {
  it('fetches from an allowed address and says who asks', async () => {
    const server = await plain('bytes')
    const response = await get(`${server.origin}/a.png`)
    expect(await response.text()).toBe('bytes')
    expect(server.requests[0]).toMatchObject({
      method: 'GET',
      headers: { accept: 'image/*,*/*;q=0.8', 'user-agent': 'upload-server', connection: 'close' },
    })
    expect(server.requests[0]?.headers).not.toHaveProperty('authorization')
  })

  it('asks for an encoded path as it is', async () => {
    const server = await plain()
    const paths = ['/a%20b%2Fc%26d.png?x=%2F%3D&y=%E4', '/%C3%A9.png', '/a+b;c=d@e.png?q=a+b']
    for (const path of paths) await get(server.origin + path)
    expect(server.requests.map(({ url }) => url)).toEqual(paths)
  })

  it('tries the next address of a host when one does not answer', async () => {
    const server = await plain('here')
    const lookup = answering(['::1', '127.0.0.1'])
    expect(await (await get(`http://two.example:${server.port}/`, { lookup })).text()).toBe('here')
    expect(lookup.asked).toEqual(['two.example'])
  })

  describe('addresses', () => {
    // test/http/addresses.test.ts has the ranges. These are the spellings that a URL may have.
    const HOSTILE = {
      public:
        'localhost LOCALHOST 0.0.0.0 0 127.0.0.1 127.0.0.1. 127.1 127.0.1 2130706433 0x7f.1 0x7f000001 017700000001 0177.0.0.01 ' +
        '%31%32%37.0.0.1 127。0。0。1 ①②⑦.⓪.⓪.① [::] [::1] [0:0:0:0:0:0:0:1] [::127.0.0.1] [::ffff:127.0.0.1] ' +
        '[::ffff:7f00:1] [64:ff9b::7f00:1] [2002:7f00:1::] 10.0.0.1 169.254.169.254 0xa9fea9fe [::ffff:169.254.169.254]',
      private: '0.0.0.0 [::] 169.254.169.254 2852039166 [fe80::1] [::ffff:a9fe:a9fe] 224.0.0.1',
    }

    for (const addresses of ['public', 'private'] as const) {
      it.each(HOSTILE[addresses].split(' '))(
        `refuses %s where only ${addresses} ones are allowed`,
        async host => {
          const server = await plain()
          for (const scheme of ['http', 'https'])
            await forbidden(`${scheme}://${host}:${server.port}/`, { addresses })
          expect(server.connections()).toBe(0)
        },
      )
    }

    it.each([
      ['loopback', ['127.0.0.1']],
      ['loopback inside IPv6', ['::ffff:127.0.0.1']],
      ['several forbidden addresses', ['10.0.0.1', '::1', '127.0.0.1']],
      ['no address', []],
      ['no address at all but a name', ['localhost']],
    ])('refuses a public-looking name that leads to %s', async (_, answer) => {
      const server = await plain()
      const options = { addresses: 'public', lookup: answering(answer) } as const
      const { message } = await forbidden(`http://cdn.example.com:${server.port}/a.png`, options)
      expect(message).toContain(`"cdn.example.com:${server.port}/a.png"`)
      expect(message).toContain('sources.url.allowPrivate')
      expect(server.connections()).toBe(0)
    })

    it('leaves only the allowed ones of the answers for a name', async () => {
      const lookup = answering(['10.0.0.1', '8.8.8.8', '::1', '2606:4700::1111'])
      const found = await resolve('mixed.example', allowAddresses('public'), lookup)
      expect(found).toEqual(['8.8.8.8', '2606:4700::1111'])
    })

    it('checks a name again on every hop, so rebinding it gains nothing', async () => {
      const server = await redirecting('/again')
      const lookup = answering(['127.0.0.1'], ['169.254.169.254'])
      await forbidden(`http://rebind.example:${server.port}/`, { lookup })
      expect(lookup.asked).toHaveLength(2) // one look-up for each connection: what is checked is what is dialled
      expect(server.connections()).toBe(1)
    })

    it.each(['0.0.0.0', '0', '[::]', 'inner.example'])(
      'refuses a redirect to a server that would answer at %s, which then sees no connection',
      async host => {
        const inner = await plain('secret')
        const outer = await redirecting(`http://${host}:${inner.port}/`)
        const lookup = answering(['127.0.0.1'], ['0.0.0.0'])
        await forbidden(`http://outer.example:${outer.port}/`, { lookup })
        expect(inner.connections()).toBe(0)
      },
    )

    it.each(['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]', 'other.example'])(
      'attack: a public host leads nobody to %s, which a private one may',
      async host => {
        const inner = await plain('secret')
        const outer = await redirecting(`http://${host}:${inner.port}/`)
        const lookup = async (name: string) =>
          name === 'outer.example' ? ['127.0.0.1', '93.184.215.14'] : ['127.0.0.1']
        const { message } = await forbidden(`http://outer.example:${outer.port}/`, { lookup })
        expect(message).toContain('Only public')
        expect(inner.connections()).toBe(0)
        expect(await (await get(`http://own.example:${outer.port}/`, { lookup })).text()).toBe('secret')
      },
    )

    it('attack: a host that was named leads to a private one that was not', async () => {
      const inner = await plain('secret')
      const outer = await redirecting(`${inner.origin}/`)
      await forbidden(outer.origin, { addresses: 'any', privateHosts: [`127.0.0.1:${outer.port}`] })
      expect([outer.connections(), inner.connections()]).toEqual([1, 0])
    })

    it('lets whoever may reach any address reach loopback, but no address that names no host', async () => {
      const server = await plain('here')
      expect(await (await get(server.origin, { addresses: 'any' })).text()).toBe('here')
      await forbidden(`http://0.0.0.0:${server.port}/`, { addresses: 'any' })
    })
  })

  describe('redirects', () => {
    it.each([301, 302, 303, 307, 308])('follows %i, to another server and back', async status => {
      const end = await plain('end')
      const middle = await redirecting(`${end.origin}/end?x=1`, status)
      const start = await redirecting(`${middle.origin}/m`, status)
      const response = await get(`${start.origin}/a`)
      expect(await response.text()).toBe('end')
      expect(response.url).toBe(`${end.origin}/end?x=1`)
    })

    it('resolves a relative address and one in raw UTF-8', async () => {
      const server = await serve((req, res) => {
        if (req.url === '/b/c%C3%A9.png') res.end('there')
        else {
          res.setHeader('location', Buffer.from('../b/cé.png').toString('latin1'))
          res.writeHead(302).end()
        }
      })
      expect(await (await get(`${server.origin}/a/x`)).text()).toBe('there')
    })

    const PRIVATE = 'its IP address is not allowed'
    const SCHEME = 'only http and https'
    it.each<[location: string | undefined, words: string, code?: string]>([
      ['http://169.254.169.254/latest/meta-data', PRIVATE],
      ['https://169.254.169.254/', PRIVATE],
      ['http://[::ffff:a9fe:a9fe]/', PRIVATE],
      ['http://0.0.0.0/', PRIVATE],
      ['http://0xa9fea9fe/', PRIVATE],
      ['//169.254.169.254/', PRIVATE],
      ['file:///etc/passwd', SCHEME],
      ['data:text/plain,hello', SCHEME],
      ['ftp://127.0.0.1/a', SCHEME],
      ['gopher://127.0.0.1:70/_x', SCHEME],
      ['javascript:alert(1)', SCHEME],
      [undefined, 'redirects to an invalid URL', 'source_failed'],
      ['http://[', 'redirects to an invalid URL', 'source_failed'],
    ])('refuses one to %s', async (location, words, code = 'source_forbidden') => {
      const server = await serve((_req, res) => res.writeHead(302, location ? { location } : {}).end())
      const error = await failure(`${server.origin}/start`)
      expect(error).toMatchObject({ code, message: expect.stringContaining(words) })
      expect(error.message).toContain(`"127.0.0.1:${server.port}/start" redirects`)
    })

    it('gives up on a loop', async () => {
      const server = await redirecting('/')
      const error = await failure(`${server.origin}/`)
      expect(error.code).toBe('source_failed')
      expect(error.message).toContain('more than 5 times')
      expect(server.requests).toHaveLength(6)
    })

    it('does not read the body of a redirect', async () => {
      const end = await plain('end')
      let closed: Promise<unknown> = Promise.resolve()
      const start = await serve((req, res) => {
        closed = new Promise(resolve => req.socket.once('close', resolve))
        res.writeHead(302, { location: `${end.origin}/` }).write('never ending')
      })
      expect(await (await get(`${start.origin}/`)).text()).toBe('end')
      await closed
    })
  })

  describe('credentials', () => {
    const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`
    const withUser = (origin: string, user: string) => origin.replace('//', `//${user}@`)

    const sentTo = ({ requests }: { requests: readonly { headers: { authorization?: string } }[] }) =>
      requests.map(({ headers }) => headers.authorization)

    it('of every form become a header', async () => {
      const server = await plain()
      const users = ['anna:geheim', 'anna', ':geheim', 'a%40b%3A:p%2F%C3%A9%25', '100%:x']
      for (const user of users) await get(`${withUser(server.origin, user)}/`)
      const sent = ['anna:geheim', 'anna:', ':geheim', 'a@b::p/é%', '100%:x']
      expect(sentTo(server)).toEqual(sent.map(basic))
    })

    /** A server that redirects `/a`. */
    const leading = (to: () => string) =>
      serve((req, res) => (req.url === '/a' ? res.writeHead(302, { location: to() }).end() : res.end()))

    it('are sent again to the same origin after a redirect', async () => {
      const server = await leading(() => '/b')
      await get(`${withUser(server.origin, 'u:p')}/a`)
      expect(sentTo(server)).toEqual([basic('u:p'), basic('u:p')])
    })

    it('never reach another origin, nor their own one by way of that', async () => {
      const own = await leading(() => `${other.origin}/a`)
      const other = await leading(() => `${own.origin}/back`)
      await get(`${withUser(own.origin, 'u:p')}/a`)
      expect([sentTo(other), sentTo(own)]).toEqual([[undefined], [basic('u:p'), undefined]])
    })

    it('never reach the same host under another name', async () => {
      const server = await leading(() => `http://evil.example:${server.port}/b`)
      const lookup = answering(['127.0.0.1'])
      await get(`http://u:p@good.example:${server.port}/a`, { lookup })
      expect(sentTo(server)).toEqual([basic('u:p'), undefined])
    })

    it('named by a redirect go where that redirect leads', async () => {
      const other = await plain()
      const own = await redirecting(`${withUser(other.origin, 'x:y')}/`)
      await get(`${withUser(own.origin, 'u:p')}/`)
      expect(other.requests[0]?.headers.authorization).toBe(basic('x:y'))
    })

    it('stand in no message', async () => {
      const error = await failure('http://anna:geheim@127.0.0.1:1/a?token=geheim')
      expect(error.message).toContain('"127.0.0.1:1/a"')
      expect(error.message).not.toMatch(/anna|geheim/)
    })
  })

  describe('abort', () => {
    const reason = new Error('The client went away.')

    it('during the request gives the reason and closes the connection', async () => {
      const controller = new AbortController()
      let closed: Promise<unknown> = Promise.resolve()
      const server = await serve(req => {
        closed = new Promise(resolve => req.socket.once('close', resolve))
        controller.abort(reason)
      })
      await expect(get(server.origin, { signal: controller.signal })).rejects.toBe(reason)
      await closed
    })

    it.each(['before', 'during the look-up', 'between two hops'])('%s gives the reason', async when => {
      const controller = new AbortController()
      const server = await redirecting('http://next.example/')
      const lookup = () => new Promise<never>(() => setImmediate(() => controller.abort(reason)))
      if (when === 'before') controller.abort(reason)
      const url = when === 'during the look-up' ? 'http://slow.example/' : server.origin
      await expect(get(url, { signal: controller.signal, lookup })).rejects.toBe(reason)
      expect(server.connections()).toBe(when === 'between two hops' ? 1 : 0)
    })
  })

  it.each<[string, (socket: Socket) => void, string]>([
    ['a server that closes at once', socket => socket.destroy(), 'it closed the connection. Try again.'],
    ['a server that speaks no HTTP', socket => void socket.end('220 mail\r\n'), 'not valid HTTP'],
  ])('explains %s', async (_, handler, words) => {
    const server = await serveRaw(handler)
    const error = await failure(`${server.origin}/a.png`)
    expect(error).toMatchObject({ code: 'source_failed', message: expect.stringContaining(words) })
    expect(error.message).toContain(`"127.0.0.1:${server.port}/a.png"`)
  })
})
