import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { startApp } from '../helpers/start-app.ts'
import { serve } from '../uploader/sources/servers.ts'
import { runCli } from './run-cli.ts'

async function makePlace(local: Record<string, object>, extra: object = {}) {
  const cwd = await makeDirectory()
  const providers = Object.keys(local).length > 0 ? { local } : {}
  const config = { default: `local/${Object.keys(local)[0]}`, providers, ...extra }
  await writeFile(join(cwd, 'upload-server.json'), JSON.stringify(config))
  return { cwd, check: (...args: string[]) => runCli(['check', ...args], { cwd }) }
}

/** A web server over a folder, as it stands in front of a destination. */
async function serveFolder(folder: string): Promise<string> {
  const { origin } = await serve(async (req, res) => {
    const body = await readFile(join(folder, decodeURIComponent(req.url ?? ''))).catch(() => undefined)
    res.writeHead(body ? 200 : 404).end(body)
  })
  return origin
}

const serveOtherBytes = async () => (await serve((_, res) => res.end('a login page'))).origin
const serveNobody = async () => `http://127.0.0.1:${await findFreePorts()}`

/** The files below a folder; the folders that keys make may stay. */
async function listFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries.filter(entry => entry.isFile()).map(entry => entry.name)
}

it('says what is wrong with each destination, tries the others, too, and leaves nothing there', async () => {
  const cwd = await makeDirectory()
  const good = join(cwd, 'good')
  await writeFile(join(cwd, 'file'), 'in the way')
  const { check } = await makePlace({
    good: { directory: good, serve: true },
    web: { directory: good, urlPrefix: await serveFolder(good) },
    unwritable: { directory: join(cwd, 'file', 'below'), serve: true },
    'wrong prefix': { directory: good, urlPrefix: await serveFolder(await makeDirectory()) },
    'nobody there': { directory: good, urlPrefix: await serveNobody() },
    'other bytes': { directory: good, urlPrefix: await serveOtherBytes() },
  })
  const { code, stdout, stderr } = await check()
  expect({ code, stderr }).toEqual({ code: 1, stderr: '' })
  expect(stdout.trimEnd().split('\n')).toEqual([
    'ok      local/good: stored, read in its folder, removed',
    'ok      local/web: stored, downloaded, removed',
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
  expect(await listFiles(good)).toEqual([])
})

it('opens the link of what this server hands out: one with a wrong publicUrl was "downloaded"', async () => {
  const local = { Default: { directory: 'served', serve: true } }
  const checkAt = async (publicUrl: string) => {
    const { cwd, check } = await makePlace(local, { server: { publicUrl } })
    const { stdout, code } = await check()
    expect(await listFiles(join(cwd, 'served'))).toEqual([])
    return `${code} ${stdout}`
  }
  expect(await checkAt(await serveFolder(await makeDirectory()))).toMatch(
    /^1 FAILED .*\/files\/Default\/.* returned status 404\. Check server\.publicUrl/,
  )
  expect(await checkAt(await serveOtherBytes())).toMatch(
    /^1 FAILED .* returned different content\. Check server/,
  )
  expect(await checkAt(await serveNobody())).toMatch(
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
  const { origin } = await serve((req, res) => {
    req.resume()
    res.statusCode = req.method === 'POST' ? 200 : 403
    res.end(`http://${req.headers.host}/private.png`)
  })
  const { check } = await makePlace({}, { default: 'http', providers: { http: { host: { url: origin } } } })
  expect((await check()).stdout).toMatch(
    /^FAILED .*private\.png returned status 403\. Check that the file is publicly readable\.\n$/,
  )
})

it('is not held by a web server that never ends its answer', async () => {
  let sent = 0
  const { origin } = await serve((_, response) => {
    const more = () => {
      for (let room = true; room && !response.destroyed; sent += 65_536)
        room = response.write(Buffer.alloc(65_536))
    }
    response.on('drain', more)
    more()
  })
  const { check } = await makePlace({ one: { directory: 'one', urlPrefix: origin } })
  expect(await check()).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^FAILED {2}local\/one: .* returned different content\. Check urlPrefix/),
  })
  expect(sent).toBeLessThan(64 * 1024 * 1024)
})
