import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, type TestContext } from 'vitest'
import { ask } from '../helpers/ask.ts'
import { fill, strangers, withPassword } from '../helpers/behind-proxy.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { download, formOf, post } from '../helpers/form.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { needs } from '../helpers/needs.ts'
import { makePicture } from '../helpers/picture.ts'
import { startApp } from '../helpers/start-app.ts'
import { startDaemon } from '../servers/daemon.ts'

const KEY = 'k3y-of-a-program'
const SECRET = 's3cret-that-only-caddy-kn0ws'
const EXAMPLE = new URL('../../docs/examples/sign-in/Caddyfile', import.meta.url)
/** Of "open sesame", made quickly. */
const HASH = '$2b$04$msq6PEIfnX26AL2hdkvTVOHTge2mgHipbtYPjMerEOpghPK.r0acK'

/** The server with Caddy in front, set up by the example; `path` is where it stands on its site. */
async function startBehindCaddy(context: TestContext, path = '', trusted?: string) {
  needs(context, 'caddy', 'caddy')
  const site = `http://127.0.0.1:${await findFreePorts()}`
  const url = site + path
  const app = await startApp({
    config: {
      server: { key: KEY, publicUrl: url, trustProxy: ['loopback', ...(trusted ? [trusted] : [])] },
      auth: {
        reverseProxy: {
          from: ['127.0.0.1'],
          userHeader: 'X-User',
          secretHeader: { name: 'X-Proxy-Secret', value: SECRET },
        },
      },
    },
  })
  const directory = await makeDirectory()
  const example = await fill(EXAMPLE, [
    ['img.example.com {', `${site} {`],
    ['# Clients must', `${path && `handle_path ${path}/* {\n`}# Clients must`],
    ...Array(3).fill(['reverse_proxy 127.0.0.1:36677', `reverse_proxy ${new URL(app.url).host}`]),
    ['/var/log/caddy/access.log', join(directory, 'access.log')],
    ['HASH', HASH],
  ])
  const end = path && '}'
  const behind = trusted
    ? example.replace('header_up X-User', `trusted_proxies ${trusted}\n      header_up X-User`)
    : example
  await writeFile(join(directory, 'Caddyfile'), `{\nadmin off\n}\n${behind}${end}`)
  const env = [`PROXY_SECRET=${SECRET}`, `XDG_DATA_HOME=${directory}`, `XDG_CONFIG_HOME=${directory}`]
  const run = ['caddy', 'run', '--config', join(directory, 'Caddyfile'), '--adapter', 'caddyfile']
  const daemon = await startDaemon('env', [...env, ...run], { port: Number(new URL(url).port) })
  onTestFinished(daemon.stop)
  return { app, url, accessLog: () => readFile(join(directory, 'access.log'), 'utf8') }
}

describe('behind the Caddy of docs/examples', () => {
  it('an upload with the password is stored, everybody can fetch it, and no log holds a key', async context => {
    const { app, url, accessLog } = await startBehindCaddy(context)
    const picture = makePicture(5 * 1024 * 1024)
    const answer = await post(`${url}/upload?key=${KEY}`, {
      body: formOf({ 'a.png': picture }),
      headers: withPassword('open sesame', { 'X-Upload-Key': KEY, 'X-PicGo-Secret': KEY }),
    })
    expect(answer).toMatchObject({ status: 200, success: true })
    expect(answer.result[0]).toContain(`${url}/files/Default/`)
    expect(picture.equals(await download(String(answer.result[0])))).toBe(true)
    await expect.poll(accessLog).toMatch(/"uri":"\/upload".*"user_id":"me".*"status":200/)
    for (const secret of [KEY, SECRET]) expect((await accessLog()) + app.rawLog()).not.toContain(secret)
  })

  it.for(strangers(KEY))('an upload %s is refused', async ([, headers], context) => {
    const { app, url } = await startBehindCaddy(context)
    const reply = await ask(url, 'POST', '/upload', { headers, body: '{"list":["data:,hello"]}' })
    expect(reply.status).toBe(401)
    expect(await app.files()).toEqual([])
  })

  it('attack: what callers claim about where they come from is replaced', async context => {
    const { app, url } = await startBehindCaddy(context)
    const headers = withPassword('open sesame', {
      'X-Forwarded-For': '203.0.113.9',
      'X-Real-IP': '203.0.113.9',
      'X-Forwarded-Host': 'evil.example',
      'X-Upload-Key': 'wrong',
      Forwarded: 'for=203.0.113.9',
    })
    const answer = await post(`${url}/upload`, { body: formOf({ 'a.txt': 'hello' }), headers })
    expect(answer).toMatchObject({ status: 200, result: [expect.stringContaining(`${url}/files/`)] })
    expect(app.log.find(line => line['stored'] === 1)).toMatchObject({ address: '127.0.0.1' })
    expect(app.rawLog()).not.toMatch(/203\.0\.113\.9|evil/)
  })

  it('a client behind a TLS proxy has its own address, which the TLS proxy adds', async context => {
    const { app, url } = await startBehindCaddy(context, '', '127.0.0.1')
    const headers = withPassword('open sesame', { 'X-Forwarded-For': '198.51.100.7, 203.0.113.9' })
    expect(await post(`${url}/upload`, { body: formOf({ 'a.txt': 'hello' }), headers })).toMatchObject({
      status: 200,
    })
    expect(app.log.find(line => line['stored'] === 1)).toMatchObject({ address: '203.0.113.9' })
  })

  it('links to private buckets need no password', async context => {
    const { url } = await startBehindCaddy(context)
    const { status, body } = await ask(url, 'GET', '/links/s3/private/none.png')
    expect({ status, body }).toMatchObject({ status: 404, body: expect.stringContaining('not_found') })
  })

  it('below a path of a site, links have the path', async context => {
    const { url } = await startBehindCaddy(context, '/img')
    const headers = withPassword('open sesame')
    const answer = await post(`${url}/upload`, { body: formOf({ 'a.txt': 'hello' }), headers })
    expect(answer.result[0]).toContain(`${url}/files/Default/`)
    expect((await download(String(answer.result[0]))).toString()).toBe('hello')
  })
})
