import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { connect, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { takePort } from '../../../src/server/port.ts'
import { ask } from '../../helpers/ask.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { eventually } from '../../helpers/eventually.ts'
import { download, list, post, upload } from '../../helpers/form.ts'
import { findFreePorts } from '../../helpers/free-port.ts'
import { startGate } from '../../helpers/gate.ts'
import { listen } from '../../helpers/listen.ts'
import { type SpawnedServer, spawnServer } from '../../helpers/spawn-server.ts'
import { startApp } from '../../helpers/start-app.ts'

const HELLO = '{"list":["data:,hello"]}'

function parse(server: SpawnedServer): Record<string, unknown>[] {
  return server.lines.map(line => JSON.parse(line))
}

const messages = (server: SpawnedServer) => parse(server).map(line => String(line['msg']))

/** Puts a server in the way. */
async function occupy(server: Server): Promise<number> {
  const { port, close } = await listen(server)
  onTestFinished(close)
  return port
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
      const [link = ''] = (await upload(`${url}/upload`, { 'a.txt': 'hello' })).result
      expect(link.startsWith(`${url}/files/`)).toBe(true)
      expect((await download(link)).toString()).toBe('hello')
      await eventually(() => expect(/No upload key/.test(messages(server).join())).toBe(isOpen))
    },
  )

  /** Of an upload from another machine. */
  async function statusOf(url: string, query = ''): Promise<number> {
    const headers = { 'X-Forwarded-For': '203.0.113.9' }
    return (await ask(url, 'POST', `/upload${query}`, { headers, body: HELLO })).status
  }

  it('is followed by a warning when everybody may upload, and by none when there is a key', async () => {
    const anonymous = await spawnServer(['--port', '0', '--host', '0.0.0.0', '--allow-anonymous'])
    await eventually(() => expect(messages(anonymous).join()).toMatch(/Anyone/))
    expect(await statusOf(await anonymous.url)).toBe(200)
    const keyed = await spawnServer(['--port', '0', '--host', '0.0.0.0', '-k', '0123'])
    const url = await keyed.url
    // A key is the text it is, not a number.
    for (const [query, status] of Object.entries({
      '': 401,
      '?key=0123': 200,
      '?key=123': 401,
      '?key=83': 401,
    }))
      expect([query, await statusOf(url, query)]).toEqual([query, status])
    expect(messages(keyed).join()).not.toMatch(/No upload key|Anyone/)
  })
})

describe('a port that is taken', () => {
  it.for(['127.0.0.1', '0.0.0.0'])(
    'by a server of the same kind at %s: says where it is and ends with 0',
    async host => {
      const { url } = await startApp({ config: { server: { host } } })
      const second = await spawnServer(['--port', new URL(url).port])
      expect(await second.exit).toBe(0)
      const line = { level: 'info', url, msg: expect.stringContaining('already running') }
      expect([parse(second), second.errors()]).toMatchObject([[line], ''])
    },
  )

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

  it('like the ten behind it: says so', async () => {
    const first = await findFreePorts(11)
    for (let port = first; port <= first + 10; port++) {
      const other = createTcpServer(socket => void socket.destroy()).listen(port, '127.0.0.1')
      await once(other, 'listening')
      onTestFinished(() => void other.close())
    }
    await expect(take(first)).rejects.toThrow(`${first} to ${first + 10}`)
  })

  it('by something else: says so in a warning behind its address', async () => {
    const port = await occupy(createServer((_req, res) => void res.writeHead(404).end()))
    const server = await spawnServer(['--port', String(port)])
    const url = await server.url
    await eventually(() => expect(server.lines.length).toBeGreaterThan(1))
    expect(parse(server)[1]).toMatchObject({ level: 'warn', url, msg: expect.stringContaining(String(port)) })
    expect(server.errors()).toBe('')
  })

  it('by one of the same kind: with --strict-port that is the only line, and it ends with 1', async () => {
    const port = await occupy(createServer((_req, res) => void res.end('{"success":true,"result":"alive"}')))
    const server = await spawnServer(['--port', String(port), '--strict-port'])
    expect(await server.exit).toBe(1)
    const msg = expect.stringMatching(new RegExp(`${port}.*an upload server is already running`))
    expect([parse(server), server.errors()]).toMatchObject([[{ level: 'fatal', msg }], ''])
  })
})

