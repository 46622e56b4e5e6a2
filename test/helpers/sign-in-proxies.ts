import { createHash } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { expect, onTestFinished, type TestContext } from 'vitest'
import { startDaemon } from '../servers/daemon.ts'
import { serve } from '../uploader/sources/servers.ts'
import { fill, writeNginxConfig } from './behind-proxy.ts'
import { makeDirectory } from './directory.ts'
import { findFreePorts } from './free-port.ts'
import { needs } from './needs.ts'
import { startApp, type TestApp } from './start-app.ts'
import { startStubBucket } from './stub-bucket.ts'

export const KEY = 'k3y-of-a-program'
export const SECRET = 's3cret-that-only-the-proxy-kn0ws'
/** Of "open sesame", made quickly. */
const BCRYPT = '$2b$04$msq6PEIfnX26AL2hdkvTVOHTge2mgHipbtYPjMerEOpghPK.r0acK'

/** A reverse proxy of the documents in front of the server, which knows Alice. */
export interface SignIn {
  readonly app: TestApp
  /** Of the proxy. */
  readonly url: string
  /** The header line that makes a request one of Alice. */
  readonly alice: string
  /** The same for a session of the authentication service that it doesn't name. Undefined if there can't be one. */
  readonly nameless?: string
  accessLog(): Promise<string>
}

/** A proxy that an example sets up. */
export interface Example {
  /** In docs/examples/sign-in. */
  readonly file: string
  /** The header in which the proxy names people. */
  readonly userHeader: string
  start(context: TestContext, change?: Change): Promise<SignIn>
}

/** Makes another example of one, such as one that forgets a line. */
export type Change = (example: string) => string

/** The header line of Alice, where the proxy asks for a password. */
export const BASIC = `Authorization: Basic ${Buffer.from('alice:open sesame').toString('base64')}`
const byPassword = { userHeader: 'X-User' }

/** The server as docs/guides/sign-in.md sets it up. */
async function startServer(proxy: object) {
  const url = `http://127.0.0.1:${await findFreePorts()}`
  const secretHeader = { name: 'X-Proxy-Secret', value: SECRET }
  const bucket = await startStubBucket()
  const options = { ...bucket.options, urlPrefix: undefined, link: 'redirect' }
  const app = await startApp({
    config: {
      server: { key: KEY, publicUrl: url, trustProxy: ['loopback'] },
      auth: { reverseProxy: { from: ['127.0.0.1'], secretHeader, ...proxy } },
      default: 'local/Default',
      providers: {
        local: { Default: { directory: 'files', serve: true } },
        s3: { private: options, callers: { ...options, linkAccess: 'callers' } },
      },
    },
  })
  const directory = await makeDirectory()
  return { app, url, directory, site: new URL(url).host, behind: new URL(app.url).host }
}

const example = (file: string) => new URL(`../../docs/examples/sign-in/${file}`, import.meta.url)
const port = (url: string) => Number(new URL(url).port)

async function runNginx(url: string, directory: string, config: string): Promise<void> {
  await writeNginxConfig(directory, config)
  const args = ['-p', directory, '-c', 'nginx.conf', '-e', 'error.log']
  const daemon = await startDaemon('nginx', args, { port: port(url) })
  onTestFinished(daemon.stop)
}

async function runCaddy(url: string, directory: string, config: string): Promise<void> {
  await writeFile(join(directory, 'Caddyfile'), `{\nadmin off\n}\n${config}`)
  const env = [`PROXY_SECRET=${SECRET}`, `XDG_DATA_HOME=${directory}`, `XDG_CONFIG_HOME=${directory}`]
  const run = ['caddy', 'run', '--config', join(directory, 'Caddyfile'), '--adapter', 'caddyfile']
  const daemon = await startDaemon('env', [...env, ...run], { port: port(url) })
  onTestFinished(daemon.stop)
}

async function writePassword(directory: string): Promise<string> {
  const file = join(directory, 'htpasswd')
  const hash = createHash('sha1').update('open sesame').digest('base64')
  await writeFile(file, `alice:{SHA}${hash}\n`)
  return file
}

