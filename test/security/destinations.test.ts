import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { destinationsAt, startWith, TYPES } from '../helpers/destinations.ts'
import { expectFailure } from '../helpers/expect-answer.ts'
import { list, post } from '../helpers/form.ts'
import { type Served, serve, serveRaw } from '../uploader/sources/servers.ts'

const MB = 1024 * 1024

const flooded: Socket[] = []

/** Writes the same again and again until the other side hangs up. */
function flood(socket: Socket, more: string): void {
  flooded.push(socket)
  const write = () => {
    while (!socket.destroyed && socket.write(more)) {}
  }
  socket.on('drain', write)
  write()
}

/** Once the beginning of a request is there. */
const onRequest = (work: (socket: Socket) => void) =>
  serveRaw(socket => void socket.once('data', () => work(socket)))

const html = '<html><head><script>alert(1)</script></head><body><h1>Log in</h1></body></html>'
const bomb = gzipSync(Buffer.alloc(100 * MB))

const MISBEHAVIOURS: Record<string, () => Promise<Served>> = {
  'answers without end': () =>
    onRequest(socket => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      flood(socket, 'x'.repeat(100_000))
    }),
  'answers a failure without end': () =>
    onRequest(socket => {
      socket.write('HTTP/1.1 403 Forbidden\r\nContent-Length: 1000000000\r\n\r\n')
      flood(socket, '<a>'.repeat(100_000))
    }),
  'sends headers without end': () =>
    onRequest(socket => {
      socket.write('HTTP/1.1 200 OK\r\n')
      flood(socket, 'X: y\r\n'.repeat(10_000))
    }),
  'sends interim answers without end': () =>
    onRequest(socket => {
      const more = 'HTTP/1.1 102 P\r\n\r\n'.repeat(10)
      const timer = setInterval(() => socket.destroyed || socket.write(more), 5)
      socket.once('close', () => clearInterval(timer))
    }),
  'sends a bomb of gzip': () =>
    serve(
      (req, res) =>
        void req.resume().on('end', () => res.writeHead(403, { 'Content-Encoding': 'gzip' }).end(bomb)),
    ),
  'never answers': () => onRequest(() => {}),
  'resets the connection': () => onRequest(socket => socket.resetAndDestroy()),
  'hangs up before it is asked': () => serveRaw(socket => socket.destroy()),
  'hangs up in the middle of its answer': () =>
    onRequest(socket => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"data":')),
  'speaks something else': () => serveRaw(socket => socket.end('SSH-2.0-OpenSSH_9.2\r\n')),
  'answers with HTML': () =>
    serve((req, res) => void req.resume().on('end', () => res.writeHead(403).end(html))),
  'redirects to a place of its choice': () =>
    serve(
      (req, res) =>
        void req.resume().on('end', () => res.writeHead(307, { Location: 'http://0.0.0.0:1/' }).end()),
    ),
  'answers with odd JSON': () =>
    serve(
      (req, res) =>
        void req
          .resume()
          .on('end', () => res.writeHead(422).end('{"data":{"url":["javascript:1"]},"message":{}}')),
    ),
}

describe.each(Object.keys(MISBEHAVIOURS))('attack: a destination %s', behaviour => {
  it('and every upload fails in words, while others go on', async () => {
    const server = await MISBEHAVIOURS[behaviour]!()
    const local = { Default: { directory: 'a', serve: true } }
    const app = await startWith({ ...destinationsAt(server.origin), local }, 1000)
    flooded.length = 0
    const answers = await Promise.all(
      TYPES.map(type => post(`${app.url}/upload?picbed=${type}`, list('data:,hello'))),
    )
    for (const [index, answer] of answers.entries()) {
      expect([502, 504], `${TYPES[index]}: ${answer.message}`).toContain(answer.status)
      expectFailure(answer, answer.status, answer.code)
      expect(answer.message.length).toBeLessThan(1000)
      expect(answer.message).not.toMatch(/s3cr3t|<script|<h1/)
    }
    const other = async () => (await post(`${app.url}/upload?picbed=local`, list('data:,hello'))).status
    await expect.poll(other, { timeout: 10_000 }).toBe(200)
    // Whoever reads on keeps it in memory: what is written beyond lies in the buffers of the system.
    for (const socket of flooded) expect(socket.bytesWritten).toBeLessThan(40 * MB)
    await server.close() // or the uploader waits for what it may have to say
  })
})

it('attack: a destination answers that it stored the file at an address that is none', async () => {
  for (const url of [
    'javascript:alert(1)',
    'file:///etc/passwd',
    '//evil.example/x',
    '',
    'data:text/html,x',
  ]) {
    const server = await serve(
      (req, res) => void req.resume().on('end', () => res.end(JSON.stringify({ data: { url } }))),
    )
    const app = await startWith(destinationsAt(server.origin))
    expectFailure(await post(`${app.url}/upload`, list('data:,hello')), 502, 'destination_failed')
  }
})

it.each(['http', 'socks5'])('a silent proxy is named as the proxy, by %s', async scheme => {
  const dead = await serveRaw(socket => void socket.resume())
  const proxy = { proxy: `${scheme}://127.0.0.1:${dead.port}` }
  const login = { host: '127.0.0.1', username: 'me', password: 's3cr3t-k3y', urlPrefix: 'http://x.example' }
  const providers = {
    ...destinationsAt('http://127.0.0.1:1', proxy),
    sftp: { Default: { ...login, ...proxy } },
  }
  const app = await startWith(providers, 500)
  for (const type of ['s3', 'sftp']) {
    const answer = await post(`${app.url}/upload?picbed=${type}`, list('data:,hello'))
    expectFailure(answer, 504, 'destination_timeout')
    expect(answer.message, type).toContain(`through the proxy "127.0.0.1:${dead.port}"`)
  }
  await dead.close()
})
