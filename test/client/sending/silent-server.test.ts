import { writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openRemote } from '../../../src/client/sending/remote.ts'
import type { Patience } from '../../../src/client/sending/while-responsive.ts'
import { bodyOf } from '../../../src/http/request-body.ts'
import { runCli } from '../../cli/run-cli.ts'
import { makeDirectory } from '../../helpers/directory.ts'

/** For whom the server is asked after a moment. */
const IMPATIENT = { quietMs: 100, answerMs: 500, idleMs: 60_000, tokenMs: 1000 }
const CONTEXT = { env: {}, learn: () => {}, mask: (text: string) => text, cwd: '.', maskInJobLog: () => {} }

async function listen(server: Server): Promise<string> {
  const sockets = new Set<{ destroy(): void }>()
  server.on('connection', socket => sockets.add(socket.on('error', () => {})))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const startSilent = () => listen(createTcpServer(socket => socket.resume()))
const startServer = (answer: RequestListener) => listen(createServer(answer))

function post(url: string, signal = new AbortController().signal, patience: Patience = IMPATIENT) {
  const request = { body: bodyOf(Buffer.from('{"list":["/a"]}'), 'application/json'), count: 1 }
  return openRemote(url, {}, CONTEXT, patience).post(request, signal)
}

describe('a server that takes connections', () => {
  it('and says nothing is given up, in words of our own', async () => {
    const url = await startSilent()
    const reply = await post(url)
    expect(reply).toMatchObject({ code: 'unreachable', isSilent: true })
    expect(reply.message).toBe(
      `${new URL(url).host} accepts connections but does not respond: it is overloaded, or another program listens there`,
    )
  })

  it('and ends in the middle of an answer is given up as well', async () => {
    const url = await startServer((req, res) => {
      if (req.method === 'POST') res.writeHead(200).write('{"success":')
    })
    expect(await post(url)).toMatchObject({ code: 'unreachable', isSilent: true })
  })

  it('and works on an upload is waited for as long as it answers others', async () => {
    const asked: string[] = []
    const answer = JSON.stringify({ success: true, result: ['https://img.example/a.png'] })
    const url = await startServer((req, res) => {
      asked.push(`${req.method} ${req.url}`)
      if (req.method === 'GET') res.writeHead(404).end()
      else setTimeout(() => res.end(answer), 1500)
    })
    expect(await post(`${url}/deep/upload`)).toMatchObject({
      outcomes: [{ url: 'https://img.example/a.png' }],
    })
    expect(asked.length).toBeGreaterThan(3)
    expect(new Set(asked)).toEqual(new Set(['POST /deep/upload', 'GET /deep/heartbeat']))
  })

  it('and answers others, but never the upload, is given up in the end', async () => {
    const url = await startServer((req, res) => {
      if (req.method === 'GET') res.end()
    })
    const { signal } = new AbortController()
    const reply = await post(url, signal, { ...IMPATIENT, idleMs: 1000 })
    expect(reply).toMatchObject({ code: 'unreachable', isSilent: true, transient: {} })
    expect(reply.message).toContain('it did not respond in time')
  })

  it('and says nothing lets Ctrl-C through at once', async () => {
    const begun = performance.now()
    expect(await post(await startSilent(), AbortSignal.timeout(50))).toMatchObject({ code: 'interrupted' })
    expect(performance.now() - begun).toBeLessThan(450)
  })

  it('and says nothing ends "upload --retry-max-time 1s" within seconds, as "heartbeat"', async () => {
    const [cwd, url] = [await makeDirectory(), await startSilent()]
    await writeFile(join(cwd, 'a.png'), 'x')
    const [upload, heartbeat] = await Promise.all([
      runCli(['upload', '--server', url, '--retry-max-time', '1s', 'a.png'], { cwd }),
      runCli(['heartbeat', '--server', url], { cwd }),
    ])
    expect(upload).toMatchObject({ code: 4, stderr: expect.stringContaining('does not respond') })
    expect(upload.stderr).not.toContain('It is tried again')
    expect(heartbeat).toMatchObject({ code: 1, stderr: expect.stringContaining('within 1 s') })
  }, 15_000)
})
