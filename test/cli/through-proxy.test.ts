import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { startApp } from '../helpers/start-app.ts'
import { startCommentForge, TOKEN } from '../servers/comment-forge.ts'
import { runCli } from './run-cli.ts'

/** A proxy for plain HTTP that knows some names, and refuses all others with a 407. */
async function startNamingProxy(places: Readonly<Record<string, string>>) {
  const asked: string[] = []
  const proxy = createServer((request, response) => {
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
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  onTestFinished(() => void proxy.close())
  const { port } = proxy.address() as AddressInfo
  return { asked, env: { http_proxy: `http://me:w0rd@127.0.0.1:${port}`, no_proxy: 'other.example' } }
}

it('upload, finalize and heartbeat with --server take the proxy of the environment', async () => {
  const app = await startApp({ config: { server: { key: 'k' }, keyTemplate: '{filename}{extname}' } })
  const { asked, env } = await startNamingProxy({ 'img.example': app.url })
  const cwd = await makeDirectory()
  const large = 'x'.repeat(700_000)
  for (const [name, text] of Object.entries({ a: 'a', b: 'b', large })) await writeFile(join(cwd, name), text)
  const to = ['--server', 'http://img.example', '--key', 'k']
  const { code, stdout, stderr } = await runCli(['upload', '-q', ...to, 'a', 'large', 'b'], { cwd, env })
  expect({ code, lines: stdout.trim().split('\n').length }).toEqual({ code: 0, lines: 3 })
  expect(stderr).toMatch(/^Warning: the upload key is sent to img\.example over unencrypted http\..*\n$/)
  expect((await app.files()).map(path => path.split('/').at(-1)).sort()).toEqual([
    'a.txt',
    'b.txt',
    'large.txt',
  ])
  expect((await runCli(['finalize', ...to, 'nobody'], { cwd, env })).stderr).toContain('nobody')
  expect(await runCli(['heartbeat', ...to.slice(0, 2)], { cwd, env })).toMatchObject({ code: 0, stderr: '' })
  expect(new Set(asked)).toEqual(new Set(['POST img.example/upload', 'GET img.example/heartbeat']))
})

it('a proxy that refuses is named, and not taken for the server', async () => {
  const { env } = await startNamingProxy({})
  const cwd = await makeDirectory()
  await writeFile(join(cwd, 'a'), 'a')
  const args = ['upload', '-q', '--retry-max-time', '0', '--server', 'http://img.example', 'a']
  const { code, stderr } = await runCli(args, { cwd, env })
  expect(code).toBe(4)
  expect(stderr).toMatch(/img\.example can't be reached: the proxy "127\.0\.0\.1:\d+" rejected the user name/)
  expect(stderr).not.toContain('w0rd')
})

it('comment takes the proxy of the environment', async () => {
  const forge = await startCommentForge('github')
  onTestFinished(() => forge.close())
  const { origin } = new URL(forge.api)
  const { asked, env } = await startNamingProxy({ 'forge.example': origin })
  const cwd = await makeDirectory()
  const input = JSON.stringify([{ name: 'a.png', url: 'https://img.example/a.png' }])
  const job = {
    ...{ GITHUB_ACTIONS: 'true', GITHUB_API_URL: forge.api.replace(origin, 'http://forge.example') },
    ...{ GITHUB_REPOSITORY: 'me/app', GITHUB_REF: 'refs/pull/7/merge', GITHUB_TOKEN: TOKEN },
  }
  const { code, stderr } = await runCli(['comment'], { cwd, input, env: { ...job, ...env } })
  expect({ code, stderr }).toEqual({ code: 0, stderr: 'Created a comment.\n' })
  expect(forge.comments).toHaveLength(1)
  expect(asked.length).toBeGreaterThan(1)
})
