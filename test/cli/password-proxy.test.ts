import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { runCli } from './run-cli.ts'

/** Lets those in who know the password, and says what it was asked. */
async function startProxy() {
  const seen: (string | undefined)[] = []
  const server = createServer((req, res) => {
    seen.push(req.headers['x-upload-key'] as string | undefined)
    req.resume()
    const isIn = req.headers.authorization === `Basic ${Buffer.from('me:p@ss w0rd').toString('base64')}`
    const body =
      req.url === '/heartbeat' ? { result: 'alive' } : { success: true, result: ['http://x/a.txt'] }
    res.writeHead(isIn ? 200 : 401, { 'Content-Type': 'application/json' })
    res.end(JSON.stringify(isIn ? body : {}))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close().closeAllConnections())
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, seen }
}

it('upload, heartbeat and finalize speak Basic to a proxy, beside the key, and never show the password', async () => {
  const { host, seen } = await startProxy()
  const cwd = await makeDirectory()
  await writeFile(join(cwd, 'a.txt'), 'hello')
  const server = (password: string) => `http://me:${password}@${host}`
  const sent = await runCli(
    ['upload', '--server', server('p%40ss%20w0rd'), '-q', '--key', 'k3y-0f-the-server', 'a.txt'],
    { cwd },
  )
  expect(sent).toMatchObject({ code: 0, stdout: 'http://x/a.txt\n' })
  expect(seen).toEqual(['k3y-0f-the-server'])
  const beat = await runCli(['heartbeat', '--server', server('p%40ss%20w0rd')], { cwd })
  expect(beat).toMatchObject({ code: 0, stdout: `http://${host}/ is up\n` })
  const finished = await runCli(['finalize', '--server', server('p%40ss%20w0rd'), 'an-id'], { cwd })
  expect(finished).toMatchObject({ code: 0, stdout: 'finished  an-id  http://x/a.txt\n' })
  for (const command of ['upload a.txt', 'heartbeat', 'finalize an-id']) {
    for (const address of [server('hunter22'), 'http://me:hunter22@', 'http://me:hunter22@127.0.0.1:1']) {
      const args = [...command.split(' '), '--server', address]
      const { code, stdout, stderr } = await runCli(args, { cwd })
      expect(code).toBeGreaterThan(0)
      expect(stdout + stderr).not.toContain('hunter22')
    }
  }
})
