import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { inMemory } from '../../../src/body.ts'
import { openConnection } from '../../../src/client/api/connection.ts'

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

function post(url: string, signal = new AbortController().signal, onSlow?: (message: string) => void) {
  const body = { ...inMemory(Buffer.from('{"list":["/a"]}')), contentType: 'application/json' }
  const connection = openConnection(url, {}, CONTEXT, { idleMs: 300, slowMs: 100 })
  onTestFinished(() => connection.close())
  return connection.post({ body }, signal, onSlow)
}

describe('a server that takes connections', () => {
  it.each<[string, () => Promise<string>]>([
    ['says nothing', startSilent],
    ['never answers the upload', () => startServer(() => {})],
    [
      'ends in the middle of an answer',
      () => startServer((_, res) => res.writeHead(200).write('{"success":')),
    ],
  ])('and %s is given up, and may be tried again', async (_, start) => {
    const told: string[] = []
    const reply = await post(await start(), undefined, message => told.push(message))
    expect(told).toEqual([
      expect.stringMatching(/^127\.0\.0\.1:\d+ has not responded for 0\.1 s\. It may be storing/),
    ])
    expect(reply).toMatchObject({ code: 'unreachable', isSilent: true, transient: {} })
    expect(reply.message).toContain("can't be reached: it did not respond in time")
  })

  it('and takes longer than the limit, but sends something, is waited for', async () => {
    const answer = JSON.stringify({ success: true, result: ['https://img.example/a.png'] })
    const url = await startServer((_, res) => {
      res.writeHead(200)
      const timer = setInterval(() => res.write(' '), 50)
      setTimeout(() => {
        clearInterval(timer)
        res.end(answer)
      }, 700)
    })
    expect(await post(url)).toMatchObject({ files: [{ url: 'https://img.example/a.png' }] })
  })

  it('and says nothing lets Ctrl-C through', async () => {
    const stopped = new AbortController()
    const posted = post(await startSilent(), stopped.signal)
    stopped.abort()
    expect(await posted).toMatchObject({ code: 'interrupted' })
  })
})
