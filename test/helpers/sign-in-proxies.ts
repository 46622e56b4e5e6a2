import { createHash } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { expect, onTestFinished, type TestContext } from 'vitest'
import { startDaemon } from '../servers/daemon.ts'
import { serve } from '../uploader/sources/servers.ts'
import { fill, runNginx } from './behind-proxy.ts'
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
  readonly program: keyof typeof PROGRAMS
  /** In docs/examples/sign-in. */
  readonly file: string
  /** The header in which the proxy names people. */
  readonly userHeader: string
  /** Of `auth.reverseProxy`. Default: the header. */
  readonly preset?: string
  /** Where the authentication service is asked who somebody is. Default: the proxy asks for a password. */
  readonly service?: { readonly path: string; readonly at: string }
}

/** The header line of Alice, where the proxy asks for a password. */
export const BASIC = `Authorization: Basic ${Buffer.from('alice:open sesame').toString('base64')}`

const AUTHELIA = { preset: 'authelia', userHeader: 'Remote-User' }
const AUTHENTIK = { preset: 'authentik', userHeader: 'X-authentik-username' }
const OAUTH2 = { preset: 'oauth2-proxy-auth-request', userHeader: 'X-Auth-Request-User' }
const outpost = (name: string) => ({ path: `/outpost.goauthentik.io/auth/${name}`, at: '127.0.0.1:9000' })
const authelia = (name: string) => ({ path: `/api/authz/${name}`, at: '127.0.0.1:9091' })
const nginx = { program: 'nginx' } as const
const caddy = { program: 'caddy' } as const

export const NGINX: Example = { ...nginx, file: 'nginx.conf', userHeader: 'X-User' }
export const NGINX_SSO: Example = {
  ...{ ...nginx, ...OAUTH2, file: 'nginx-oauth2-proxy.conf' },
  service: { path: '/oauth2/auth', at: '127.0.0.1:4180' },
}
export const CADDY: Example = { ...caddy, file: 'Caddyfile', userHeader: 'X-User' }
export const CADDY_SSO: Example = {
  ...{ ...caddy, ...AUTHELIA, file: 'Caddyfile-authelia', service: authelia('forward-auth') },
}
export const APACHE: Example = { program: 'apache', file: 'apache.conf', userHeader: 'X-User' }
export const EXAMPLES: readonly Example[] = [
  ...[NGINX, NGINX_SSO, CADDY, CADDY_SSO, APACHE],
  { ...nginx, ...AUTHELIA, file: 'nginx-authelia.conf', service: authelia('auth-request') },
  { ...nginx, ...AUTHENTIK, file: 'nginx-authentik.conf', service: outpost('nginx') },
  { ...caddy, ...AUTHENTIK, file: 'Caddyfile-authentik', service: outpost('caddy') },
]

/** Of the proxy, the server and the files of an example. */
interface Place {
  readonly url: string
  readonly port: number
  /** `host:port` of the proxy. */
  readonly site: string
  /** `host:port` of the server. */
  readonly behind: string
  readonly directory: string
  readonly log: string
  readonly passwords: string
}

type Replacements = readonly (readonly [wanted: string, replacement: string])[]

interface Program {
  readonly debianPackage: string
  replacements(place: Place, one: Example): Replacements
  /** Runs it until the test is over. @param config the example with the places of this machine in it */
  run(place: Place, config: string): Promise<void>
}

const APACHE_MODULES = [
  ...['mpm_event', 'authn_core', 'authn_file', 'authz_core', 'authz_user', 'auth_basic', 'headers'],
  ...['proxy', 'proxy_http', 'unique_id'],
]
const LETSENCRYPT = '/etc/letsencrypt/live/img.example.com'

