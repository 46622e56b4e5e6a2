import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, it, onTestFinished, vi } from 'vitest'
import { makeDirectory } from '../../helpers/directory.ts'
import { eventually } from '../../helpers/eventually.ts'
import { list, post } from '../../helpers/form.ts'
import { findFreePorts } from '../../helpers/free-port.ts'
import { needs, needsLinux } from '../../helpers/needs.ts'
import { runBuiltOnTerminal } from '../../helpers/pty.ts'
import { BIN, environmentIn } from '../../helpers/spawn-server.ts'

it('attack: what a request names moves the cursor of the terminal that shows the log', async context => {
  needs(context, 'python3', 'python3')
  const directory = await makeDirectory()
  const port = await findFreePorts()
  const shown = runBuiltOnTerminal(
    ['--port', String(port)],
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
  first?.write(
    'POST /upload HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 24\r\n\r\n{"list":["data:,hello"]}',
  )
  const [said] = (await once(first as Socket, 'data')) as [Buffer]
  expect(String(said)).toMatch(/^HTTP\/1\.1 200 /)
  for (const socket of open) socket.destroy()
  const again = () => post(`${url}/upload`, list('data:,hello'))
  expect((await eventually(again)).status).toBe(200)
})
