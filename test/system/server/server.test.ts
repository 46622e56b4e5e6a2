import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import {
  type AddressInfo,
  connect,
  createServer as createTcpServer,
  type Server,
  type Socket,
} from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { takePort } from '../../../src/server/port.ts'
import { ask } from '../../helpers/ask.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { eventually } from '../../helpers/eventually.ts'
import { download, list, post, upload } from '../../helpers/form.ts'
import { findFreePorts } from '../../helpers/free-port.ts'
import { startGate } from '../../helpers/gate.ts'
import { type SpawnedServer, spawnServer } from '../../helpers/spawn-server.ts'
import { startApp } from '../../helpers/start-app.ts'

const KEY = 'k3y-0f-the-server'

function parse(server: SpawnedServer): Record<string, unknown>[] {
  return server.lines.map(line => JSON.parse(line))
}

const messages = (server: SpawnedServer) => parse(server).map(line => String(line['msg']))

/** Puts a server in the way. */
async function occupy(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const sockets = new Set<Socket>()
  server.on('connection', socket => void sockets.add(socket))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** Has a port taken as the server does. */
function take(port: number, strict = false, host = '127.0.0.1') {
  const server = createServer()
  onTestFinished(() => void server.close())
  return takePort(server, { host, port }, strict)
}

/** What may sit on a port without being a server of this kind. */
const OCCUPANTS: [string, () => Server][] = [
  ['a web server that knows no heartbeat', () => createServer((_req, res) => void res.writeHead(404).end())],
  ['a web server that says OK to everything', () => createServer((_req, res) => void res.end('OK'))],
  ['one that says something else', () => createServer((_req, res) => void res.end('{"result":"dead"}'))],
  [
    'one that answers alive with 500',
    () => createServer((_req, res) => void res.writeHead(500).end('{"success":true,"result":"alive"}')),
  ],
  ['one that never ends its answer', () => createServer((_req, res) => void res.write('{"result":'))],
  [
    'one that sends without end',
    () => createServer((_req, res) => void setInterval(() => res.write('x'.repeat(999)), 1).unref()),
  ],
  ['one that never answers', () => createTcpServer(() => {})],
  ['one that hangs up', () => createTcpServer(socket => void socket.destroy())],
  [
    'one that speaks another protocol',
    () => createTcpServer(socket => void socket.end('220 mail ready\r\n')),
  ],
]

describe('the first line of the log', () => {
  it.for([
    ['::1', /^http:\/\/\[::1\]:\d+$/, false],
    ['localhost', /^http:\/\/localhost:\d+$/, false],
    ['0.0.0.0', /^http:\/\/127\.0\.0\.1:\d+$/, true],
    ['::', /^http:\/\/\[::1\]:\d+$/, true],
  ] as const)(
    'holds an address that can be reached when the host is %s, and whoever may not upload is said',
    async ([host, pattern, isOpen]) => {
      const server = await spawnServer(['--port', '0', '--host', host])
      const url = await server.url
      expect(url).toMatch(pattern)
      const answer = await upload(`${url}/upload`, { 'a.txt': 'hello' })
      expect(answer.status).toBe(200)
      expect(answer.result[0]!.startsWith(`${url}/files/`)).toBe(true)
      expect((await download(answer.result[0]!)).toString()).toBe('hello')
      await eventually(() => expect(/No upload key/.test(messages(server).join())).toBe(isOpen))
    },
  )

  /** Of an upload from another machine. */
  async function statusOf(url: string, query = ''): Promise<number> {
    const headers = { 'X-Forwarded-For': '203.0.113.9' }
    return (await ask(url, 'POST', `/upload${query}`, { headers, body: '{"list":["data:,hello"]}' })).status
  }

  it('is followed by a warning when everybody may upload, and by none when there is a key', async () => {
    const anonymous = await spawnServer(['--port', '0', '--host', '0.0.0.0', '--allow-anonymous'])
    await eventually(() => expect(messages(anonymous).join()).toMatch(/Anyone/))
    expect(await statusOf(await anonymous.url)).toBe(200)
    const keyed = await spawnServer(['--port', '0', '--host', '0.0.0.0', '-k', '0123'])
    const statuses = [await statusOf(await keyed.url), await statusOf(await keyed.url, '?key=0123')]
    // A key is the text it is, not a number.
    for (const key of ['123', '83']) statuses.push(await statusOf(await keyed.url, `?key=${key}`))
    expect(statuses).toEqual([401, 200, 401, 401])
    expect(messages(keyed).join()).not.toMatch(/No upload key|Anyone/)
  })
})

describe('a port that is taken', () => {
  it('by a server of the same kind: says where it is and ends with 0', async () => {
    const { url } = await startApp()
    const second = await spawnServer(['--port', new URL(url).port])
    expect(await second.exit).toBe(0)
    expect(parse(second)).toMatchObject([
      { level: 'info', url, msg: expect.stringContaining('already running') },
    ])
    expect(second.errors()).toBe('')
    expect(await ask(url, 'GET', '/heartbeat')).toMatchObject({ status: 200 })
  })

  it('by a server of the same kind on all addresses: the same', async () => {
    const { url } = await startApp({ config: { server: { host: '0.0.0.0' } } })
    const second = await spawnServer(['--port', new URL(url).port])
    expect(await second.exit).toBe(0)
  })

  it.for(OCCUPANTS)(
    'by %s: one of the next ports is taken, or with --strict-port it is said who is there',
    async ([, start]) => {
      const port = await occupy(start())
      const taken = await take(port)
      expect(taken.kind).toBe('listening')
      const real = Number(new URL(taken.url).port)
      expect(real).toBeGreaterThan(port)
      expect(real).toBeLessThanOrEqual(port + 10)
      await expect(take(port, true)).rejects.toThrow(
        new RegExp(`^Port ${port} .* in use: .*(?:/heartbeat|there)`),
      )
    },
  )

  it('by something else: says so in a warning behind its address', async () => {
    const port = await occupy(createServer((_req, res) => void res.writeHead(404).end()))
    const server = await spawnServer(['--port', String(port)])
    const url = await server.url
    await eventually(() => expect(server.lines.length).toBeGreaterThan(1))
    expect(parse(server)[1]).toMatchObject({ level: 'warn', url, msg: expect.stringContaining(String(port)) })
    expect(await ask(url, 'GET', '/heartbeat')).toMatchObject({ status: 200 })
    expect(server.errors()).toBe('')
  })

  it('by one of the same kind: with --strict-port that is the only line, and it ends with 1', async () => {
    const port = await occupy(createServer((_req, res) => void res.end('{"success":true,"result":"alive"}')))
    const server = await spawnServer(['--port', String(port), '--strict-port'])
    expect(await server.exit).toBe(1)
    expect(parse(server)).toMatchObject([
      { level: 'fatal', msg: expect.stringMatching(/an upload server is already running/) },
    ])
    expect(messages(server)[0]).toContain(String(port))
    expect(server.errors()).toBe('')
  })

  it('like the ten behind it: ends with 1 and says so', async () => {
    const first = await findFreePorts(11)
    for (let port = first; port <= first + 10; port++) {
      const other = createTcpServer(socket => void socket.destroy()).listen(port, '127.0.0.1')
      await once(other, 'listening')
      onTestFinished(() => void other.close())
    }
    const server = await spawnServer(['--port', String(first)])
    expect(await server.exit).toBe(1)
    expect(messages(server)[0]).toContain(`${first} to ${first + 10}`)
  })
})

describe('a unix socket', () => {
  const alive = { status: 200, body: '{"success":true,"result":"alive"}' }

  async function spawnOnSocket(args: string[] = [], directory?: string) {
    const folder = directory ?? (await makeDirectory())
    const socketPath = join(folder, 'upload.sock')
    const server = await spawnServer(['--host', socketPath, ...args], { directory: folder })
    return { server, socketPath, folder }
  }

  it('is named in the first line, answers, and goes with the server', async () => {
    const { server, socketPath } = await spawnOnSocket()
    expect(await server.url).toBe(`unix:${socketPath}`)
    expect(await ask('http://localhost', 'GET', '/heartbeat', { socketPath })).toMatchObject(alive)
    server.process.kill('SIGTERM')
    expect(await server.exit).toBe(0)
    expect(existsSync(socketPath)).toBe(false)
    expect(messages(server)).toContainEqual(
      expect.stringMatching(/No upload key is set: all clients are rejected/),
    )
  })

  it('never counts as loopback: whoever sits behind it needs the key', async () => {
    const { server, socketPath } = await spawnOnSocket(['--key', KEY])
    await server.url
    const body = '{"list":["data:,hello"]}'
    const question = { socketPath, body, headers: { Host: 'localhost' } }
    expect(await ask('http://localhost', 'POST', '/upload', question)).toMatchObject({ status: 401 })
    const stored = await ask('http://localhost', 'POST', `/upload?key=${KEY}`, question)
    expect(stored.status).toBe(200)
    const { pathname } = new URL(JSON.parse(stored.body).result[0])
    expect(await ask('http://localhost', 'GET', pathname, { socketPath })).toMatchObject({ body: 'hello' })
  })

  it('that a crash left behind is replaced', async () => {
    const { server, socketPath, folder } = await spawnOnSocket()
    await server.url
    server.process.kill('SIGKILL')
    await server.exit
    expect(existsSync(socketPath)).toBe(true)
    const next = await spawnOnSocket([], folder)
    await next.server.url
    expect(await ask('http://localhost', 'GET', '/heartbeat', { socketPath })).toMatchObject(alive)
  })

  it('on which one of the same kind answers: ends with 0, with --strict-port with 1', async () => {
    const folder = await makeDirectory()
    const socketPath = join(folder, 'upload.sock')
    await startApp({ directory: folder, config: { server: { host: socketPath } } })
    const second = await spawnOnSocket([], folder)
    expect(await second.server.exit).toBe(0)
    expect(parse(second.server)).toMatchObject([{ url: `unix:${socketPath}` }])
    const strict = await spawnOnSocket(['--strict-port'], folder)
    expect(await strict.server.exit).toBe(1)
    expect(messages(strict.server)[0]).toMatch(/an upload server is already running/)
    expect(await ask('http://localhost', 'GET', '/heartbeat', { socketPath })).toMatchObject(alive)
  })

  it('on which something else listens is left alone', async () => {
    const folder = await makeDirectory()
    const other = createTcpServer(socket => void socket.destroy()).listen(join(folder, 'upload.sock'))
    await once(other, 'listening')
    onTestFinished(() => void other.close())
    const { server, socketPath } = await spawnOnSocket([], folder)
    expect(await server.exit).toBe(1)
    expect(messages(server)[0]).toContain(socketPath)
    expect(other.listening && existsSync(socketPath)).toBe(true)
  })

  it('whose path is that of a file does not cost the file', async () => {
    const folder = await makeDirectory()
    const precious = join(folder, 'upload.sock')
    await writeFile(precious, 'precious')
    const first = await spawnOnSocket([], folder)
    expect(await first.server.exit).toBe(1)
    expect(messages(first.server)[0]).toContain(precious)
    expect(await readFile(precious, 'utf8')).toBe('precious')

    const linked = join(await makeDirectory(), 'upload.sock')
    await symlink(precious, linked)
    await expect(take(0, false, linked)).rejects.toThrow(linked)
    expect(await readFile(linked, 'utf8')).toBe('precious')
  })
})

describe('told to stop,', () => {
  it('an idle server ends at once with 0, by Ctrl-C, too', async () => {
    const server = await spawnServer(['--port', '0'])
    await server.url
    server.process.kill('SIGINT')
    expect(await server.exit).toBe(0)
    expect(messages(server).at(-1)).toBe('Stopped')
  })

  it('it is not held up by connections on which nothing happens', async () => {
    const server = await spawnServer(['--port', '0'])
    const { hostname, port } = new URL(await server.url)
    // A browser opens connections ahead; others are kept alive, or stand in the middle of their headers.
    const sent = ['', 'GET /heartbeat HTTP/1.1\r\nHost: localhost\r\n\r\n', 'GET /heartbe']
    for (const bytes of sent) {
      const socket = connect(Number(port), hostname)
      socket.on('error', () => {})
      socket.write(bytes)
      await once(socket, 'connect')
      if (bytes.endsWith('\n')) await once(socket, 'data')
      onTestFinished(() => void socket.destroy())
    }
    server.process.kill('SIGTERM')
    expect(await server.exit).toBe(0)
    expect(messages(server).at(-1)).toBe('Stopped')
  })

  it('it finishes what runs, serves what still comes on open connections, each with Connection: close, and ends with 0', async () => {
    const gate = await startGate()
    const server = await spawnServer(['--port', '0'])
    const url = await server.url
    const { hostname, port } = new URL(url)
    const running = fetch(`${url}/upload`, { method: 'POST', ...list(gate.url) })
    await gate.reached(1)
    const open = ['', 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n', 'POST /upload HTTP/1.1\r\n']
    const sockets = await Promise.all(
      open.map(async bytes => {
        const socket = connect(Number(port), hostname)
        await once(socket, 'connect')
        socket.write(bytes)
        if (bytes.endsWith('\r\n\r\n')) await once(socket, 'data')
        return socket.pause()
      }),
    )
    const asking = connect(Number(port), hostname)
    await once(asking, 'connect')

    server.process.kill('SIGTERM')
    await eventually(() => expect(messages(server).join()).toMatch(/Shutting down gracefully/))
    await eventually(() => expect(ask(url, 'GET', '/heartbeat')).rejects.toThrow(/ECONNREFUSED/))
    const body = '{"list":["data:,hello"]}'
    const rest = `Host: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    for (const [i, socket] of sockets.entries()) {
      socket.write(i === 2 ? rest : `POST /upload HTTP/1.1\r\n${rest}`)
      const answer = await text(socket)
      expect(answer).toMatch(/HTTP\/1\.1 200 .*\r\nConnection: close\r\n/s)
      expect(answer).toContain('"success":true')
    }
    asking.write('GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n')
    expect(await text(asking)).toMatch(/^HTTP\/1\.1 503 .*\r\nConnection: close\r\n.*"shutting_down"/s)

    gate.open()
    const answer = await running
    expect(answer.headers.get('connection')).toBe('close')
    const { success, result } = (await answer.json()) as { success: boolean; result: [string] }
    expect(success).toBe(true)
    expect(await server.exit).toBe(0)
    const stored = join(
      server.directory,
      'upload-server/files',
      new URL(result[0]).pathname.split('/Default/')[1]!,
    )
    expect(await readFile(stored, 'utf8')).toBe('the file')
  })

  it('it refuses what is new when half of shutdown.grace is over, also to a client in the middle of sending', async () => {
    const [gate, graceMs] = [await startGate(), 6000]
    const env = { UPLOAD_SERVER__SHUTDOWN__GRACE: `${graceMs}ms` }
    const server = await spawnServer(['--port', '0'], { env })
    const url = await server.url
    const running = post(`${url}/upload`, list(gate.url))
    await gate.reached(1)
    const { hostname, port } = new URL(url)
    const [small, large] = [connect(Number(port), hostname), connect(Number(port), hostname)]
    await Promise.all([small, large].map(socket => once(socket, 'connect')))
    server.process.kill('SIGTERM')
    await sleep(graceMs / 2 + 300)
    small.write('POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}')
    const answer = await text(small)
    expect(answer).toMatch(/^HTTP\/1\.1 503 .*\r\nConnection: close\r\n/s)
    expect(answer).toMatch(/\r\nRetry-After: \d+\r\n/)
    const body = JSON.parse(answer.slice(answer.lastIndexOf('\r\n\r\n')))
    expect(body).toMatchObject({ success: false, code: 'shutting_down' })
    const line = { address: '127.0.0.1', res: { status: 503 }, requestId: expect.any(String) }
    await eventually(() => expect(parse(server)).toContainEqual(expect.objectContaining(line)))
    const bytes = Buffer.alloc(20_000_000)
    large.write(`POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${bytes.length}\r\n\r\n`)
    const sent = new Promise(resolve => large.write(bytes, resolve))
    const [refused] = await Promise.all([text(large), sent])
    expect(refused).toMatch(/^HTTP\/1\.1 503 .*"shutting_down"/s)
    gate.open()
    expect(await running).toMatchObject({ status: 200 })
    expect(await server.exit).toBe(0)
  })

  it('it takes the rest of a form that is arriving', async () => {
    const server = await spawnServer(['--port', '0'])
    const url = await server.url
    const { hostname, port } = new URL(url)
    const file = 'x'.repeat(3_000_000)
    const body = `--b\r\nContent-Disposition: form-data; name="f"; filename="a.txt"\r\n\r\n${file}\r\n--b--\r\n`
    const socket = connect(Number(port), hostname)
    socket.write(
      `POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: ${body.length}\r\n\r\n`,
    )
    socket.write(body.slice(0, 2_000_000))
    const spool = join(server.directory, 'upload-server/files/.upload-server')
    await eventually(async () => expect(await readdir(spool, { recursive: true })).toHaveLength(2))
    server.process.kill('SIGTERM')
    await eventually(() => expect(messages(server).join()).toMatch(/Shutting down gracefully/))
    socket.write(body.slice(2_000_000))
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 200 .*"size":3000000/s)
    expect(await server.exit).toBe(0)
  })

  it('it ends with 1 when shutdown.grace runs out, and leaves no temporary file', async () => {
    const gate = await startGate()
    const server = await spawnServer(['--port', '0'], { env: { UPLOAD_SERVER__SHUTDOWN__GRACE: '300ms' } })
    const running = post(`${await server.url}/upload`, list(gate.url))
    const failed = expect(running).rejects.toThrow()
    await gate.reached(1)
    server.process.kill('SIGTERM')
    expect(await server.exit).toBe(1)
    await failed
    expect(parse(server).at(-1)).toMatchObject({
      level: 'error',
      msg: expect.stringContaining('shutdown.grace'),
    })
    const left = await readdir(join(server.directory, 'upload-server'), {
      recursive: true,
      withFileTypes: true,
    })
    const files = left.filter(entry => entry.isFile() && !entry.name.startsWith('store.db'))
    expect(files.map(entry => entry.name)).toEqual([])
  })

  it('it ends at once when it is told a second time', async () => {
    const gate = await startGate()
    const server = await spawnServer(['--port', '0'])
    const running = post(`${await server.url}/upload`, list(gate.url))
    const failed = expect(running).rejects.toThrow()
    await gate.reached(1)
    server.process.kill('SIGTERM')
    await eventually(() => expect(messages(server).join()).toMatch(/Shutting down gracefully/))
    server.process.kill('SIGINT')
    expect(await server.exit).toBe(1)
    await failed
  })
})

it('a failure of the configuration is a sentence, not a stack trace', async () => {
  const server = await spawnServer(['--config', 'nowhere.json'])
  expect(await server.exit).toBe(1)
  expect(server.errors()).toContain('nowhere.json')
  expect(server.errors()).not.toMatch(/\n\s+at /)
})
