import { once } from 'node:events'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createHttpServer } from '../../src/server/http-server.ts'
import { eventually } from '../helpers/eventually.ts'
import { expectFailure } from '../helpers/expect-answer.ts'
import { list, post } from '../helpers/form.ts'
import { sendRaw, sendUpload } from '../helpers/raw-request.ts'
import { shareApp, startApp, type TestApp } from '../helpers/start-app.ts'

/** The HTTP server of the program alone. @returns what `createHttpServer` gives, and how it is reached */
async function startBare(
  handle: (req: IncomingMessage, res: ServerResponse) => unknown,
  ...[note = () => {}, ...more]: Partial<Tail<Parameters<typeof createHttpServer>>>
) {
  const { server, stop } = createHttpServer((req, res) => void handle(req, res), note, ...more)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => void (await stop(0, 0)))
  const { port } = server.address() as AddressInfo
  return { server, port, connect: () => connectTo(port) }
}
type Tail<T> = T extends [unknown, ...infer R] ? R : never

/** A connection that may break, and ends with the test. */
function connectTo(port: number): Socket {
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  onTestFinished(() => void socket.destroy())
  return socket
}

const plain = shareApp()
const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
const HELLO = '{"list":["data:,hello"]}'
const inside = `POST /upload HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${HELLO.length}\r\n\r\n${HELLO}`

describe('attack: a request that two programs may read differently', () => {
  it.each<[what: string, headers: string[], body: string]>([
    ['a length and chunks', ['Content-Length: 4', 'Transfer-Encoding: chunked'], `0\r\n\r\n${inside}`],
    ['chunks that are not the last coding', ['Transfer-Encoding: chunked, identity'], `0\r\n\r\n${inside}`],
    ['a coding that is almost chunks', ['Transfer-Encoding: xchunked'], `0\r\n\r\n${inside}`],
    ['two lengths', ['Content-Length: 2', `Content-Length: ${inside.length + 2}`], `{}${inside}`],
    ['a length with a sign', ['Content-Length: +2'], `{}${inside}`],
    ['a length beyond all numbers', ['Content-Length: 99999999999999999999'], `{}${inside}`],
    ['a space before a colon', ['Content-Length : 2'], `{}${inside}`],
    ['a folded header', ['X-A: b\r\n c', 'Content-Length: 2'], `{}${inside}`],
    ['a chunk of endless size', ['Transfer-Encoding: chunked'], `FFFFFFFFFFFFFFFFF\r\n${inside}`],
    ['chunk extensions of 100 KB', ['Transfer-Encoding: chunked'], `1;${'a=b;'.repeat(25_000)}\r\n${inside}`],
  ])('%s', async (_, headers, body) => {
    const app = plain()
    const answer = await sendUpload(app.url, { headers, body })
    expectFailure(answer, 400, 'invalid_request')
    expect(answer.headers.get('connection')).toBe('close')
    expect(await app.files()).toEqual([])
  })

  it.each([[['Host: 127.0.0.1', 'Host: evil.example']], [['Host: evil.example', 'HOST: 127.0.0.1']]])(
    'two hosts: %j',
    async headers => {
      const app = plain()
      expectFailure(await sendUpload(app.url, { headers, body: HELLO }), 400, 'invalid_request')
      expect(await app.files()).toEqual([])
    },
  )
})

it('attack: somebody asks and asks and never reads an answer', async () => {
  const bare = await startBare((_req, res) => res.end('x'.repeat(100_000)), undefined, 200)
  bare.connect().pause().write(GET.repeat(1000))
  const [accepted] = await once(bare.server, 'connection')
  await once(accepted, 'close')
})

it('attack: headers that stop arriving keep a connection for ever: they get 408', async () => {
  const bare = await startBare(() => {})
  bare.server.headersTimeout = 100
  const answers = ['', 'POST /upload HTTP/1.1\r\nHost: localhost\r\nX-'].map(sent => {
    const socket = bare.connect()
    socket.write(sent)
    return text(socket)
  })
  for (const answer of await Promise.all(answers)) {
    expect(answer).toMatch(/^HTTP\/1\.1 408 .*\r\nAccess-Control-Allow-Origin: \*\r\n/s)
    expect(answer).toMatch(/"success":false,.*"code":"request_timeout"/)
  }
})

