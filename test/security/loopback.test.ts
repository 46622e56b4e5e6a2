import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, it } from 'vitest'
import { createHttpServer } from '../../src/server/http-server.ts'
import { ask } from '../helpers/ask.ts'
import { sendUpload } from '../helpers/raw-request.ts'
import { startApp } from '../helpers/start-app.ts'

// The rules one by one stand in test/routes/loopback.test.ts.

const body = '{"list":["data:,hello"]}'

it('attack: a request to a running server that only looks like one of this machine', async () => {
  const app = await startApp()
  const send = (...headers: string[]) => sendUpload(app.url, { headers, body })
  for (const header of ['Host: 127.8.9.10', 'Host: piclist.localhost', 'Origin: app://obsidian.md'])
    expect((await send(header)).status, header).toBe(200)
  for (const header of ['Host: evil.example', 'Origin: https://evil.example', 'Origin:', 'X-Forwarded-For:'])
    expect((await send(header)).status, header).toBe(401)
  for (const host of [' ', 'localhost evil', 'localhost@evil.example', 'evil.example#localhost', '①②⑦.⓪.⓪.①'])
    expect((await send(`Host: ${host}`)).status, host).toBeGreaterThanOrEqual(400)
  expect((await send('Host: localhost', 'Host: evil.example')).status).toBe(400)
})

it('a program of this machine is known on a server for IPv6 as well, where its address is a mapped one', async () => {
  const app = await startApp({ config: { server: { host: '::' } } })
  const { port } = new URL(app.url)
  for (const host of ['127.0.0.1', '[::1]']) {
    const send = (headers: Record<string, string>) =>
      ask(`http://${host}:${port}`, 'POST', '/upload', { headers, body })
    expect((await send({})).status).toBe(200)
    expect((await send({ Via: '1.1 x' })).status).toBe(401)
  }
})

it('attack: somebody asks and asks and never reads an answer', async () => {
  const { server, stop } = createHttpServer(
    (_req, res) => res.end('x'.repeat(100_000)),
    () => {},
    200,
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as { port: number }).port, '127.0.0.1').on('error', () => {})
  socket.pause()
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(1000))
  const [accepted] = await once(server, 'connection')
  await once(accepted, 'close')
  socket.destroy()
  await stop(0, 0)
})
