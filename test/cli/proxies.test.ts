import { writeFile } from 'node:fs/promises'
import { request as send } from 'node:http'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { startApp } from '../helpers/start-app.ts'
import { startCommentForge, TOKEN } from '../servers/comment-forge.ts'
import { serve } from '../uploader/sources/servers.ts'
import { runCli } from './run-cli.ts'

/** A proxy for plain HTTP that knows some names, and refuses all others with a 407. */
async function startNamingProxy(places: Readonly<Record<string, string>>) {
  const asked: string[] = []
  const { port } = await serve((request, response) => {
    const { hostname, pathname, search } = new URL(request.url ?? '')
    asked.push(`${request.method} ${hostname}${pathname}`)
    const place = places[hostname]
    if (place === undefined) return void request.resume().on('end', () => response.writeHead(407).end())
    const options = { method: request.method, headers: request.headers }
    const on = send(new URL(pathname + search, place), options, answer => {
      answer.pipe(response.writeHead(answer.statusCode ?? 502, answer.headers))
    })
    request.pipe(on)
  })
  return { asked, env: { http_proxy: `http://me:w0rd@127.0.0.1:${port}`, no_proxy: 'other.example' } }
}

async function makePlace(files: Record<string, string>): Promise<string> {
  const cwd = await makeDirectory()
  for (const [name, text] of Object.entries(files)) await writeFile(join(cwd, name), text)
  return cwd
}

it('upload, finalize and heartbeat with --server take the proxy of the environment', async () => {
  const app = await startApp({ config: { server: { key: 'k' }, keyTemplate: '{filename}{extname}' } })
  const { asked, env } = await startNamingProxy({ 'img.example': app.url })
  const cwd = await makePlace({ a: 'a', b: 'b', large: 'x'.repeat(700_000) })
  const to = ['--server', 'http://img.example', '--key', 'k']
  const { code, stdout, stderr } = await runCli(['upload', '-q', ...to, 'a', 'large', 'b'], { cwd, env })
  expect({ code, lines: stdout.trim().split('\n').length }).toEqual({ code: 0, lines: 3 })
  expect(stderr).toMatch(/^Warning: the upload key is sent to img\.example over unencrypted http\..*\n$/)
  expect(await app.files()).toHaveLength(3)
  expect((await runCli(['finalize', ...to, 'nobody'], { cwd, env })).stderr).toContain('nobody')
  expect(await runCli(['heartbeat', ...to.slice(0, 2)], { cwd, env })).toMatchObject({ code: 0, stderr: '' })
  expect(new Set(asked)).toEqual(new Set(['POST img.example/upload', 'GET img.example/heartbeat']))
})

it('a proxy that refuses is named, and not taken for the server', async () => {
  const { env } = await startNamingProxy({})
  const args = ['upload', '-q', '--retry-max-time', '0', '--server', 'http://img.example', 'a']
  const { code, stderr } = await runCli(args, { cwd: await makePlace({ a: 'a' }), env })
  expect(code).toBe(4)
  expect(stderr).toMatch(/img\.example can't be reached: the proxy "127\.0\.0\.1:\d+" rejected the user name/)
  expect(stderr).not.toContain('w0rd')
})

it('comment takes the proxy of the environment', async () => {
  const forge = await startCommentForge('github')
  onTestFinished(() => forge.close())
  const { origin } = new URL(forge.api)
  const { asked, env } = await startNamingProxy({ 'forge.example': origin })
  const input = JSON.stringify([{ name: 'a.png', url: 'https://img.example/a.png' }])
  const job = {
    ...{ GITHUB_ACTIONS: 'true', GITHUB_API_URL: forge.api.replace(origin, 'http://forge.example') },
    ...{ GITHUB_REPOSITORY: 'me/app', GITHUB_REF: 'refs/pull/7/merge', GITHUB_TOKEN: TOKEN },
  }
  const { code, stderr } = await runCli(['comment'], {
    cwd: await makePlace({}),
    input,
    env: { ...job, ...env },
  })
  expect({ code, stderr }).toEqual({ code: 0, stderr: 'Created a comment.\n' })
  expect(forge.comments).toHaveLength(1)
  expect(asked.length).toBeGreaterThan(1)
})

it('upload, heartbeat and finalize speak Basic to a reverse proxy, beside the key, and never show the password', async () => {
  const right = `Basic ${Buffer.from('me:p@ss w0rd').toString('base64')}`
  const { port, requests } = await serve((req, res) => {
    const isIn = req.headers.authorization === right
    const body =
      req.url === '/heartbeat' ? { result: 'alive' } : { success: true, result: ['http://x/a.txt'] }
    req.resume().on('end', () => res.writeHead(isIn ? 200 : 401).end(JSON.stringify(isIn ? body : {})))
  })
  const cwd = await makePlace({ 'a.txt': 'hello' })
  const host = `127.0.0.1:${port}`
  const run = (command: string, address: string) =>
    runCli([...command.split(' '), '--server', address], { cwd })
  const address = `http://me:p%40ss%20w0rd@${host}`
  const sent = await run('upload -q --key k3y-0f-the-server a.txt', address)
  expect(sent).toMatchObject({ code: 0, stdout: 'http://x/a.txt\n' })
  expect(requests[0]?.headers['x-upload-key']).toBe('k3y-0f-the-server')
  expect(await run('heartbeat', address)).toMatchObject({ code: 0, stdout: `http://${host}/ is up\n` })
  const finished = await run('finalize an-id', address)
  expect(finished).toMatchObject({ code: 0, stdout: 'finished  an-id  http://x/a.txt\n' })
  for (const command of ['upload a.txt', 'heartbeat', 'finalize an-id'])
    for (const place of [
      `http://me:hunter22@${host}`,
      'http://me:hunter22@',
      'http://me:hunter22@127.0.0.1:1',
    ]) {
      const { code, stdout, stderr } = await run(command, place)
      expect(code).toBeGreaterThan(0)
      expect(stdout + stderr).not.toContain('hunter22')
    }
})