describe('a unix socket', () => {
  const isAlive = async (socketPath: string) =>
    expect(await ask('http://localhost', 'GET', '/heartbeat', { socketPath })).toMatchObject({ status: 200 })

  it('is named in the first line, replaces one that a crash has left, and goes with the server', async () => {
    const directory = await makeDirectory()
    const socketPath = join(directory, 'upload.sock')
    for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
      const server = await spawnServer(['--host', socketPath], { directory })
      expect(await server.url).toBe(`unix:${socketPath}`)
      await isAlive(socketPath)
      server.process.kill(signal)
      expect(await server.exit).toBe(signal === 'SIGTERM' ? 0 : signal)
      expect(existsSync(socketPath)).toBe(signal === 'SIGKILL')
      expect(messages(server).join()).toMatch(/No upload key is set: all clients are rejected/)
    }
  })

  it('on which one of the same kind answers, or something else, is left alone', async () => {
    const directory = await makeDirectory()
    const [ours, theirs] = [join(directory, 'upload.sock'), join(directory, 'other.sock')]
    await startApp({ directory, config: { server: { host: ours } } })
    expect(await take(0, false, ours)).toEqual({ kind: 'already-running', url: `unix:${ours}` })
    await expect(take(0, true, ours)).rejects.toThrow(/an upload server is already running/)
    await isAlive(ours)
    const other = createTcpServer(socket => void socket.destroy()).listen(theirs)
    await once(other, 'listening')
    onTestFinished(() => void other.close())
    await expect(take(0, false, theirs)).rejects.toThrow(theirs)
    expect(other.listening && existsSync(theirs)).toBe(true)
  })

  it('whose path is that of a file does not cost the file', async () => {
    const precious = join(await makeDirectory(), 'upload.sock')
    await writeFile(precious, 'precious')
    const linked = join(await makeDirectory(), 'upload.sock')
    await symlink(precious, linked)
    for (const path of [precious, linked]) await expect(take(0, false, path)).rejects.toThrow(path)
    expect(await readFile(linked, 'utf8')).toBe('precious')
  })
})

