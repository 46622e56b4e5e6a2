import { chmod, chown, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, type TestContext } from 'vitest'
import { ask } from '../helpers/ask.ts'
import { fill, runNginx } from '../helpers/behind-proxy.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { download, formOf, post } from '../helpers/form.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { missing, needs, needsRoot } from '../helpers/needs.ts'
import { makePicture } from '../helpers/picture.ts'
import { runProgram } from '../helpers/run-program.ts'
import { startApp } from '../helpers/start-app.ts'
import { makeCertificate } from '../servers/certificate.ts'

const KEY = 'k3y-of-a-program'

const SUB_PATH = new URL('../../docs/examples/nginx-subpath.conf', import.meta.url)
const TLS = new URL('../../docs/examples/nginx-tls.conf', import.meta.url)

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
  await runNginx(directory, await fill(SUB_PATH, replacements), Number(new URL(url).port), account)
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

it('attack: a proxy on this machine that marks nothing can not be told from a program: SECURITY.md says so', async context => {
  needs(context, 'nginx', 'nginx-light')
  const port = await findFreePorts()
  const app = await startApp({ config: { server: { key: KEY } } })
  // It sends its own Host, and no header of its own.
  const servers = `server { listen 127.0.0.1:${port}; location / { proxy_pass ${app.url}; } }`
  await runNginx(await makeDirectory(), servers, port)
  const body = '{"list":["data:,hello"]}'
  expect((await ask(`http://127.0.0.1:${port}`, 'POST', '/upload', { body })).status).toBe(200)
  for (const file of ['SECURITY.md', 'docs/guides/reverse-proxy.md', 'README.md'])
    expect(await readFile(file, 'utf8')).toContain('auth.loopbackExempt')
})

/** nginx set up by the example, with a certificate for 127.0.0.1, in front of a server with the settings of its page. */
async function startBehindTls(context: TestContext) {
  for (const [program, debianPackage] of [
    ['nginx', 'nginx-light'],
    ['openssl', 'openssl'],
    ['curl', 'curl'],
  ] as const)
    needs(context, program, debianPackage)
  const directory = await makeDirectory()
  const { certFile, keyFile } = makeCertificate(directory)
  const [plain, site] = [`127.0.0.1:${await findFreePorts()}`, `127.0.0.1:${await findFreePorts()}`]
  const url = `https://${site}`
  const app = await startApp({
    config: {
      server: { publicUrl: url, trustProxy: ['loopback'], key: KEY },
      auth: { loopbackExempt: false },
    },
  })
  const log = join(directory, 'access.log')
  const example = await fill(TLS, [
    ['server 127.0.0.1:36677;', `server ${new URL(app.url).host};`],
    ['listen 80;', `listen ${plain};`],
    ['listen [::]:80;', ''],
    ['listen 443 ssl;', `listen ${site} ssl;`],
    ['listen [::]:443 ssl;', ''],
    ['return 301 https://img.example.com', `return 301 ${url}`],
    ['/var/log/nginx/access.log', log],
    ['/var/log/nginx/access.log', log],
    ['/etc/letsencrypt/live/img.example.com/fullchain.pem', certFile],
    ['/etc/letsencrypt/live/img.example.com/privkey.pem', keyFile],
  ])
  await runNginx(directory, example, Number(new URL(url).port))
  await writeFile(join(directory, 'a.png'), makePicture(2 * 1024 * 1024))
  /** @returns what curl prints, which trusts this certificate alone */
  const curl = async (...args: string[]) => {
    const options = ['-sS', '--cacert', certFile]
    const { stdout } = await runProgram('curl', [...options, ...args], { cwd: directory })
    return stdout
  }
  return { app, url, plain: `http://${plain}`, curl, directory, accessLog: () => readFile(log, 'utf8') }
}

it('the example for TLS stores what has a key, refuses what has none, and no log holds the key', async context => {
  const { app, url, plain, curl, directory, accessLog } = await startBehindTls(context)
  const link = await curl('-H', `X-Upload-Key: ${KEY}`, '-F', 'file=@a.png', `${url}/upload?reply=text`)
  expect(link).toContain(`${url}/files/Default/`)
  await curl('-o', 'b.png', link.trim())
  const [sent, stored] = await Promise.all(['a.png', 'b.png'].map(name => readFile(join(directory, name))))
  expect(stored?.equals(sent ?? Buffer.alloc(0))).toBe(true)
  for (const header of ['X-Forwarded-For: 127.0.0.1', 'Host: localhost', 'Forwarded: for=127.0.0.1'])
    expect(await curl('-H', header, '-F', 'file=@a.png', `${url}/upload`)).toContain('"unauthorized"')
  expect(await curl('-F', 'file=@a.png', `${url}/upload?reply=text&key=${KEY}`)).toBe(link)
  await expect.poll(accessLog).toContain('"POST /upload" 200 ')
  expect((await accessLog()) + app.rawLog()).not.toContain(KEY)
  const [, id = ''] = /x-request-id: ([\da-f]{32})/i.exec(await curl('-I', `${url}/files/none`)) ?? []
  await expect.poll(accessLog).toContain(`"HEAD /files/none" 404`)
  for (const log of [await accessLog(), app.rawLog()]) expect(log).toContain(id)
  expect(id).not.toBe('')
  const target = await curl('-o', 'page', '-w', '%{redirect_url}', `${plain}/files/a%20b.png?x=1`)
  expect(target, 'plain HTTP leads to HTTPS').toBe(`${url}/files/a%20b.png?x=1`)
})
