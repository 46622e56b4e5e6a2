import { createHash } from 'node:crypto'
import { chmod, chown, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, type TestContext } from 'vitest'
import { runCli } from '../cli/run-cli.ts'
import { ask } from '../helpers/ask.ts'
import { fill, strangers, withPassword, writeNginxConfig } from '../helpers/behind-proxy.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { download, formOf, post } from '../helpers/form.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { missing, needs, needsRoot } from '../helpers/needs.ts'
import { makePicture } from '../helpers/picture.ts'
import { startApp, type TestApp } from '../helpers/start-app.ts'
import { startStubBucket } from '../helpers/stub-bucket.ts'
import { startDaemon } from '../servers/daemon.ts'
import { serve } from '../uploader/sources/servers.ts'

const KEY = 'k3y-of-a-program'
const SECRET = 's3cret-that-only-nginx-kn0ws'
const EXAMPLE = new URL('../../docs/examples/sign-in/nginx.conf', import.meta.url)
const ALIVE = '{"success":true,"result":"alive"}'

interface Proxied {
  app: TestApp
  /** Of nginx. */
  url: string
  accessLog(): Promise<string>
}

/** The server with nginx in front, which is set up by the very file of the example in compose.yaml. */
async function startBehindNginx(
  context: TestContext,
  secretOfNginx = SECRET,
  replace: (example: string) => string = text => text,
): Promise<Proxied> {
  const url = `http://127.0.0.1:${await findFreePorts()}`
  const app = await startApp({ config: configOf(url) })
  const directory = await startNginx(context, url, app.url, secretOfNginx, replace)
  return { app, url, accessLog: () => readFile(join(directory, 'access.log'), 'utf8') }
}

/** The settings of compose.yaml, for nginx on this machine. */
function configOf(publicUrl: string) {
  const secretHeader = { name: 'X-Proxy-Secret', value: SECRET }
  return {
    server: { key: KEY, publicUrl, trustProxy: ['loopback'] },
    auth: { reverseProxy: { from: ['127.0.0.0/8'], userHeader: 'X-User', secretHeader } },
  }
}

/** nginx alone, set up by that file, in front of whatever listens at `behind`. */
async function startNginx(
  context: TestContext,
  url: string,
  behind: string,
  secret: string,
  replace: (example: string) => string = text => text,
): Promise<string> {
  needs(context, 'nginx', 'nginx-light')
  const directory = await makeDirectory()
  const password = createHash('sha1').update('open sesame').digest('base64')
  await writeFile(join(directory, 'htpasswd'), `me:{SHA}${password}\n`)
  await writeNginxConfig(directory, replace(await fillExample(directory, url, behind, secret)))
  const daemon = await startDaemon('nginx', ['-p', directory, '-c', 'nginx.conf', '-e', 'error.log'], {
    port: Number(new URL(url).port),
  })
  onTestFinished(daemon.stop)
  return directory
}

async function fillExample(directory: string, url: string, appUrl: string, secret: string): Promise<string> {
  return fill(EXAMPLE, [
    ['listen 80;', `listen ${new URL(url).host};`],
    ['server upload-server:36677;', `server ${new URL(appUrl).host};`],
    ['/etc/nginx/htpasswd', join(directory, 'htpasswd')],
    ['/var/log/nginx/access.log', join(directory, 'access.log')],
    ['"$' + '{PROXY_SECRET}"', `"${secret}"`],
  ])
}

