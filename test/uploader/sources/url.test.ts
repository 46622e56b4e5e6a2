import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { UploadError } from '../../../src/errors.ts'
import { createCanceller } from '../../../src/flow/cancellation.ts'
import type { Payload } from '../../../src/payload/index.ts'
import { type OpenUrlOptions, openUrl } from '../../../src/uploader/sources/url.ts'
import { serve, serveRaw } from './servers.ts'

const never = createCanceller().signal
const MiB = 1024 * 1024
const BYTES = Buffer.from(Array.from({ length: 70_000 }, (_, i) => (i * i) & 0xff))

function open(url: string, options: Partial<OpenUrlOptions> = {}) {
  const defaults = { addresses: 'private', timeoutMs: 20_000, signal: never, maxBytes: MiB } as const
  return openUrl(new URL(url), { ...defaults, ...options })
}

async function read(url: string, options: Partial<OpenUrlOptions> = {}): Promise<Buffer> {
  return buffer((await open(url, options)).body)
}

/** What opening or reading a URL fails with. */
async function failure(url: string, options: Partial<OpenUrlOptions> = {}): Promise<UploadError> {
  const error = await read(url, options).then(
    () => new Error('It was read.'),
    (caught: unknown) => caught,
  )
  if (!(error instanceof UploadError)) throw error
  expect(error.message).not.toMatch(/https?:\/\//)
  expect(error.message).toMatch(/^".*\.$/)
  return error
}

const answer = (respond: (res: ServerResponse) => void) => serve((_req, res) => respond(res))

/** The same. `closed` settles when the connection of a response is closed. */
async function answerUntilClosed(respond: (res: ServerResponse) => void) {
  let close = () => {}
  const closed = new Promise<void>(resolve => (close = resolve))
  const server = await answer(res => {
    res.once('close', close)
    respond(res)
  })
  return { server, closed }
}

describe('openUrl', () => {
  it('gives the bytes and the name', async () => {
    const server = await answer(res => res.end(BYTES))
    const source = await open(`${server.origin}/pictures/cat%20one.png?size=1#top`)
    expect(source).toMatchObject({ name: 'cat one.png', folders: [] })
    expect((await buffer(source.body)).equals(BYTES)).toBe(true)
  })

  it.each([
    ['/', ''],
    ['', ''],
    ['///', ''],
    ['/a/b/', 'b'],
    ['/a.png?name=b.png', 'a.png'],
    ['/%E4%B8%96%E7%95%8C.png', '世界.png'],
    ['/世界.png', '世界.png'],
    ['/100%.png', '100%.png'],
    ['/%zz%20.png', '%zz .png'],
    ['/%C4%E3%BA%C3.gif', '%C4%E3%BA%C3.gif'],
    ['/a/..%2F..%2Fetc%2Fpasswd', '../../etc/passwd'],
    ['/a%00b', 'a\0b'],
    ['/b/%2e%2e/c', 'c'],
  ])('names %s "%s"', async (path, name) => {
    const server = await answer(res => res.end())
    expect((await open(`${server.origin}${path}`)).name).toBe(name)
  })

  it('keeps the name that was asked for when it is redirected', async () => {
    const server = await serve((req, res) =>
      req.url === '/photo.jpg' ? res.writeHead(302, { location: '/x/0f3a9c' }).end() : res.end(BYTES),
    )
    expect((await open(`${server.origin}/photo.jpg`)).name).toBe('photo.jpg')
  })

  it.each([
    ['an empty body', 200, {}, '', 'returned an empty file'],
    ['no content', 204, {}, '', 'returned status 204: that is not a file'],
    ['what is not ready yet', 202, {}, 'wait', 'returned status 202: that is not a file'],
    [
      'a part that nobody asked for',
      206,
      { 'content-range': 'bytes 0-2/9' },
      'abc',
      'only a part of the file',
    ],
    ['zstd', 200, { 'content-encoding': 'zstd' }, '(\xb5/\xfd', 'Content-Encoding "zstd", which can'],
    ['gzip twice', 200, { 'content-encoding': 'gzip, gzip' }, 'x', 'Content-Encoding "gzip, gzip"'],
  ])('%s was stored as the file', async (_, status, headers, body, words) => {
    const server = await answer(res => res.writeHead(status, headers).end(body, 'latin1'))
    const error = await failure(`${server.origin}/a.png`)
    expect(error.code).toBe('source_failed')
    expect(error.message).toContain(words)
  })

  it.each([
    ['x.png', 'text/html', false],
    ['x.pdf', 'text/html', false],
    ['x.tar', 'text/html', false],
    ['x.EXE', 'text/html', false],
    ['x.css', 'text/html', false],
    ['x.JSON', 'text/html', false],
    ['x.csv', 'text/html', false],
    ['x.html', 'text/html', true],
    ['x', 'text/html', true],
    ['x.php', 'text/html', true],
    ['x.png', 'text/plain', true],
  ])('a login page was stored as the picture: %s of type %s', async (name, contentType, isTaken) => {
    const server = await answer(res => res.end('x'))
    const { check } = await open(`${server.origin}/${name}`)
    const look = () => check?.({ contentType } as Payload)
    if (isTaken) look()
    else expect(look).toThrow(`/${name}" returned a web page instead of a file.`)
  })

  it.each([
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['deflate', deflateSync],
    ['deflate', deflateRawSync],
    ['br', brotliCompressSync],
  ])('decompresses %s', async (encoding, compress) => {
    const server = await answer(res => res.setHeader('content-encoding', encoding).end(compress(BYTES)))
    expect((await read(server.origin)).equals(BYTES)).toBe(true)
  })

  describe('limits', () => {
    it('refuses an announced length at once and closes the connection', async () => {
      const { server, closed } = await answerUntilClosed(res => {
        res.setHeader('content-length', 101)
        res.write('begin')
      })
      const error = await failure(`${server.origin}/a.png`, { maxBytes: 100 })
      expect(error.code).toBe('too_large')
      expect(error.message).toContain('100 bytes (limits.fileSize, or fileSize of the client)')
      await closed
    })

    it('takes exactly as much as allowed', async () => {
      const server = await answer(res => res.end(BYTES))
      expect(await read(server.origin, { maxBytes: BYTES.length })).toHaveLength(BYTES.length)
      expect((await failure(server.origin, { maxBytes: BYTES.length - 1 })).code).toBe('too_large')
    })

    it('stops an endless body at the limit and closes its connection', async () => {
      const { server, closed } = await answerUntilClosed(res => {
        const fill = () => {
          while (!res.destroyed && res.write(BYTES));
        }
        res.on('drain', fill)
        fill()
      })
      expect((await failure(server.origin)).code).toBe('too_large')
      await closed
    })

    it('stops a gzip bomb at the limit, without unpacking it', async () => {
      const bomb = gzipSync(Buffer.alloc(256 * MiB))
      const server = await answer(res => res.setHeader('content-encoding', 'gzip').end(bomb))
      const source = await open(server.origin)
      let size = 0
      const reading = (async () => {
        for await (const chunk of source.body) size += chunk.length
      })()
      await expect(reading).rejects.toMatchObject({ code: 'too_large' })
      expect(size).toBeLessThanOrEqual(MiB)
    })

    it.each([
      ['answers nothing', () => {}],
      ['stops within the headers', (socket: Socket) => socket.write('HTTP/1.1 200 OK\r\nContent-')],
      [
        'stops within the body',
        (socket: Socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc'),
      ],
      [
        'stops within a compressed body',
        (socket: Socket) => {
          socket.write('HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\n\r\n')
          socket.write(deflateSync(BYTES).subarray(0, 100))
        },
      ],
      [
        'sends interim answers only',
        (socket: Socket) => {
          const timer = setInterval(() => socket.write('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'), 5)
          socket.on('close', () => clearInterval(timer))
        },
      ],
      [
        'sends a byte now and then',
        (socket: Socket) => {
          socket.write('HTTP/1.1 200 OK\r\n\r\n')
          const timer = setInterval(() => socket.write('.'), 5)
          socket.on('close', () => clearInterval(timer))
        },
      ],
    ])('ends a server that %s', async (_, handler) => {
      const server = await serveRaw(handler)
      const error = await failure(`${server.origin}/slow.png`, { timeoutMs: 100 })
      expect(error.code).toBe('source_failed')
      expect(error.message).toContain('within 100 ms')
    })

    it('counts the time of all redirects together', async () => {
      const server = await serve((_req, res) => {
        setTimeout(() => res.writeHead(302, { location: '/' }).end(), 40)
      })
      expect((await failure(server.origin, { timeoutMs: 100 })).message).toContain('within 100 ms')
    })

    it.each([
      ['headers', 'HTTP/1.1 200 OK\r\n', 'X-Filler: 0123456789\r\n'],
      ['a header', 'HTTP/1.1 200 OK\r\nX: ', '0123456789012345678901'],
    ])('ends a server that sends %s without end', async (_, start, more) => {
      const server = await serveRaw(socket => {
        socket.write(start)
        const fill = () => {
          while (!socket.destroyed && socket.write(more.repeat(100)));
        }
        socket.on('drain', fill)
        fill()
      })
      const error = await failure(server.origin)
      expect(error.code).toBe('source_failed')
      expect(error.message).toContain('response headers are too long')
    })
  })

  describe('failures', () => {
    it.each([
      [401, 'credentials'],
      [403, 'access denied'],
      [404, 'Check the URL'],
      [410, 'Check the URL'],
      [429, 'Try again later'],
      [500, 'Try again later'],
      [503, 'Try again later'],
      [304, 'not a file'],
      [418, 'not a file'],
    ])('explains the status %i', async (status, words) => {
      const server = await answer(res => res.writeHead(status).end(status === 304 ? undefined : BYTES))
      const error = await failure(`${server.origin}/a.png`)
      expect(error.code).toBe('source_failed')
      expect(error.message).toContain(`"127.0.0.1:${server.port}/a.png" returned status ${status}`)
      expect(error.message).toContain(words)
    })

    it('does not read the body of an error', async () => {
      const { server, closed } = await answerUntilClosed(res => {
        res.writeHead(500).write(BYTES)
      })
      expect((await failure(server.origin)).code).toBe('source_failed')
      await closed
    })

    it('names both URLs when the one redirected to fails', async () => {
      const server = await serve((req, res) =>
        req.url === '/a' ? res.writeHead(302, { location: '/b' }).end() : res.writeHead(404).end(),
      )
      const [a, b] = ['a', 'b'].map(path => `"127.0.0.1:${server.port}/${path}"`)
      expect((await failure(`${server.origin}/a`)).message).toContain(
        `${b}, to which ${a} redirects, returned status 404`,
      )
    })

    it('names a URL once when its credentials are all that was taken from it', async () => {
      const server = await answer(res => res.writeHead(404).end())
      const { message } = await failure(`${server.origin.replace('//', '//u:geheim@')}/a?token=geheim`)
      expect(message).toBe(`"127.0.0.1:${server.port}/a" returned status 404: not found. Check the URL.`)
    })

    it('shortens a long path and leaves no address in it', async () => {
      const server = await answer(res => res.writeHead(404).end())
      const { message } = await failure(
        `${server.origin}/web/https://example.com/${'x'.repeat(5000)}/end.png`,
      )
      expect(message).toContain('/web/https:/example.com/xxx')
      expect(message).toContain('xxx/end.png"')
      expect(message.length).toBeLessThan(250)
    })

    it('refuses an address with the code for it', async () => {
      const server = await answer(res => res.end())
      expect((await failure(server.origin, { addresses: 'public' })).code).toBe('source_forbidden')
      expect(server.connections()).toBe(0)
    })

    it.each([
      ['a body of known length', 'Content-Length: 1000\r\n\r\nabc'],
      ['chunks', 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n'],
      ['chunks, within one', 'Transfer-Encoding: chunked\r\n\r\n9\r\nabc'],
    ])('reports a connection that ends within %s', async (_, text) => {
      for (const end of ['end', 'destroy', 'resetAndDestroy'] as const) {
        const server = await serveRaw(socket => {
          socket.once('data', () => socket.write(`HTTP/1.1 200 OK\r\n${text}`, () => socket[end]()))
        })
        const error = await failure(`${server.origin}/a.png`)
        expect(error.code).toBe('source_failed')
        expect(error.message).toMatch(/it closed the connection.* Try again\.$/)
      }
    })
  })

  describe('leaving early', () => {
    const reason = new Error('The client went away.')

    it('by an abort before the answer gives the reason', async () => {
      const controller = new AbortController()
      const server = await answer(() => controller.abort(reason))
      await expect(open(server.origin, { signal: controller.signal })).rejects.toBe(reason)
    })

    it.each(['identity', 'gzip'])(
      'by an abort within a body of encoding %s gives the reason',
      async encoding => {
        const controller = new AbortController()
        const { server, closed } = await answerUntilClosed(res => {
          res.setHeader('content-encoding', encoding)
          res.write(encoding === 'gzip' ? gzipSync(BYTES).subarray(0, -20) : BYTES)
        })
        const source = await open(server.origin, { signal: controller.signal })
        const reading = (async () => {
          for await (const _chunk of source.body) controller.abort(reason)
        })()
        await expect(reading).rejects.toBe(reason)
        await closed
      },
    )
  })
})
