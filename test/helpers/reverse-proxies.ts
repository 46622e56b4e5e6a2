import { createHash } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, type TestContext } from 'vitest'
import { makeCertificate } from '../servers/certificate.ts'
import { startDaemon } from '../servers/daemon.ts'
import { serve } from '../uploader/sources/servers.ts'
import { makeDirectory } from './directory.ts'
import { findFreePorts } from './free-port.ts'
import { needs } from './needs.ts'
import { startApp, type TestApp, type TestAppOptions } from './start-app.ts'
import { startStubBucket } from './stub-bucket.ts'

export const KEY = 'k3y-of-a-program'
export const SECRET = 's3cret-that-only-the-proxy-kn0ws'
/** Of "open sesame", made quickly. */
const BCRYPT = '$2b$04$msq6PEIfnX26AL2hdkvTVOHTge2mgHipbtYPjMerEOpghPK.r0acK'
/** The header line of Alice, where the proxy asks for a password. */
export const BASIC = `Authorization: Basic ${Buffer.from('alice:open sesame').toString('base64')}`

/** A reverse proxy of the documents in front of the server. */
export interface Front {
  readonly app: TestApp
  /** Where clients find the server. */
  readonly url: string
  /** The path in it. */
  readonly below: string
  /** Where the proxy leads whoever comes without TLS. */
  readonly plain: string
  /** The header line of whoever may upload: Alice, or a program with the key where nobody signs in. */
  readonly right: string
  /** The line of somebody whom the authentication service knows and does not name. Undefined where there is none. */
  readonly nameless?: string
  accessLog(): Promise<string>
}

/** An example of the documents. */
export interface Example {
  readonly program: keyof typeof PROGRAMS
  /** In docs/examples. */
  readonly file: string
  /** The header in which the proxy names people. Default: it names nobody, and clients have upload keys. */
  readonly userHeader?: string
  /** Of `auth.reverseProxy`. Default: the header. */
  readonly preset?: string
  /** Where the authentication service is asked who somebody is. Default: the proxy asks for a password. */
  readonly service?: { readonly path: string; readonly at: string }
}

const OAUTH2 = { preset: 'oauth2-proxy-auth-request', userHeader: 'X-Auth-Request-User' }
const authentik = (name: string) => ({
  ...{ preset: 'authentik', userHeader: 'X-authentik-username' },
  service: { path: `/outpost.goauthentik.io/auth/${name}`, at: '127.0.0.1:9000' },
})
const authelia = (name: string) => ({
  ...{ preset: 'authelia', userHeader: 'Remote-User' },
  service: { path: `/api/authz/${name}`, at: '127.0.0.1:9091' },
})

export const NGINX: Example = { program: 'nginx', file: 'sign-in/nginx.conf', userHeader: 'X-User' }
export const NGINX_SSO: Example = {
  ...{ program: 'nginx', file: 'sign-in/nginx-oauth2-proxy.conf', ...OAUTH2 },
  service: { path: '/oauth2/auth', at: '127.0.0.1:4180' },
}
export const CADDY: Example = { program: 'caddy', file: 'sign-in/Caddyfile', userHeader: 'X-User' }
export const APACHE: Example = { program: 'apache', file: 'sign-in/apache.conf', userHeader: 'X-User' }
export const SUB_PATH: Example = { program: 'nginx', file: 'nginx-subpath.conf' }
export const TLS: Example = { program: 'nginx', file: 'nginx-tls.conf' }
export const EXAMPLES: readonly Example[] = [
  ...[NGINX, NGINX_SSO, CADDY, APACHE, SUB_PATH, TLS],
  { program: 'nginx', file: 'sign-in/nginx-authelia.conf', ...authelia('auth-request') },
  { program: 'nginx', file: 'sign-in/nginx-authentik.conf', ...authentik('nginx') },
  { program: 'caddy', file: 'sign-in/Caddyfile-authelia', ...authelia('forward-auth') },
  { program: 'caddy', file: 'sign-in/Caddyfile-authentik', ...authentik('caddy') },
]

/** Where a proxy listens, and the folder for everything that it writes. */
interface Place {
  readonly directory: string
  readonly port: number
  /** Of nginx. Default: root. */
  readonly account?: string
}

