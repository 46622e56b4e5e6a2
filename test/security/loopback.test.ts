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
  const { port } = new URL(app.url)
  const OURS = ['localhost', `localhost:${port}`, '127.0.0.1', '127.8.9.10', '[::1]', 'piclist.localhost']
  for (const host of OURS) expect((await send(`Host: ${host}`)).status, host).toBe(200)
  const THEIRS = [
    ...[
      'evil.example',
      'localhost.evil.example',
      'evil-localhost',
      'localhost.',
      '127.0.0.1.evil.example',
      '127.1',
    ],
    ...[
      '127.0.1',
      '2130706433',
      '0x7f000001',
      '0x7f.0.0.1',
      '0177.0.0.1',
      '①②⑦.⓪.⓪.①',
      '[::1%lo]',
      '::1',
      '[::1',
    ],
    ...[
      'localhost:1:2',
      'localhost@evil.example',
      'evil.example#localhost',
      'localhost/',
      ' ',
      'localhost evil',
    ],
  ]
  for (const host of THEIRS) expect((await send(`Host: ${host}`)).status, host).toBeGreaterThanOrEqual(400)
  expect((await send('Host: localhost', 'Host: evil.example')).status).toBeGreaterThanOrEqual(200)

  const PROGRAMS = ['http://localhost:5173', 'https://127.0.0.1', 'app://obsidian.md', 'tauri://localhost']
  PROGRAMS.push(
    'chrome-extension://abcdefghijklmnop',
    'moz-extension://0f-1e',
    'vscode-webview://x',
    'file://',
  )
  for (const origin of PROGRAMS) expect((await send(`Origin: ${origin}`)).status, origin).toBe(200)
  const PAGES = [
    'https://evil.example',
    'http://localhost.evil.example',
    'null',
    'NULL',
    '',
    'http://127.1',
    'x',
  ]
  PAGES.push(
    'http://localhost@evil.example',
    'https://evil.example, http://localhost',
    'http://[::1]x',
    'app:',
    'data:',
  )
  for (const origin of PAGES) expect((await send(`Origin: ${origin}`)).status, origin).toBe(401)

  const MARKS = [
    'X-Forwarded-For: 127.0.0.1',
    'x-forwarded-host: localhost',
    'X-FORWARDED-PROTO: https',
    'Via: 1.1 x',
  ]
  MARKS.push(
    'Forwarded: for=127.0.0.1',
    'X-Real-IP: 127.0.0.1',
    'X-Forwarded-For:',
    'Sec-Fetch-Site: cross-site',
  )
  for (const mark of MARKS) expect((await send(mark)).status, mark).toBe(401)
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
  await stop(0)
})