describe('attack: a whole address in the place of a path', () => {
  it.each<[line: string, status: number]>([
    ['GET http://[::1/heartbeat?key=s3cr3t-k3y HTTP/1.1', 400],
    ['GET ftp://[::1/nothing?key=s3cr3t-k3y HTTP/1.1', 400],
    ['POST http://evil.example/upload HTTP/1.1', 401],
    ['POST http://127.0.0.1@evil.example/upload HTTP/1.1', 400],
    ['POST http://[::1/upload HTTP/1.1', 400],
  ])('%s', async (line, status) => {
    const warnings: string[] = []
    const note = (warning: Error) => void warnings.push(warning.message)
    process.on('warning', note)
    onTestFinished(() => void process.off('warning', note))
    const app = plain()
    const answer = await sendRaw(app.url, { line, headers: ['Host: 127.0.0.1'], body: HELLO })
    expect([answer.status, answer.headers.get('content-type')]).toEqual([
      status,
      'application/json; charset=utf-8',
    ])
    await new Promise(setImmediate)
    // Node would print the address, with the key in it.
    expect(warnings.filter(one => one.includes('[::1'))).toEqual([])
    expect(app.rawLog()).not.toContain('s3cr3t-k3y')
  })
})

it('attack: 3000 unfinished lists of 64 KB took 410 MB: a container takes the connections that it has memory for', async () => {
  const notes: string[] = []
  const note = (_id: string, _status: number, message: string) => void notes.push(message)
  const bare = await startBare((_req, res) => res.end('x'), note, 1000, 40 * 256 * 1024)
  const open = Array.from({ length: 50 }, bare.connect)
  await vi.waitUntil(() => open.filter(socket => socket.resume().closed).length === 10, 10_000)
  expect(notes).toEqual([expect.stringMatching(/^More than 40 connections are open.*give it more/)])
})

describe('attack: lists that are held back fill the memory', () => {
  const MB = 1024 * 1024
  const config = {
    server: { key: 's3cr3t-k3y' },
    limits: { memory: '2MB', jsonBody: '4MB', perDestination: { concurrent: 1 } },
  }

  /** A list that misses its last byte. */
  async function begin(url: string, bytes: number, type = 'application/json') {
    const headers = { 'Content-Length': bytes, 'Content-Type': type }
    const call = request(`${url}/upload`, { method: 'POST', agent: false, headers })
    onTestFinished(() => void call.destroy())
    const answered = once(call, 'response')
    answered.catch(() => {})
    await new Promise<void>(resolve => call.write(HELLO.padEnd(bytes - 1), () => resolve()))
    return {
      async finish() {
        call.end(' ')
        const [response] = (await answered) as [IncomingMessage]
        return { status: response.statusCode, ...JSON.parse(await text(response)) }
      },
    }
  }

  const spooled = async (app: TestApp) => (await app.files()).filter(path => path.includes('.upload-server'))

  it.each(['application/json', 'image/png'])(
    '%s: they are on disk, and keep no other waiting',
    async type => {
      const app = await startApp({ config })
      const held = await Promise.all([1.5, 0.25, 0.25, 0.25, 0.25].map(size => begin(app.url, size * MB)))
      await vi.waitUntil(async () => (await spooled(app)).length > 0, 10_000)
      expect(await (await begin(app.url, MB, type)).finish()).toMatchObject({ status: 200 })
      expect((await post(`${app.url}/upload`, list('data:,hello'))).status).toBe(200)
      for (const one of held) expect(await one.finish()).toMatchObject({ status: 200 })
      // All of it is free again: also for one that is larger than the memory, as long as it is alone.
      for (let i = 0; i < 2; i++)
        expect(await (await begin(app.url, 3 * MB, type)).finish()).toMatchObject({ status: 200 })
      expect(await spooled(app)).toEqual([])
    },
  )

  it('a data: address with a million parameters is refused', async () => {
    const app = await startApp()
    const answer = await post(`${app.url}/upload`, list(`data:${';a=b'.repeat(1e6)},hello`))
    expectFailure(answer, 400, 'invalid_request')
  })
})