const PROGRAMS = {
  nginx: {
    debianPackage: 'nginx-light',
    replacements: ({ site, behind, log, passwords }, { service }) => [
      ['/var/log/nginx/access.log', log],
      ...(service
        ? ([
            ['server 127.0.0.1:36677;', `server ${behind};`],
            ['listen 443 ssl;', `listen ${site};`],
            ['listen [::]:443 ssl;', ''],
            [`ssl_certificate ${LETSENCRYPT}/fullchain.pem;`, ''],
            [`ssl_certificate_key ${LETSENCRYPT}/privkey.pem;`, ''],
            ['"SECRET"', `"${SECRET}"`],
          ] as const)
        : ([
            ['server upload-server:36677;', `server ${behind};`],
            ['listen 80;', `listen ${site};`],
            ['/etc/nginx/htpasswd', passwords],
            ['"$' + '{PROXY_SECRET}"', `"${SECRET}"`],
          ] as const)),
    ],
    run: ({ directory, port }, config) => runNginx(directory, config, port),
  },
  caddy: {
    debianPackage: 'caddy',
    replacements: ({ url, log }, { service }) => [
      ['img.example.com {', `${url} {`],
      ['/var/log/caddy/access.log', log],
      ...(service ? [] : [['me HASH', `alice ${BCRYPT}`] as const]),
    ],
    async run({ directory, port }, config) {
      const file = join(directory, 'Caddyfile')
      await writeFile(file, `{\nadmin off\n}\n${config}`)
      const env = [`PROXY_SECRET=${SECRET}`, `XDG_DATA_HOME=${directory}`, `XDG_CONFIG_HOME=${directory}`]
      const args = [...env, 'caddy', 'run', '--config', file, '--adapter', 'caddyfile']
      onTestFinished((await startDaemon('env', args, { port })).stop)
    },
  },
  apache: {
    debianPackage: 'apache2',
    replacements: ({ site, log, passwords }) => [
      ['<VirtualHost *:443>', `<VirtualHost ${site}>`],
      ['/var/log/apache2/access.log', log],
      ['SSLEngine on', ''],
      [`SSLCertificateFile ${LETSENCRYPT}/fullchain.pem`, ''],
      [`SSLCertificateKeyFile ${LETSENCRYPT}/privkey.pem`, ''],
      ['"SECRET"', `"${SECRET}"`],
      ['/etc/apache2/upload-server.htpasswd', passwords],
    ],
    async run({ directory, site, port }, config) {
      await mkdir(join(directory, 'locks'))
      const file = join(directory, 'httpd.conf')
      const lines = [
        ...[`ServerRoot ${directory}`, 'ServerName localhost', `Listen ${site}`],
        ...[`PidFile ${directory}/httpd.pid`, `Mutex file:${directory}/locks`],
        ...APACHE_MODULES.map(name => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`),
        ...[`ErrorLog ${directory}/error.log`, config],
      ]
      await writeFile(file, `${lines.join('\n')}\n`)
      onTestFinished((await startDaemon('apache2', ['-f', file, '-DFOREGROUND'], { port })).stop)
    },
  },
} satisfies Record<string, Program>

/**
 * Starts a proxy of an example, in front of the server as docs/guides/sign-in.md sets it up.
 *
 * @param change makes another example of it, such as one that forgets a line
 */
export async function startExample(
  one: Example,
  context: TestContext,
  change: (example: string) => string = text => text,
): Promise<SignIn> {
  const { file, userHeader, preset, service } = one
  const program: Program = PROGRAMS[one.program]
  needs(context, one.program === 'apache' ? 'apache2' : one.program, program.debianPackage)
  const port = await findFreePorts()
  const url = `http://127.0.0.1:${port}`
  const secretHeader = { name: 'X-Proxy-Secret', value: SECRET }
  const bucket = await startStubBucket()
  const s3 = { ...bucket.options, urlPrefix: undefined, link: 'redirect' }
  const app = await startApp({
    config: {
      server: { key: KEY, publicUrl: url, trustProxy: ['loopback'] },
      auth: {
        reverseProxy: { from: ['127.0.0.1'], secretHeader, ...(preset ? { preset } : { userHeader }) },
      },
      default: 'local/Default',
      providers: {
        local: { Default: { directory: 'files', serve: true } },
        s3: { private: s3, callers: { ...s3, linkAccess: 'callers' } },
      },
    },
  })
  const directory = await makeDirectory()
  const [log, passwords] = [join(directory, 'access.log'), join(directory, 'htpasswd')]
  await writeFile(passwords, `alice:{SHA}${createHash('sha1').update('open sesame').digest('base64')}\n`)
  const [site, behind] = [new URL(url).host, new URL(app.url).host]
  const place = { url, port, site, behind, directory, log, passwords }
  const example = new URL(`../../docs/examples/sign-in/${file}`, import.meta.url)
  const filled = await fill(example, program.replacements(place, one))
  // In this order, because the service may have got port 36677.
  let config = one.program === 'nginx' ? filled : filled.replaceAll('127.0.0.1:36677', behind)
  if (service) {
    const { host } = new URL((await startAuthService(service.path, userHeader)).origin)
    // With its end, because the server may have got a port that begins with the same digits.
    config = config.replaceAll(new RegExp(`${service.at}\\b(?!\\d)`, 'g'), host)
    expect(config).toContain(host)
  }
  await program.run(place, change(config))
  const cookies = { alice: 'Cookie: session=alice', nameless: 'Cookie: session=nameless' }
  return { app, url, ...(service ? cookies : { alice: BASIC }), accessLog: () => readFile(log, 'utf8') }
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