describe('behind the nginx of compose.yaml', () => {
  it.for(strangers(KEY))('an upload %s is refused', async ([, headers], context) => {
    const { app, url } = await startBehindNginx(context)
    const response = await fetch(`${url}/upload`, {
      method: 'POST',
      body: formOf({ 'a.png': makePicture() }),
      headers,
    })
    expect(response.status).toBe(401)
    expect(await app.files()).toEqual([])
  })

  it('the command is told that the password is missing while a large file is on its way', async context => {
    const { app, url } = await startBehindNginx(context)
    const cwd = await makeDirectory()
    await writeFile(join(cwd, 'a.png'), makePicture(30 * 1024 * 1024))
    const args = ['upload', '--quiet', '--retry-max-time', '0', '--server', url, 'a.png']
    const { code, stderr } = await runCli(args, { cwd })
    expect(code).toBe(5)
    expect(stderr).toMatch(/^a\.png: \S+ responded with 401: the user name and password/)
    expect(await app.files()).toEqual([])
  })

  it('an upload of 5 MB with the password is stored, and anybody can fetch it from the address in the answer', async context => {
    const { app, url } = await startBehindNginx(context)
    const picture = makePicture(5 * 1024 * 1024)
    const answer = await post(`${url}/upload`, {
      body: formOf({ 'a.png': picture }),
      headers: withPassword('open sesame'),
    })
    expect(answer).toMatchObject({ status: 200, success: true })
    expect(answer.result[0]).toContain(`${url}/files/Default/`)
    expect(picture.equals(await download(String(answer.result[0])))).toBe(true)
    expect(await app.files()).toHaveLength(1)
  })

  it('the exemption of loopback does not reach through the proxy, although it runs on this machine', async context => {
    const { app, url } = await startBehindNginx(context, 'a-secret-of-another-server')
    const answer = await post(`${url}/upload`, {
      body: formOf({ 'a.png': makePicture() }),
      headers: withPassword('open sesame'),
    })
    expect(answer).toMatchObject({ status: 401, code: 'unauthorized' })
    expect(await app.files()).toEqual([])
  })

  it('a forged X-Forwarded-For or Forwarded is replaced', async context => {
    const { app, url } = await startBehindNginx(context)
    const forged = {
      'X-Forwarded-For': '203.0.113.9',
      'X-Real-IP': '203.0.113.9',
      'X-Forwarded-Host': 'evil.example',
      'X-Upload-Key': 'wrong',
      Forwarded: 'for=203.0.113.9',
    }
    const answer = await post(`${url}/upload`, {
      body: formOf({ 'a.png': makePicture() }),
      headers: withPassword('open sesame', forged),
    })
    expect(answer).toMatchObject({ status: 200, result: [expect.stringContaining(`${url}/files/`)] })
    expect(app.log.find(line => line['stored'] === 1)).toMatchObject({ address: '127.0.0.1' })
    expect(app.rawLog()).not.toMatch(/203\.0\.113\.9|evil/)
  })

  it('a client behind a TLS proxy has its own address, which the TLS proxy adds', async context => {
    const trusting = (example: string) =>
      example.replace('set_real_ip_from 10.76.0.1', 'set_real_ip_from 127.0.0.1')
    const { app, url } = await startBehindNginx(context, SECRET, trusting)
    const headers = withPassword('open sesame', { 'X-Forwarded-For': '198.51.100.7, 203.0.113.9' })
    expect(await post(`${url}/upload`, { body: formOf({ 'a.png': makePicture() }), headers })).toMatchObject({
      status: 200,
    })
    expect(app.log.find(line => line['stored'] === 1)).toMatchObject({ address: '203.0.113.9' })
  })

  it('the heartbeat needs no password', async context => {
    const { url } = await startBehindNginx(context)
    for (const method of ['GET', 'POST']) {
      expect(await ask(url, method, '/heartbeat')).toMatchObject({ status: 200, body: ALIVE })
    }
  })

  it('a link to a private bucket needs no password', async context => {
    const bucket = await startStubBucket()
    const url = `http://127.0.0.1:${await findFreePorts()}`
    const options = { ...bucket.options, urlPrefix: undefined, link: 'redirect' }
    const app = await startApp({
      config: {
        ...configOf(url),
        providers: { s3: { private: options } },
      },
    })
    await startNginx(context, url, app.url, SECRET)
    const headers = withPassword('open sesame')
    const { result } = await post(`${url}/upload`, { body: formOf({ 'a.txt': 'hello' }), headers })
    expect(result[0]).toContain(`${url}/links/s3/private/`)
    expect((await download(String(result[0]))).toString()).toBe('hello')
    expect((await fetch(String(result[0]), { method: 'POST' })).status).toBe(403)
  })

  it('the request ID of nginx is in both logs and in the response', async context => {
    const { app, url, accessLog } = await startBehindNginx(context)
    const { headers } = await fetch(`${url}/files/Default/none.png`)
    const id = String(headers.get('x-request-id'))
    expect(id).toMatch(/^[\da-f]{32}$/)
    await expect.poll(accessLog).toContain(id)
    expect(app.log.find(line => line['requestId'] === id)).toMatchObject({ address: '127.0.0.1' })
  })

  it('attack: what is behind the open places hears a name or the password', async context => {
    const heard = await serve((_req, res) => res.end())
    const url = `http://127.0.0.1:${await findFreePorts()}`
    await startNginx(context, url, heard.origin, SECRET)
    const headers = withPassword('open sesame', { 'X-User': 'root', 'X-Proxy-Secret': 'mine' })
    const paths = [
      '/files/Default/a.png',
      '/links/s3/a/b',
      '/heartbeat',
      '/files/..%2fupload',
      '/upload/..%2fheartbeat',
    ]
    for (const path of paths) await ask(url, 'GET', path, { headers })
    await ask(url, 'POST', '/upload', { headers })
    const told = heard.requests.map(({ url: path, headers: sent }) => [
      path,
      sent.authorization,
      sent['x-user'],
    ])
    for (const one of told.slice(0, 3)) expect(one.slice(1)).toEqual([undefined, undefined])
    expect(told.map(([path]) => path)).toContain('/upload')
    expect(told.at(-1)).toEqual(['/upload', undefined, 'me'])
    expect(new Set(heard.requests.map(({ headers: sent }) => sent['x-proxy-secret']))).toEqual(
      new Set([SECRET]),
    )
  })

  it('the access log says who uploaded, and no log holds a key or the secret', async context => {
    const { app, url, accessLog } = await startBehindNginx(context)
    await post(`${url}/upload?key=${KEY}`, {
      body: formOf({ 'a.png': makePicture() }),
      headers: withPassword('open sesame'),
    })
    await expect.poll(accessLog).toMatch(/^127\.0\.0\.1 - me \[.*\] "POST \/upload" 200 /)
    for (const secret of [KEY, SECRET]) expect((await accessLog()) + app.rawLog()).not.toContain(secret)
  })
})

