import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { eventually } from '../helpers/eventually.ts'
import { expectFailure } from '../helpers/expect-answer.ts'
import { list, post } from '../helpers/form.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { needs, needsLinux } from '../helpers/needs.ts'
import { runOnTerminal } from '../helpers/pty.ts'
import { sendRaw, sendUpload } from '../helpers/raw-request.ts'
import { BIN, environmentIn } from '../helpers/spawn-server.ts'
import { startApp } from '../helpers/start-app.ts'

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
    const app = await startApp()
    const answer = await sendUpload(app.url, { headers, body })
    expectFailure(answer, 400, 'invalid_request')
    expect(answer.headers.get('connection')).toBe('close')
    expect(await app.files()).toEqual([])
  })

  it.each([[['Host: 127.0.0.1', 'Host: evil.example']], [['Host: evil.example', 'HOST: 127.0.0.1']]])(
    'two hosts: %j',
    async headers => {
      const app = await startApp()
      expectFailure(await sendUpload(app.url, { headers, body: HELLO }), 400, 'invalid_request')
      expect(await app.files()).toEqual([])
    },
  )
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
    const app = await startApp()
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

it('attack: what a request names moves the cursor of the terminal that shows the log', async context => {
  needs(context, 'python3', 'python3')
  const directory = await makeDirectory()
  const [port, env] = [await findFreePorts(), environmentIn(directory)]
  const settings = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const command = ['env', '-i', ...settings, process.execPath, BIN, '--port', String(port)]
  const shown = runOnTerminal(
    command,
    [
      ['Local', ''],
      ['evil', '\u0003'],
    ],
    directory,
  )
  const name = '\u001b[2J\u001b]0;evil\u0007\u009b2J\u202e\n{"level":"fatal"}'
  const send = () => post(`http://127.0.0.1:${port}/upload`, list(`/${name}`))
  expect((await eventually(send)).status).toBe(422)
  const { exitCode, stdout } = await shown
  expect(exitCode).toBe(0)
  expect(stdout).toContain('evil')
  expect(stdout.replace(/\u001b\[\d*m/g, '')).not.toMatch(
    /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202e]/,
  )
  expect(stdout).not.toMatch(/^\{"level":"fatal"/m)
})

it('attack: somebody opens all connections there are while the first upload comes', async context => {
  needsLinux(context, 'ulimit -n')
  const directory = await makeDirectory()
  const env = { ...environmentIn(directory), NODE: process.execPath, BIN }
  const server = spawn('bash', ['-c', 'ulimit -n 1024; exec "$NODE" "$BIN" --port 0'], {
    cwd: directory,
    env,
  })
  onTestFinished(() => void server.kill('SIGKILL'))
  let log = ''
  server.stdout.on('data', chunk => (log += chunk))
  const url = await vi.waitUntil(() => /Listening on ([^"]+)/.exec(log)?.[1], 20_000)
  const { hostname, port } = new URL(url)
  const open = Array.from({ length: 1100 }, () => connect(Number(port), hostname).on('error', () => {}))
  onTestFinished(() => open.forEach(socket => void socket.destroy()))
  await vi.waitUntil(() => log.includes('so new ones are closed'), 10_000)
  // One of those that were there first.
  const first = open.find(socket => !socket.destroyed && socket.readyState === 'open')
  first?.write(inside)
  const [said] = (await once(first as Socket, 'data')) as [Buffer]
  expect(String(said)).toMatch(/^HTTP\/1\.1 200 /)
  for (const socket of open) socket.destroy()
  const again = () => post(`${url}/upload`, list('data:,hello'))
  expect((await eventually(again)).status).toBe(200)
})

describe('attack: lists that are held back fill the memory', () => {
  const MB = 1024 * 1024
  const config = {
    server: { key: 's3cr3t-k3y' },
    limits: { memory: '2MB', jsonBody: '4MB', concurrentUploads: 1 },
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

  it.each(['application/json', 'image/png'])('%s: large ones wait, small ones go on', async type => {
    const app = await startApp({ config })
    // Heartbeats do not wait for what this loads.
    expect((await post(`${app.url}/upload`, list('data:,hello'))).status).toBe(200)
    const held = [await begin(app.url, 1.5 * MB), await begin(app.url, 0.25 * MB)]
    // The server reads them in turn with these. One that came before their end would be taken in their place.
    for (let turn = 0; turn < 20; turn++) await fetch(`${app.url}/heartbeat`)
    expect(await (await begin(app.url, MB, type)).finish()).toMatchObject({ status: 503, code: 'overloaded' })
    expect((await post(`${app.url}/upload`, list('data:,hello'))).status).toBe(200)
    for (const one of held) expect(await one.finish()).toMatchObject({ status: 200 })
    // All of it is free again: also for one that is larger than the memory, as long as it is alone.
    for (let i = 0; i < 2; i++)
      expect(await (await begin(app.url, 3 * MB, type)).finish()).toMatchObject({ status: 200 })
  })

  it('a data: address with a million parameters is refused', async () => {
    const app = await startApp()
    const answer = await post(`${app.url}/upload`, list(`data:${';a=b'.repeat(1e6)},hello`))
    expectFailure(answer, 400, 'invalid_request')
  })
})
