import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, onTestFinished, type TestContext } from 'vitest'
import { fill, writeNginxConfig } from '../helpers/behind-proxy.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { needs } from '../helpers/needs.ts'
import { makePicture } from '../helpers/picture.ts'
import { startApp } from '../helpers/start-app.ts'
import { makeCertificate } from '../servers/certificate.ts'
import { startDaemon } from '../servers/daemon.ts'

const KEY = 'k3y-of-a-caller'
const EXAMPLE = new URL('../../docs/examples/nginx-tls.conf', import.meta.url)

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
  const example = await fill(EXAMPLE, [
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
  await writeNginxConfig(directory, example)
  const daemon = await startDaemon('nginx', ['-p', directory, '-c', 'nginx.conf', '-e', 'error.log'], {
    port: Number(new URL(url).port),
  })
  onTestFinished(daemon.stop)
  await writeFile(join(directory, 'a.png'), makePicture(2 * 1024 * 1024))
  /** @returns what curl prints, which trusts this certificate alone */
  const curl = async (...args: string[]) => {
    const options = ['-sS', '--cacert', certFile]
    const { stdout } = await promisify(execFile)('curl', [...options, ...args], { cwd: directory })
    return stdout
  }
  return { app, url, plain: `http://${plain}`, curl, directory, accessLog: () => readFile(log, 'utf8') }
}

it('the example for TLS stores what has a key, refuses what has none, and no log holds the key', async context => {
  const { app, url, curl, directory, accessLog } = await startBehindTls(context)
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
})

it('the example for TLS leads plain HTTP to HTTPS', async context => {
  const { url, plain, curl } = await startBehindTls(context)
  const target = await curl('-o', 'page', '-w', '%{redirect_url}', `${plain}/files/a%20b.png?x=1`)
  expect(target).toBe(`${url}/files/a%20b.png?x=1`)
})