const SUB_PATH = new URL('../../docs/examples/nginx-subpath.conf', import.meta.url)

interface BelowPath {
  /** Default: the one of the server. */
  account?: string
  /** What else the server is told. */
  settings?: object
  /** Of the socket; default: that of everything. */
  folder?: string
}

/** nginx set up by the example for a path of a site, in front of a server on a Unix socket. */
async function startBelowPath(context: TestContext, { account, settings, folder }: BelowPath = {}) {
  needs(context, 'nginx', 'nginx-light')
  const url = `http://127.0.0.1:${await findFreePorts()}`
  const directory = await makeDirectory()
  const socket = join(folder ?? directory, 'upload.sock')
  const server = { host: socket, publicUrl: `${url}/img`, trustProxy: ['loopback'], key: KEY, ...settings }
  const app = await startApp({ directory, config: { server, auth: { maxFailures: 2 } } })
  const replacements: [string, string][] = [
    ['listen 80;', `listen ${new URL(url).host};`],
    ['/run/upload-server/upload.sock', socket],
    ['/var/log/nginx/access.log', join(directory, 'access.log')],
  ]
  if (account) await chmod(directory, 0o711)
  await writeNginxConfig(directory, await fill(SUB_PATH, replacements), account)
  const daemon = await startDaemon('nginx', ['-p', directory, '-c', 'nginx.conf', '-e', 'error.log'], {
    port: Number(new URL(url).port),
  })
  onTestFinished(daemon.stop)
  return { app, url: `${url}/img`, accessLog: () => readFile(join(directory, 'access.log'), 'utf8') }
}

