import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { ask } from '../helpers/ask.ts'
import { withPassword, writeNginxConfig } from '../helpers/behind-proxy.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { needs } from '../helpers/needs.ts'
import { startApp } from '../helpers/start-app.ts'
import { startDaemon } from '../servers/daemon.ts'

const KEY = 'k3y-0f-the-server'
const SECRET = 's3cret-0f-the-proxy'
const FORM = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhi\r\n--b--\r\n'

const withProxy = (proxy: object, auth: object = {}, server: object = {}) => ({
  server: { key: KEY, ...server },
  auth: { reverseProxy: { from: ['127.0.0.1'], ...proxy }, ...auth },
  page: { history: true },
})

it('nginx names whoever has the password, whatever clients send', async context => {
  needs(context, 'nginx', 'nginx-light')
  const directory = await makeDirectory()
  const url = `http://127.0.0.1:${await findFreePorts()}`
  const app = await startApp({
    config: withProxy(
      {
        from: ['127.0.0.0/8'],
        userHeader: 'X-User',
        secretHeader: { name: 'X-Proxy-Secret', value: SECRET },
      },
      {},
      { publicUrl: url },
    ),
  })
  const password = createHash('sha1').update('open sesame').digest('base64')
  await writeFile(join(directory, 'htpasswd'), `me:{SHA}${password}\n`)
  const servers = `server {
    listen ${new URL(url).host};
    location / {
      auth_basic upload-server;
      auth_basic_user_file ${join(directory, 'htpasswd')};
      proxy_set_header X-User $remote_user;
      proxy_set_header X-Proxy-Secret ${SECRET};
      proxy_set_header Authorization "";
      proxy_pass ${app.url};
    }
  }`
  await writeNginxConfig(directory, servers)
  const daemon = await startDaemon('nginx', ['-p', directory, '-c', 'nginx.conf', '-e', 'error.log'], {
    port: Number(new URL(url).port),
  })
  onTestFinished(daemon.stop)
  const headers = withPassword('open sesame', {
    'Content-Type': 'multipart/form-data; boundary=b',
    'X-User': 'root',
    X_User: 'root',
    'X-Proxy-Secret': 'mine',
  })
  expect((await ask(url, 'POST', '/upload', { body: FORM })).status).toBe(401)
  expect(await ask(url, 'POST', '/upload', { headers, body: FORM })).toMatchObject({ status: 200 })
  const evil = { ...headers, Origin: 'https://evil.example' }
  expect(await ask(url, 'POST', '/upload', { headers: evil, body: FORM })).toMatchObject({ status: 403 })
  expect(app.log.filter(line => line['stored'] === 1)).toMatchObject([{ caller: 'proxy: me' }])
  expect(app.rawLog()).not.toContain(SECRET)
})