describe('told to stop,', () => {
  /** A server that is fetching a file for a client. */
  async function startBusy(grace?: string) {
    const gate = await startGate()
    const server = await spawnServer(['--port', '0'], {
      env: grace ? { UPLOAD_SERVER__SHUTDOWN__GRACE: grace } : {},
    })
    const url = await server.url
    const running = post(`${url}/upload`, list(gate.url))
    running.catch(() => {})
    await gate.reached(1)
    const { hostname, port } = new URL(url)
    const open = async (bytes = '') => {
      const socket = connect(Number(port), hostname).on('error', () => {})
      await once(socket, 'connect')
      socket.write(bytes)
      if (bytes.endsWith('\r\n\r\n')) await once(socket, 'data')
      onTestFinished(() => void socket.destroy())
      return socket.pause()
    }
    const stop = async () => {
      server.process.kill('SIGTERM')
      await eventually(() => expect(messages(server).join()).toMatch(/Shutting down gracefully/))
    }
    return { gate, server, url, running, open, stop }
  }

  it('an idle server ends at once with 0, by Ctrl-C, whatever connections are open on which nothing happens', async () => {
    const { gate, server, running, open } = await startBusy()
    gate.open()
    await running
    // A browser opens connections ahead; others are kept alive, or stand in the middle of their headers.
    for (const bytes of ['', 'GET /heartbeat HTTP/1.1\r\nHost: localhost\r\n\r\n', 'GET /heartbe'])
      await open(bytes)
    server.process.kill('SIGINT')
    expect(await server.exit).toBe(0)
    expect(messages(server).at(-1)).toBe('Stopped')
  })

  it('it finishes what runs, serves what still comes on open connections, each with Connection: close, and ends with 0', async () => {
    const { gate, server, url, running, open, stop } = await startBusy()
    const form = `--b\r\nContent-Disposition: form-data; name="f"; filename="a.txt"\r\n\r\n${'x'.repeat(3_000_000)}\r\n--b--\r\n`
    const type = 'Content-Type: multipart/form-data; boundary=b'
    const begun = `POST /upload HTTP/1.1\r\nHost: localhost\r\n${type}\r\nContent-Length: ${form.length}\r\n\r\n${form.slice(0, 2_000_000)}`
    const rest = `Host: localhost\r\nContent-Length: ${HELLO.length}\r\n\r\n${HELLO}`
    const clients = [
      [await open(), `POST /upload HTTP/1.1\r\n${rest}`],
      [await open('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'), `POST /upload HTTP/1.1\r\n${rest}`],
      [await open('POST /upload HTTP/1.1\r\n'), rest],
      [await open(begun), form.slice(2_000_000)],
    ] as const
    const asking = await open()
    await stop()
    await eventually(() => expect(ask(url, 'GET', '/heartbeat')).rejects.toThrow(/ECONNREFUSED/))
    for (const [socket, more] of clients) {
      socket.write(more)
      expect(await text(socket)).toMatch(/HTTP\/1\.1 200 .*\r\nConnection: close\r\n.*"success":true/s)
    }
    asking.write('GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n')
    expect(await text(asking)).toMatch(/^HTTP\/1\.1 503 .*\r\nConnection: close\r\n.*"shutting_down"/s)
    gate.open()
    const { headers, success, result } = await running
    expect([headers.get('connection'), success]).toEqual(['close', true])
    expect(await server.exit).toBe(0)
    const key = new URL(result[0] ?? '').pathname.split('/Default/')[1] ?? ''
    expect(await readFile(join(server.directory, 'upload-server/files', key), 'utf8')).toBe('the file')
  })

  it('it refuses what is new when half of shutdown.grace is over, also to a client in the middle of sending', async () => {
    const { gate, server, running, open, stop } = await startBusy('4000ms')
    const clients = await Promise.all(Array.from({ length: 60 }, () => open()))
    const large = await open()
    await stop()
    const refusal = /^HTTP\/1\.1 503 .*\r\nConnection: close\r\n.*"shutting_down"/s
    const asking = async () => {
      const client = clients.pop() as Socket
      client.write(
        `POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${HELLO.length}\r\n\r\n${HELLO}`,
      )
      const said = await text(client)
      expect(said).toMatch(refusal)
      return said
    }
    // So many clients last longer than half of the grace.
    const answer = await vi.waitFor(asking, { timeout: 15_000, interval: 100 })
    expect(answer).toMatch(/\r\nRetry-After: \d+\r\n/)
    const line = { address: '127.0.0.1', res: { status: 503 }, requestId: expect.any(String) }
    await eventually(() => expect(parse(server)).toContainEqual(expect.objectContaining(line)))
    const bytes = Buffer.alloc(20_000_000)
    large.write(`POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${bytes.length}\r\n\r\n`)
    const sent = new Promise(resolve => large.write(bytes, resolve))
    const [refused] = await Promise.all([text(large), sent])
    expect(refused).toMatch(refusal)
    gate.open()
    expect(await running).toMatchObject({ status: 200 })
    expect(await server.exit).toBe(0)
  })

  it('it ends with 1 when shutdown.grace runs out, and leaves no temporary file', async () => {
    const { server, running, stop } = await startBusy('300ms')
    await Promise.all([stop(), expect(running).rejects.toThrow()])
    expect(await server.exit).toBe(1)
    const msg = expect.stringContaining('shutdown.grace')
    expect(parse(server).at(-1)).toMatchObject({ level: 'error', msg })
    const folder = join(server.directory, 'upload-server')
    const left = await readdir(folder, { recursive: true, withFileTypes: true })
    expect(left.filter(one => one.isFile() && !one.name.startsWith('store.db'))).toEqual([])
  })

  it('it ends at once when it is told a second time', async () => {
    const { server, running, stop } = await startBusy()
    await stop()
    server.process.kill('SIGINT')
    expect(await server.exit).toBe(1)
    await expect(running).rejects.toThrow()
  })
})

it('a failure of the configuration is a sentence, not a stack trace', async () => {
  const server = await spawnServer(['--config', 'nowhere.json'])
  expect(await server.exit).toBe(1)
  expect(server.errors()).toContain('nowhere.json')
  expect(server.errors()).not.toMatch(/\n\s+at /)
})