describe('attack: a packet full of requests, sent without waiting for answers', () => {
  /** Sends requests at once and gives what comes back until the connection ends. */
  async function pipeline(port: number, lines: readonly string[]): Promise<string> {
    const socket = connectTo(port)
    const requests = lines.map((line, n) => `${line} HTTP/1.1\r\nHost: a\r\nX-Request-Id: n${n}\r\n\r\n`)
    socket.write(requests.join('').replace(/\r\n\r\n$/, '\r\nConnection: close\r\n\r\n'))
    return text(socket)
  }

  it('gets every answer, in order', async () => {
    const app = await startApp({ config: { metrics: { enabled: true } } })
    const lines = [
      ...['GET /', 'HEAD /', 'OPTIONS /', 'GET /upload', 'GET /openapi.json', 'GET /upload-server.sxcu'],
      ...[
        'GET /heartbeat',
        'POST /heartbeat',
        'HEAD /heartbeat',
        'GET /history',
        'GET /metrics',
        'GET /nope',
      ],
      ...['GET /files/Default/nope', 'GET /links/local/Default/a', 'DELETE /upload', 'HEAD /openapi.json'],
    ]
    const many = Array.from({ length: 300 }, (_, n) => lines[n % lines.length] as string)
    const answers = await pipeline(Number(new URL(app.url).port), many)
    const ids = [...answers.matchAll(/^X-Request-Id: n(\d+)\r$/gim)].map(([, id]) => Number(id))
    expect(ids).toEqual(many.map((_, n) => n))
  })

  /** A server that does `answer` for each request, and how many it began at most in one turn of the event loop. */
  async function startCounting(answer: (res: ServerResponse) => void) {
    let inTurn = 0
    const seen = { most: 0, all: 0, parsed: 0 }
    const sockets: Socket[] = []
    const bare = await startBare((_req, res) => {
      if (inTurn === 0)
        setImmediate(() => {
          inTurn = 0
        })
      inTurn++
      seen.all++
      seen.most = Math.max(seen.most, inTurn)
      answer(res)
    })
    bare.server.on('connection', socket => void sockets.push(socket))
    bare.server.on('request', () => seen.parsed++)
    return { ...bare, seen, sockets }
  }
  const turns = async (count: number) => {
    for (let turn = 0; turn < count; turn++) await new Promise(setImmediate)
  }

  it('keeps nobody else waiting: one of them is answered in each turn', async () => {
    const { seen, port } = await startCounting(res => void res.end('x'))
    await pipeline(port, Array(1600).fill('GET /'))
    expect(seen.all).toBe(1600)
    expect(seen.most).toBeLessThan(4) // what has arrived by then may have its first one answered in the same turn
  })

  it('fills no memory with answers that are not read', async () => {
    const { seen, connect } = await startCounting(res => void res.end(Buffer.alloc(64 * 1024)))
    connect().pause().write(GET.repeat(1600))
    let before = -1
    await eventually(() => {
      const isStill = seen.all > 0 && seen.all === before
      before = seen.all
      expect(isStill).toBe(true)
    })
    expect(seen.all).toBeLessThan(400) // the buffers of the system hold some megabytes
  })

  it('624 KB of them take no 730 MB: one is begun, and the rest is not read', async () => {
    const { seen, connect, sockets } = await startCounting(() => {})
    connect().write(GET.repeat(24_000))
    const isRead = () => sockets[0]?.bytesRead ?? 0
    await vi.waitUntil(() => isRead() > 0)
    await turns(20)
    expect(isRead()).toBeLessThan(200 * 1024)
    expect(seen.all).toBe(1)
  })

  it.each([
    ['one after the other', GET.repeat(1600)],
    ['with line feeds only', 'GET / HTTP/1.1\nHost: a\n\n'.repeat(1600)],
    ['behind a body', `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n123456789${GET.repeat(1600)}`],
  ])('on 20 connections, %s: Node makes no objects of those that wait', async (_case, text) => {
    const { seen, connect } = await startCounting(() => {})
    const open = Array.from({ length: 20 }, connect)
    for (const socket of open) socket.resume().write(text)
    await vi.waitUntil(() => seen.parsed >= 20 || open.every(socket => socket.closed), 10_000)
    await turns(20)
    expect(seen.parsed).toBeLessThanOrEqual(20)
  })
})