describe('below a path of a site, over a Unix socket', () => {
  it('links have the path, and can be fetched; the key comes as Authorization', async context => {
    const { app, url, accessLog } = await startBelowPath(context)
    const picture = makePicture(2 * 1024 * 1024)
    const answer = await post(`${url}/upload`, {
      body: formOf({ 'a.png': picture }),
      headers: { Authorization: `Bearer ${KEY}` },
    })
    expect(answer).toMatchObject({ status: 200, success: true })
    expect(answer.result[0]).toContain(`${url}/files/Default/`)
    expect(picture.equals(await download(String(answer.result[0])))).toBe(true)
    expect((await download(`${url}/`)).toString()).toContain(`${url}/upload`)
    await expect.poll(accessLog).toContain('"POST /img/upload" 200 ')
    const id = String(answer.headers.get('x-request-id'))
    expect(id).toMatch(/^[\da-f]{32}$/)
    for (const log of [await accessLog(), app.rawLog()]) expect(log).toContain(id)
    expect((await accessLog()) + app.rawLog()).not.toContain(KEY)
  })

  it.for([
    ['of the server alone: nginx answers 502', {}, 502],
    ['of its group, by server.socketMode', { socketMode: '660' }, 200],
  ] as const)('nginx runs as www-data, and the socket is %s', async ([, settings, status], context) => {
    needsRoot(context, 'nginx runs as another account')
    const [, group] = /^www-data:[^:]*:(\d+):/m.exec(await readFile('/etc/group', 'utf8')) ?? []
    if (group === undefined) missing(context, 'needs the account www-data, as Debian has it')
    // As RuntimeDirectory= and Group= of systemd make it: what lies in the folder belongs to its group.
    const folder = await makeDirectory()
    await chown(folder, 0, Number(group))
    await chmod(folder, 0o2750)
    const { url } = await startBelowPath(context, { account: 'www-data', settings, folder })
    expect((await fetch(`${url}/heartbeat`)).status).toBe(status)
  })

  it('attack: nobody counts as a program of this machine, whatever nginx is told', async context => {
    const { app, url } = await startBelowPath(context)
    for (const headers of [
      {},
      { Host: 'localhost' },
      { 'X-Forwarded-For': '127.0.0.1' },
      { Forwarded: 'for=127.0.0.1' },
    ]) {
      const reply = await ask(url, 'POST', '/img/upload', { headers, body: '{"list":["/etc/hostname"]}' })
      expect(reply.status).toBe(401)
    }
    expect(await app.files()).toEqual(
      ['nginx.conf', 'nginx.pid', 'upload.sock', 'access.log', 'error.log'].sort(),
    )
  })
})

describe('attack: a proxy on this machine that marks nothing', () => {
  const unmarked = (url: string, headers = {}) =>
    ask(url, 'POST', '/upload', { headers, body: '{"list":["data:,hello"]}' })

  /** nginx with `proxy_pass` and nothing else, which sends its own Host and no header of its own, or with `directive`. */
  async function startUnmarked(context: TestContext, config: object, directive = '') {
    needs(context, 'nginx', 'nginx-light')
    const url = `http://127.0.0.1:${await findFreePorts()}`
    const directory = await makeDirectory()
    const app = await startApp({ config: { server: { key: KEY }, ...config } })
    const { host } = new URL(url)
    await writeNginxConfig(
      directory,
      `server { listen ${host}; ${directive} location / { proxy_pass ${app.url}; } }`,
    )
    const daemon = await startDaemon('nginx', ['-p', directory, '-c', 'nginx.conf', '-e', 'error.log'], {
      port: Number(new URL(url).port),
    })
    onTestFinished(daemon.stop)
    return { app, url }
  }

  it('can not be told from a program: SECURITY.md says so', async context => {
    const { url } = await startUnmarked(context, {})
    expect((await unmarked(url)).status).toBe(200)
    expect(await readFile(new URL('../../SECURITY.md', import.meta.url), 'utf8')).toContain(
      'auth.loopbackExempt',
    )
  })

  it('is another one when it passes on the Host that a stranger chooses', async context => {
    const { url } = await startUnmarked(context, {}, 'proxy_set_header Host $host;')
    expect((await unmarked(url, { Host: 'img.example.com' })).status).toBe(401)
    expect((await unmarked(url, { Host: '127.0.0.1' })).status).toBe(200)
    for (const file of ['SECURITY.md', 'docs/guides/reverse-proxy.md', 'README.md'])
      expect(await readFile(file, 'utf8')).toContain('auth.loopbackExempt')
  })

  it('lends nothing where auth.loopbackExempt is false', async context => {
    const auth = { loopbackExempt: false }
    const { url } = await startUnmarked(context, { auth }, 'proxy_set_header Host $host;')
    for (const headers of [{}, { Host: '127.0.0.1' }, { Host: 'localhost' }])
      expect((await unmarked(url, headers)).status).toBe(401)
  })
})
