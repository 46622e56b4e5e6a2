import { writeFile } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { shareApp, startApp } from '../helpers/start-app.ts'
import { serve } from '../uploader/sources/servers.ts'
import { runBuilt, runCli } from './run-cli.ts'

const beat = async (args: string[], cwd?: string, env: Record<string, string> = {}) =>
  runCli(['heartbeat', ...args], { cwd: cwd ?? (await makeDirectory()), env })

describe('heartbeat ends with 0 for a server that answers', () => {
  const app = shareApp()

  it.each(['', '/', '/upload', '/upload/?key=hunter2&picbed=x#y'])('--server URL%s', async suffix => {
    const { url } = app()
    const { code, stdout, stderr } = await beat(['--server', `${url}${suffix}`])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(new RegExp(`^${url}/? is up\n$`))
  })

  it('at the host and port of the configuration, the environment, or both', async () => {
    const { url } = app()
    const port = Number(new URL(url).port)
    const cwd = await makeDirectory()
    await writeFile(join(cwd, 'upload-server.json'), JSON.stringify({ server: { port } }))
    expect(await beat([], cwd)).toMatchObject({ code: 0, stdout: `${url} is up\n` })
    expect(await beat(['-c', join(cwd, 'upload-server.json')])).toMatchObject({ code: 0 })
    const env = { UPLOAD_SERVER_PORT: String(port), UPLOAD_SERVER_HOST: '0.0.0.0' }
    expect(await beat([], undefined, env)).toMatchObject({ code: 0, stdout: `${url} is up\n` })
  })

  it('in the built program', async () => {
    const { url } = app()
    expect(await runBuilt(['heartbeat', '--server', url], { cwd: await makeDirectory() })).toEqual({
      code: 0,
      stdout: `${url}/ is up\n`,
      stderr: '',
    })
  })

  it('on a unix socket', async () => {
    const directory = await makeDirectory()
    const host = join(directory, 'up.sock')
    await startApp({ config: { server: { host } } })
    const env = { UPLOAD_SERVER_HOST: host }
    expect(await beat([], undefined, env)).toEqual({ code: 0, stdout: `unix:${host} is up\n`, stderr: '' })
  })

  it('below a path, as behind a proxy', async () => {
    const { origin: url } = await serve((req, res) => {
      res.writeHead(req.url === '/up/heartbeat' ? 200 : 404).end('{"success":true,"result":"alive"}')
    })
    expect(await beat(['--server', `${url}/up/`])).toMatchObject({ code: 0 })
    expect(await beat(['--server', `${url}/down`])).toMatchObject({ code: 1 })
  })
})

describe('heartbeat --ready', () => {
  it('ends with 0 for a server that accepts uploads, also on another port than the configured one', async () => {
    const directory = await makeDirectory()
    const app = await startApp({ directory })
    const env = { XDG_DATA_HOME: join(directory, 'data'), UPLOAD_SERVER_PORT: String(await findFreePorts()) }
    const said = { code: 0, stdout: `${app.url} is ready\n`, stderr: '' }
    expect(await beat(['--ready'], undefined, env)).toEqual(said)
    expect(await beat(['--ready', '--server', app.url])).toMatchObject({ code: 0 })
  })

  it('ends with 1 and the reason for one whose database does not work', async () => {
    const database = {
      driver: 'postgres',
      url: `postgres://me:hunter2@127.0.0.1:${await findFreePorts()}/up`,
    }
    const app = await startApp({ config: { database } })
    expect(await beat(['--ready', '--server', app.url])).toEqual({
      code: 1,
      stdout: '',
      stderr: `${app.url}/ is not ready: The database of the server does not respond (ECONNREFUSED). Try again in a moment.\n`,
    })
    expect(await beat(['--server', app.url])).toMatchObject({ code: 0 })
  })

  it('ends with 1 for another program, whatever it responds', async () => {
    for (const body of ['', '{}', '[]', '{"success":true,"result":"alive"}', '{"code":1,"message":2}']) {
      const { origin: url } = await serve((_, res) => res.end(body))
      const { code, stderr } = await beat(['--ready', '--server', url])
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: `${url}/ is not ready: another program responds there (status 200 for /ready).\n`,
      })
    }
  })
})

describe('heartbeat ends with 1, and says why, for', () => {
  it('nobody', async () => {
    const url = `http://127.0.0.1:${await findFreePorts()}`
    const { code, stdout, stderr } = await beat(['--server', url])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/ is not up: .*ECONNREFUSED.*\n$/)
  })

  it('a socket that nobody made', async () => {
    const { code, stderr } = await beat([], undefined, { UPLOAD_SERVER_HOST: '/nowhere/up.sock' })
    expect(code).toBe(1)
    expect(stderr).toContain('unix:/nowhere/up.sock is not up')
  })

  it.each<[string, number, string]>([
    ['another service', 404, '<h1>Not found</h1>'],
    ['another service that answers everything', 200, '<h1>Welcome</h1>'],
    ['one that is not well', 503, '{"success":true,"result":"alive"}'],
    ['one with another result', 200, '{"success":true,"result":"dead"}'],
  ])('%s', async (_, status, body) => {
    const { origin: url } = await serve((_, res) => res.writeHead(status).end(body))
    const { code, stdout, stderr } = await beat(['--server', url])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toBe(
      `${url}/ is not up: another program responds there (status ${status} for /heartbeat).\n`,
    )
  })

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
  ])('%s, within two seconds', async (_, handle) => {
    const { origin: url } = await serve(handle)
    const { code } = await beat(['--server', url])
    expect(code).toBe(1)
  })

  it('one that takes connections and says nothing, within two seconds', async () => {
    const sockets: { destroy(): void }[] = []
    const server = createTcpServer(socket => void sockets.push(socket.on('error', () => {})))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    const { code } = await beat(['--server', `127.0.0.1:${(server.address() as AddressInfo).port}`])
    expect(code).toBe(1)
  })

  it('one that speaks no HTTP', async () => {
    const server = createTcpServer(socket => socket.on('error', () => {}).end('220 mail\r\n'))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const { code, stderr } = await beat(['--server', `127.0.0.1:${(server.address() as AddressInfo).port}`])
    expect(code).toBe(1)
    expect(stderr).toMatch(/^http:.* is not up: .+\n$/)
  })

  it('a wrong configuration', async () => {
    const cwd = await makeDirectory()
    await writeFile(join(cwd, 'upload-server.json'), '{')
    const { code, stderr } = await beat([], cwd)
    expect(code).toBe(1)
    expect(stderr).toContain('is not valid JSON')
  })
})
