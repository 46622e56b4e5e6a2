import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { startApp } from '../helpers/start-app.ts'
import { runBuilt, runCli } from './run-cli.ts'

interface Place {
  cwd: string
  check(...args: string[]): ReturnType<typeof runCli>
}

async function makePlace(local: Record<string, object>, extra: object = {}): Promise<Place> {
  const cwd = await makeDirectory()
  const config = { default: `local/${Object.keys(local)[0]}`, providers: { local }, ...extra }
  await writeFile(join(cwd, 'upload-server.json'), JSON.stringify(config))
  return { cwd, check: (...args) => runCli(['check', ...args], { cwd }) }
}

/** A web server over a folder, as it stands in front of a destination. */
async function serveFolder(folder: string, status = 200): Promise<string> {
  const server = createServer(async (req, res) => {
    const body = await readFile(join(folder, decodeURIComponent(req.url ?? ''))).catch(() => undefined)
    res.writeHead(body ? status : 404).end(body)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('check', () => {
  it('of the built program is content with a folder that the server hands out, and leaves nothing there', async () => {
    const { cwd } = await makePlace({ Default: { directory: 'served', serve: true } })
    expect(await runBuilt(['check'], { cwd })).toEqual({
      code: 0,
      stdout: 'ok      local/Default: stored, read in its folder, removed\n',
      stderr: '',
    })
    expect(await listFiles(join(cwd, 'served'))).toEqual([])
  })

  it('is content with a folder that another web server hands out', async () => {
    const cwd = await makeDirectory()
    const urlPrefix = await serveFolder(join(cwd, 'web'))
    const { check } = await makePlace({ web: { directory: join(cwd, 'web'), urlPrefix } })
    expect(await check()).toMatchObject({ code: 0, stderr: '' })
    expect(await listFiles(join(cwd, 'web'))).toEqual([])
  })

  it('says what is wrong with each destination, and tries the others, too', async () => {
    const cwd = await makeDirectory()
    const elsewhere = await makeDirectory()
    await writeFile(join(cwd, 'file'), 'in the way')
    const { check } = await makePlace({
      good: { directory: join(cwd, 'good'), serve: true },
      unwritable: { directory: join(cwd, 'file', 'below'), serve: true },
      'wrong prefix': { directory: join(cwd, 'good'), urlPrefix: await serveFolder(elsewhere) },
      'nobody there': {
        directory: join(cwd, 'good'),
        urlPrefix: `http://127.0.0.1:${await findFreePorts()}`,
      },
      'other bytes': { directory: join(cwd, 'good'), urlPrefix: await serveOtherBytes() },
    })
    const { code, stdout, stderr } = await check()
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' })
    expect(stdout.trimEnd().split('\n')).toEqual([
      'ok      local/good: stored, read in its folder, removed',
      expect.stringMatching(/^FAILED {2}local\/unwritable: .*ENOTDIR.*/),
      expect.stringMatching(
        /^FAILED {2}local\/wrong prefix: the file was stored, but http.* returned status 404\. Check urlPrefix/,
      ),
      expect.stringMatching(
        /^FAILED {2}local\/nobody there: the file was stored, but http.* can't be downloaded: .*it refuses connections/,
      ),
      expect.stringMatching(
        /^FAILED {2}local\/other bytes: the file was stored, but http.* returned different content\. Check urlPrefix/,
      ),
    ])
    expect(await listFiles(join(cwd, 'good'))).toEqual([])
  })

  it('opens the link of what this server hands out: one with a wrong publicUrl was "downloaded"', async () => {
    const local = { Default: { directory: 'served', serve: true } }
    const checkAt = async (publicUrl: string) => {
      const { cwd, check } = await makePlace(local, { server: { publicUrl } })
      const { stdout, code } = await check()
      expect(await listFiles(join(cwd, 'served'))).toEqual([])
      return `${code} ${stdout}`
    }
    const elsewhere = await serveFolder(await makeDirectory())
    expect(await checkAt(elsewhere)).toMatch(
      /^1 FAILED .*\/files\/Default\/.* returned status 404\. Check server\.publicUrl/,
    )
    expect(await checkAt(await serveOtherBytes())).toMatch(
      /^1 FAILED .* returned different content\. Check server/,
    )
    expect(await checkAt(`http://127.0.0.1:${await findFreePorts()}`)).toMatch(
      /^0 ok .*: stored, read in its folder \(its link was not opened: .*it refuses connections.*publicUrl.*\), removed/,
    )
    const cwd = await makeDirectory()
    const app = await startApp({ directory: cwd, config: { default: 'local', providers: { local } } })
    const config = { server: { publicUrl: app.url }, default: 'local', providers: { local } }
    await writeFile(join(cwd, 'upload-server.json'), JSON.stringify(config))
    const { stdout } = await runCli(['check'], { cwd })
    expect(stdout).toBe('ok      local/Default: stored, downloaded, removed\n')
  })

  it('speaks of no option that the destination does not have', async () => {
    const server = createServer((req, res) => {
      req.resume()
      res.statusCode = req.method === 'POST' ? 200 : 403
      res.end(`http://${req.headers.host}/private.png`)
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const cwd = await makeDirectory()
    const config = { providers: { http: { host: { url: `http://127.0.0.1:${port}/` } } } }
    await writeFile(join(cwd, 'upload-server.json'), JSON.stringify(config))
    const { stdout } = await runCli(['check'], { cwd })
    expect(stdout).toMatch(
      /^FAILED .*private\.png returned status 403\. Check that the file is publicly readable\.\n$/,
    )
  })

  async function serveOtherBytes(): Promise<string> {
    const server = createServer((_, res) => res.end('a login page'))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  it.each([
    ['local/two', ['local/two']],
    ['local', ['local/one']],
  ])('check %s tries that one only', async (id, tried) => {
    const { check } = await makePlace({
      one: { directory: 'one', serve: true },
      two: { directory: 'two', serve: true },
    })
    const { code, stdout } = await check(id)
    expect(code).toBe(0)
    expect(stdout.match(/local\/\w+/g)).toEqual(tried)
  })

  it.each([
    ['nope', 'Provider "nope" does not exist. Available: "local/one".'],
    ['local/nope', 'local has no destination "nope". Available: "local/one".'],
    ['s3/blog', 'Available: "local/one".'],
  ])('check %s names what there is', async (id, message) => {
    const { check } = await makePlace({ one: { directory: 'one', serve: true } })
    const { code, stdout, stderr } = await check(id)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain(message)
  })

  it('says what is wrong with the configuration before it tries anything', async () => {
    const { cwd, check } = await makePlace({ one: { directory: 'one', serve: true } }, { sever: {} })
    const { code, stderr } = await check()
    expect(code).toBe(1)
    expect(stderr).toContain('sever: is not an option')
    await mkdir(join(cwd, 'one')) // it was not made
  })

  it('shows no secret', async () => {
    const secret = 'hunter2hunter2'
    const urlPrefix = `http://127.0.0.1:${await findFreePorts()}/${secret}`
    const { check } = await makePlace({ one: { directory: 'one', urlPrefix } }, { server: { key: secret } })
    const { code, stdout } = await check()
    expect(code).toBe(1)
    expect(stdout).toContain('[secret]')
  })
})

/** The files below a folder; the folders that keys make may stay. */
async function listFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries.filter(entry => entry.isFile()).map(entry => entry.name)
}

it('is not held by a web server that never ends its answer', async () => {
  let sent = 0
  const server = createServer((_, response) => {
    const more = () => {
      for (let room = true; room && !response.destroyed; sent += 65_536)
        room = response.write(Buffer.alloc(65_536))
    }
    response.on('drain', more)
    more()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const cwd = await makeDirectory()
  const urlPrefix = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const providers = { local: { one: { directory: 'one', urlPrefix } } }
  await writeFile(join(cwd, 'upload-server.json'), JSON.stringify({ providers }))
  const { code, stdout } = await runCli(['check'], { cwd })
  expect(code).toBe(1)
  expect(stdout).toMatch(
    /^FAILED {2}local\/one: the file was stored, but .* returned different content\. Check urlPrefix/,
  )
  expect(sent).toBeLessThan(64 * 1024 * 1024)
})