/** An authentication service that finds a session in a cookie, as oauth2-proxy and Authelia do. */
async function startAuthService(path: string, header: string) {
  return serve((req: IncomingMessage, res: ServerResponse) => {
    if (req.url?.split('?')[0] !== path)
      return void res.writeHead(200, { 'Content-Length': 7 }).end('sign in')
    const [, name] = /(?:^|; )session=(\w+)/.exec(req.headers.cookie ?? '') ?? []
    if (name === undefined) return void res.writeHead(401, { 'Content-Length': 0 }).end()
    res.writeHead(202, { 'Content-Length': 0, ...(name !== 'nameless' && { [header]: name }) }).end()
  })
}

const asIs: Change = text => text

export const NGINX: Example = {
  ...byPassword,
  file: 'nginx.conf',
  async start(context, change = asIs) {
    needs(context, 'nginx', 'nginx-light')
    const { app, url, directory, site, behind } = await startServer({ userHeader: 'X-User' })
    const log = join(directory, 'access.log')
    const config = await fill(example('nginx.conf'), [
      ['listen 80;', `listen ${site};`],
      ['server upload-server:36677;', `server ${behind};`],
      ['/etc/nginx/htpasswd', await writePassword(directory)],
      ['/var/log/nginx/access.log', log],
      ['"$' + '{PROXY_SECRET}"', `"${SECRET}"`],
    ])
    await runNginx(url, directory, change(config))
    return { app, url, alice: BASIC, accessLog: () => readFile(log, 'utf8') }
  },
}

interface Service {
  preset: string
  userHeader: string
  /** Of the request that asks who somebody is. */
  path: string
  /** The address in the example. */
  at: string
}

/** nginx with `auth_request`, for one authentication service. */
function nginxWith(file: string, { preset, userHeader, path, at }: Service): Example {
  return {
    userHeader,
    file,
    async start(context, change = asIs) {
      needs(context, 'nginx', 'nginx-light')
      const { app, url, directory, site, behind } = await startServer({ preset })
      const auth = await startAuthService(path, userHeader)
      const log = join(directory, 'access.log')
      const config = await fill(example(file), [
        ['server 127.0.0.1:36677;', `server ${behind};`],
        ['listen 443 ssl;', `listen ${site};`],
        ['listen [::]:443 ssl;', ''],
        ['ssl_certificate /etc/letsencrypt/live/img.example.com/fullchain.pem;', ''],
        ['ssl_certificate_key /etc/letsencrypt/live/img.example.com/privkey.pem;', ''],
        ['/var/log/nginx/access.log', log],
        ['"SECRET"', `"${SECRET}"`],
      ])
      // With its end, because the server may have got a port that begins with the same digits.
      const here = config.replace(`server ${at};`, `server ${new URL(auth.origin).host};`)
      expect(here).toContain(new URL(auth.origin).host)
      await runNginx(url, directory, change(here))
      const cookies = { alice: 'Cookie: session=alice', nameless: 'Cookie: session=nameless' }
      return { app, url, ...cookies, accessLog: () => readFile(log, 'utf8') }
    },
  }
}

export const NGINX_SSO = nginxWith('nginx-oauth2-proxy.conf', {
  preset: 'oauth2-proxy-auth-request',
  userHeader: 'X-Auth-Request-User',
  path: '/oauth2/auth',
  at: '127.0.0.1:4180',
})

export const NGINX_AUTHELIA = nginxWith('nginx-authelia.conf', {
  preset: 'authelia',
  userHeader: 'Remote-User',
  path: '/api/authz/auth-request',
  at: '127.0.0.1:9091',
})

export const NGINX_AUTHENTIK = nginxWith('nginx-authentik.conf', {
  preset: 'authentik',
  userHeader: 'X-authentik-username',
  path: '/outpost.goauthentik.io/auth/nginx',
  at: '127.0.0.1:9000',
})