const APACHE_MODULES = [
  ...['mpm_event', 'authn_core', 'authn_file', 'authz_core', 'authz_user', 'auth_basic', 'headers'],
  ...['proxy', 'proxy_http', 'socache_shmcb', 'ssl', 'unique_id'],
]

const PROGRAMS = {
  nginx: { command: 'nginx', debianPackage: 'nginx-light', run: runNginx },
  caddy: {
    ...{ command: 'caddy', debianPackage: 'caddy' },
    async run(config: string, { directory, port }: Place) {
      const file = join(directory, 'Caddyfile')
      await writeFile(file, `{\nadmin off\n}\n${config}`)
      const env = [`PROXY_SECRET=${SECRET}`, `XDG_DATA_HOME=${directory}`, `XDG_CONFIG_HOME=${directory}`]
      const args = [...env, 'caddy', 'run', '--config', file, '--adapter', 'caddyfile']
      onTestFinished((await startDaemon('env', args, { port })).stop)
    },
  },
  apache: {
    ...{ command: 'apache2', debianPackage: 'apache2' },
    async run(config: string, { directory, port }: Place) {
      await mkdir(join(directory, 'locks'))
      const file = join(directory, 'httpd.conf')
      const lines = [
        ...[`ServerRoot ${directory}`, 'ServerName localhost', `Listen 127.0.0.1:${port}`],
        ...[`PidFile ${directory}/httpd.pid`, `Mutex file:${directory}/locks`],
        ...APACHE_MODULES.map(name => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`),
        ...[`ErrorLog ${directory}/error.log`, config],
      ]
      await writeFile(file, `${lines.join('\n')}\n`)
      onTestFinished((await startDaemon('apache2', ['-f', file, '-DFOREGROUND'], { port })).stop)
    },
  },
}

/** Runs nginx with the servers of an example until the test is over; everything that it writes lies in the folder. */
export async function runNginx(servers: string, { directory, port, account = 'root' }: Place): Promise<void> {
  await mkdir(join(directory, 'tmp'))
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    name => `${name}_temp_path tmp/${name};`,
  )
  const user = userInfo().uid === 0 ? `user ${account};` : ''
  const http = `access_log off; ${temporary.join(' ')}\n${servers}\n`
  await writeFile(
    join(directory, 'nginx.conf'),
    `${user} daemon off; pid nginx.pid; events {} http { ${http} }\n`,
  )
  const args = ['-p', directory, '-c', 'nginx.conf', '-e', 'error.log']
  onTestFinished((await startDaemon('nginx', args, { port })).stop)
}

/** What an example has of other machines. */
const ELSEWHERE = /:36677|10\.77\.|letsencrypt|\/var\/log|\/etc\/(?:nginx|apache2)|"SECRET"|HASH/

/** A file of docs/examples without its comments. */
export async function readExample(file: string): Promise<string> {
  const example = await readFile(new URL(`../../docs/examples/${file}`, import.meta.url), 'utf8')
  return example.replace(/^\s*#.*\n/gm, '')
}

/** An example with the places of this machine in it, and none of another one. */
export function fill(example: string, places: Readonly<Record<string, string>>): string {
  const escaped = Object.keys(places).map(place => place.replace(/[^\w/: -]/g, '\\$&'))
  const known = new RegExp(escaped.join('|'), 'g')
  expect(example.replace(known, '')).not.toMatch(ELSEWHERE)
  return example.replace(known, place => places[place] ?? '')
}

export interface Change {
  /** Makes another example of it, such as one that forgets a line. */
  readonly example?: (example: string) => string
  /** Of the server, in place of what the document says. */
  readonly config?: { readonly server?: object; readonly auth?: object; readonly page?: object }
  /** Of the site. Default: its IP address. */
  readonly name?: string
  /** Of the socket. Default: the one of everything. */
  readonly folder?: string
  readonly account?: string
}

/** Starts a proxy of an example, in front of the server as its document sets it up. */
export async function startFront(one: Example, context: TestContext, change: Change = {}): Promise<Front> {
  const { file, userHeader, preset, service } = one
  const program = PROGRAMS[one.program]
  needs(context, program.command, program.debianPackage)
  needs(context, 'openssl', 'openssl')
  const directory = await makeDirectory()
  const [port, plainPort] = [await findFreePorts(), await findFreePorts()]
  const example = await readExample(file)
  const isTls = /listen 443|VirtualHost \*:443/.test(example)
  const [site, plain] = [`127.0.0.1:${port}`, `127.0.0.1:${isTls ? plainPort : port}`]
  const below = one === SUB_PATH ? '/img' : ''
  const url = `http${isTls ? 's' : ''}://${change.name ?? '127.0.0.1'}:${port}${below}`
  const socket = join(change.folder ?? directory, 'upload.sock')

  const secretHeader = { name: 'X-Proxy-Secret', value: SECRET }
  const reverseProxy = { from: ['127.0.0.1'], secretHeader, ...(preset ? { preset } : { userHeader }) }
  const bucket = { ...(await startStubBucket()).options, urlPrefix: undefined, link: 'redirect' }
  const app = await startApp({
    config: {
      auth: userHeader ? { reverseProxy } : { loopbackExempt: one === SUB_PATH },
      ...change.config,
      server: {
        ...{ key: KEY, publicUrl: url, trustProxy: ['loopback'], ...change.config?.server },
        ...(one === SUB_PATH && { host: socket }),
      },
      default: 'local/Default',
      providers: {
        local: { Default: { directory: 'files', serve: true } },
        s3: { private: bucket, callers: { ...bucket, linkAccess: 'callers' } },
      },
    },
  } satisfies TestAppOptions)

  const [log, passwords] = [join(directory, 'access.log'), join(directory, 'htpasswd')]
  await writeFile(passwords, `alice:{SHA}${createHash('sha1').update('open sesame').digest('base64')}\n`)
  const { certFile, keyFile } = makeCertificate(directory)
  const behind = one === SUB_PATH ? '' : new URL(app.url).host
  const certificates = '/etc/letsencrypt/live/img.example.com'
  const config = fill(example, {
    ...{ 'listen 80;': `listen ${plain};`, 'listen 443 ssl;': `listen ${site} ssl;` },
    ...{ 'listen [::]:80;': '', 'listen [::]:443 ssl;': '', '<VirtualHost *:443>': `<VirtualHost ${site}>` },
    ...{ 'https://img.example.com': url, 'img.example.com {': `${url} {` },
    ...{ [`${certificates}/fullchain.pem`]: certFile, [`${certificates}/privkey.pem`]: keyFile },
    ...Object.fromEntries(['nginx', 'caddy', 'apache2'].map(name => [`/var/log/${name}/access.log`, log])),
    ...{ '/etc/nginx/htpasswd': passwords, '/etc/apache2/upload-server.htpasswd': passwords },
    ...{ 'me HASH': `alice ${BCRYPT}`, '"SECRET"': `"${SECRET}"`, '"${PROXY_SECRET}"': `"${SECRET}"` },
    ...{ '127.0.0.1:36677': behind, 'upload-server:36677': behind },
    ...{ '/run/upload-server/upload.sock': socket },
    ...(service && { [service.at]: await startAuthService(service.path, userHeader) }),
  })
  const { account } = change
  await program.run(change.example?.(config) ?? config, { directory, port, ...(account && { account }) })
  const key = { right: `Authorization: Bearer ${KEY}` }
  const sessions = { right: 'Cookie: session=alice', nameless: 'Cookie: session=nameless' }
  return {
    ...{ app, url, below, plain: `http://${plain}` },
    ...(!userHeader ? key : service ? sessions : { right: BASIC }),
    accessLog: () => readFile(log, 'utf8'),
  }
}

/** Of Alice, who has signed in: one for each way in which browsers send cookies. */
const COOKIES = [
  'session=alice; Path=/',
  'session_lax=alice; Path=/; SameSite=Lax; Secure',
  'session_none=alice; Path=/; SameSite=None; Secure',
]

/** An authentication service that finds a session in a cookie, as oauth2-proxy and Authelia do. @returns `host:port` */
async function startAuthService(path: string, header = ''): Promise<string> {
  const { origin } = await serve((req, res) => {
    if (req.url?.split('?')[0] !== path)
      return void res.writeHead(200, { 'Content-Length': 7, 'Set-Cookie': COOKIES }).end('sign in')
    const [, name] = /(?:^|; )session\w*=(\w+)/.exec(req.headers.cookie ?? '') ?? []
    if (name === undefined) return void res.writeHead(401, { 'Content-Length': 0 }).end()
    res.writeHead(202, { 'Content-Length': 0, ...(name !== 'nameless' && { [header]: name }) }).end()
  })
  return new URL(origin).host
}
