import { writeFile } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { startApp } from '../helpers/start-app.ts'
import { serve, serveRaw } from '../uploader/sources/servers.ts'
import { runCli } from './run-cli.ts'

const beat = async (args: string[], env: Record<string, string> = {}, cwd?: string) =>
  runCli(['heartbeat', ...args], { cwd: cwd ?? (await makeDirectory()), env })

it('finds the server at the host and port of the configuration, the environment, or both', async () => {
  const { url } = await startApp()
  const isUp = { code: 0, stdout: `${url} is up\n`, stderr: '' }
  const port = Number(new URL(url).port)
  const cwd = await makeDirectory()
  await writeFile(join(cwd, 'upload-server.json'), JSON.stringify({ server: { port } }))
  expect(await beat([], {}, cwd)).toEqual(isUp)
  expect(await beat(['-c', join(cwd, 'upload-server.json')])).toEqual(isUp)
  expect(await beat([], { UPLOAD_SERVER_PORT: String(port), UPLOAD_SERVER_HOST: '0.0.0.0' })).toEqual(isUp)
})

it('finds a server on a unix socket, and below a path as behind a proxy', async () => {
  const host = join(await makeDirectory(), 'up.sock')
  await startApp({ config: { server: { host } } })
  expect(await beat([], { UPLOAD_SERVER_HOST: host })).toMatchObject({
    code: 0,
    stdout: `unix:${host} is up\n`,
  })
  const { origin } = await serve((req, res) => {
    res.writeHead(req.url === '/up/heartbeat' ? 200 : 404).end('{"success":true,"result":"alive"}')
  })
  expect(await beat(['--server', `${origin}/up/`])).toMatchObject({ code: 0 })
  expect(await beat(['--server', `${origin}/down`])).toMatchObject({ code: 1 })
})

describe('--ready', () => {
  it('ends with 0 for a server that accepts uploads, also on another port than the configured one', async () => {
    const directory = await makeDirectory()
    const app = await startApp({ directory })
    const env = { XDG_DATA_HOME: join(directory, 'data'), UPLOAD_SERVER_PORT: String(await findFreePorts()) }
    expect(await beat(['--ready'], env)).toEqual({ code: 0, stdout: `${app.url} is ready\n`, stderr: '' })
  })

  it('ends with 1 and the reason for one whose database does not work', async () => {
    const url = `postgres://me:hunter2@127.0.0.1:${await findFreePorts()}/up`
    const app = await startApp({ config: { database: { driver: 'postgres', url } } })
    expect(await beat(['--ready', '--server', app.url])).toEqual({
      code: 1,
      stdout: '',
      stderr: `${app.url}/ is not ready: The database of the server does not respond (ECONNREFUSED). Try again in a moment.\n`,
    })
    expect(await beat(['--server', app.url])).toMatchObject({ code: 0 })
  })

  it('does not ask a database that hangs where the server is that has just responded', async () => {
    const url = `postgres://me:hunter2@127.0.0.1:${await findFreePorts()}/up`
    const app = await startApp({ config: { database: { driver: 'postgres', url } } })
    const hanging = await serveRaw(() => {})
    const other = `postgres://me:hunter2@${new URL(hanging.origin).host}/up`
    const config = {
      server: { port: Number(new URL(app.url).port) },
      database: { driver: 'postgres', url: other },
    }
    const cwd = await makeDirectory()
    await writeFile(join(cwd, 'upload-server.json'), JSON.stringify(config))
    const notReady = { code: 1, stderr: expect.stringContaining('ECONNREFUSED') }
    expect(await beat(['--ready'], {}, cwd)).toMatchObject(notReady)
    expect(hanging.connections()).toBe(0)
  })
})

describe('ends with 1, and says why, for', () => {
  it.each<[string, RequestListener]>([
    ['one that never answers', () => {}],
    ['one that never ends its answer', (_, res) => void res.writeHead(200).write('{"success":true,')],
    [
      'one that trickles its answer',
      (_, res) => {
        const timer = setInterval(() => res.write(' '), 50)
        res.on('close', () => clearInterval(timer))
      },
    ],
    [
      'one that never stops',
      (_, res) => {
        const more = (error?: unknown) => void (error || res.write('x'.repeat(100_000), more))
        more()
      },
    ],
  ])('%s', async (_, handle) => {
    const { origin } = await serve(handle)
    expect(await beat(['--server', origin])).toMatchObject({ code: 1, stdout: '' })
  })

  it('one that speaks no HTTP', async () => {
    const mail = await serveRaw(socket => socket.end('220 mail\r\n'))
    expect((await beat(['--server', mail.origin])).stderr).toMatch(/^http:.* is not up: .+\n$/)
  })
})