export const CADDY: Example = {
  ...byPassword,
  file: 'Caddyfile',
  async start(context, change = asIs) {
    needs(context, 'caddy', 'caddy')
    const { app, url, directory, behind } = await startServer({ userHeader: 'X-User' })
    const log = join(directory, 'access.log')
    const config = await fill(example('Caddyfile'), [
      ['img.example.com {', `${url} {`],
      ['/var/log/caddy/access.log', log],
      ['me HASH', `alice ${BCRYPT}`],
    ])
    await runCaddy(url, directory, change(config.replaceAll('127.0.0.1:36677', behind)))
    return { app, url, alice: BASIC, accessLog: () => readFile(log, 'utf8') }
  },
}

/** Caddy with `forward_auth`, for one authentication service. */
function caddyWith(file: string, { preset, userHeader, path, at }: Service): Example {
  return {
    userHeader,
    file,
    async start(context, change = asIs) {
      needs(context, 'caddy', 'caddy')
      const { app, url, directory, behind } = await startServer({ preset })
      const auth = await startAuthService(path, userHeader)
      const log = join(directory, 'access.log')
      const config = await fill(example(file), [
        ['img.example.com {', `${url} {`],
        ['/var/log/caddy/access.log', log],
      ])
      // In this order, because the service may have got port 36677.
      const here = config.replaceAll('127.0.0.1:36677', behind).replaceAll(at, new URL(auth.origin).host)
      await runCaddy(url, directory, change(here))
      const cookies = { alice: 'Cookie: session=alice', nameless: 'Cookie: session=nameless' }
      return { app, url, ...cookies, accessLog: () => readFile(log, 'utf8') }
    },
  }
}

export const CADDY_SSO = caddyWith('Caddyfile-authelia', {
  preset: 'authelia',
  userHeader: 'Remote-User',
  path: '/api/authz/forward-auth',
  at: '127.0.0.1:9091',
})

export const CADDY_AUTHENTIK = caddyWith('Caddyfile-authentik', {
  preset: 'authentik',
  userHeader: 'X-authentik-username',
  path: '/outpost.goauthentik.io/auth/caddy',
  at: '127.0.0.1:9000',
})

const APACHE_MODULES = [
  ...['mpm_event', 'authn_core', 'authn_file', 'authz_core', 'authz_user', 'auth_basic', 'headers'],
  ...['proxy', 'proxy_http', 'unique_id'],
]

export const APACHE: Example = {
  ...byPassword,
  file: 'apache.conf',
  async start(context, change = asIs) {
    needs(context, 'apache2', 'apache2')
    const { app, url, directory, site, behind } = await startServer({ userHeader: 'X-User' })
    const log = join(directory, 'access.log')
    const config = await fill(example('apache.conf'), [
      ['<VirtualHost *:443>', `<VirtualHost ${site}>`],
      ['/var/log/apache2/access.log', log],
      ['SSLEngine on', ''],
      ['SSLCertificateFile /etc/letsencrypt/live/img.example.com/fullchain.pem', ''],
      ['SSLCertificateKeyFile /etc/letsencrypt/live/img.example.com/privkey.pem', ''],
      ['"SECRET"', `"${SECRET}"`],
      ['/etc/apache2/upload-server.htpasswd', await writePassword(directory)],
    ])
    await mkdir(join(directory, 'locks'))
    const file = join(directory, 'httpd.conf')
    const lines = [
      `ServerRoot ${directory}`,
      'ServerName localhost',
      `Listen ${site}`,
      `PidFile ${directory}/httpd.pid`,
      `Mutex file:${directory}/locks`,
      ...APACHE_MODULES.map(name => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`),
      `ErrorLog ${directory}/error.log`,
      change(config.replaceAll('127.0.0.1:36677', behind)),
    ]
    await writeFile(file, `${lines.join('\n')}\n`)
    const daemon = await startDaemon('apache2', ['-f', file, '-DFOREGROUND'], { port: port(url) })
    onTestFinished(daemon.stop)
    return { app, url, alice: BASIC, accessLog: () => readFile(log, 'utf8') }
  },
}
