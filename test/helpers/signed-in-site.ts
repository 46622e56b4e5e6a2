import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { onTestFinished, type TestContext } from 'vitest'
import { makeCertificate } from '../servers/certificate.ts'
import { runNginx } from './behind-proxy.ts'
import { makeDirectory } from './directory.ts'
import { findFreePorts } from './free-port.ts'
import { needs } from './needs.ts'
import { spawnServer } from './spawn-server.ts'

/** How nginx knows people: a password, a cookie that a sign-in service checks, or that their machine is in its network. */
export type SignIn = 'password' | 'cookie' | 'network'
/** What nginx tells the server: a name, a key that says `addedByProxy`, or a key that doesn't. */
export type Told = 'a name' | 'a key' | 'an unmarked key'

export interface SignedInSite {
  /** `https:` where people are known by a cookie. */
  readonly url: string
  /** Where a browser signs in. */
  readonly signInUrl: string
  readonly certificate: { cert: Buffer; key: Buffer } | undefined
  /** What nginx has answered so far. `arrived`: whether it was passed on to the server. */
  answered(): Promise<{ method: string; status: number; arrived: boolean; target: string }[]>
  /** The files that the server has stored. */
  files(): Promise<string[]>
  /** The log of the server. */
  log(): Record<string, unknown>[]
}

const HOST = 'img.example.com'
const KEY = 'the-key-that-nginx-adds'
const COOKIES = ['none=yes; SameSite=None; Secure', 'lax=yes; SameSite=Lax; Secure', 'unspecified=yes']

/** The sign-in service that `auth_request` of nginx asks: `alice` has any of its cookies. @returns its port */
async function startSignInService(): Promise<number> {
  const service = createServer((req, res) => {
    if (req.url === '/login') res.setHeader('Set-Cookie', COOKIES).end('signed in')
    else if (/(?:none|lax|unspecified)=yes/.test(req.headers.cookie ?? ''))
      res.setHeader('Remote-User', 'alice').end()
    else res.writeHead(401).end()
  }).listen(0, '127.0.0.1')
  await once(service, 'listening')
  onTestFinished(() => {
    service.closeAllConnections()
    service.close()
  })
  return (service.address() as AddressInfo).port
}

/** The built program behind nginx, which signs people in as `alice`, under a name that only browsers of the tests resolve. */
export async function startSignedInSite(
  context: TestContext,
  signIn: SignIn,
  told: Told,
): Promise<SignedInSite> {
  needs(context, 'nginx', 'nginx-light')
  needs(context, 'openssl', 'openssl')
  const [directory, folder] = [await makeDirectory(), await makeDirectory()]
  const port = await findFreePorts()
  const isTls = signIn === 'cookie'
  const url = `http${isTls ? 's' : ''}://${HOST}:${port}`
  const { certFile, keyFile } = makeCertificate(directory)

  const reverseProxy = { from: ['127.0.0.1'], preset: 'authelia' }
  const keys = [{ name: 'nginx', key: KEY, addedByProxy: told === 'a key' }]
  // Both ways to say which origin is the own one.
  const own = told === 'a name' ? { allowedHosts: [HOST] } : { publicUrl: url }
  const config = {
    server: { port: 0, ...own },
    auth: { loopbackExempt: false, ...(told === 'a name' ? { reverseProxy } : { keys }) },
    page: { history: true },
    providers: { local: { secretblog: { directory: 'files', serve: true } } },
  }
  await writeFile(join(folder, 'upload-server.json'), JSON.stringify(config))
  const server = await spawnServer([], { directory: folder })

  const password = createHash('sha1').update('open sesame').digest('base64')
  await writeFile(join(directory, 'htpasswd'), `alice:{SHA}${password}\n`)
  const asks = {
    password: `auth_basic files; auth_basic_user_file ${join(directory, 'htpasswd')}; set $user $remote_user;`,
    cookie: 'auth_request /sign-in; auth_request_set $user $upstream_http_remote_user;',
    network: 'set $user alice;',
  }[signIn]
  const tells = told === 'a name' ? 'Remote-User $user' : `Authorization "Bearer ${KEY}"`
  const service = `http://127.0.0.1:${await startSignInService()}`
  const servers = `
    log_format attempts '$request_method $status [$upstream_status] $request_uri';
    server {
      listen 127.0.0.1:${port}${isTls ? ' ssl' : ''};
      ssl_certificate ${certFile};
      ssl_certificate_key ${keyFile};
      access_log ${join(directory, 'attempts.log')} attempts;
      location / {
        ${asks}
        proxy_set_header Authorization "";
        proxy_set_header Host $http_host;
        proxy_set_header X-Forwarded-Proto $scheme;
        proxy_set_header X-Forwarded-For $remote_addr;
        proxy_set_header ${tells};
        proxy_pass ${await server.url};
      }
      location = /heartbeat { proxy_set_header Host $http_host; proxy_pass ${await server.url}; }
      location = /login { proxy_pass ${service}; }
      location = /sign-in {
        internal;
        proxy_pass_request_body off;
        proxy_set_header Content-Length "";
        proxy_pass ${service};
      }
    }`
  await runNginx(directory, servers, port)

  return {
    url,
    signInUrl: {
      password: `${url.replace('://', '://alice:open%20sesame@')}/`,
      cookie: `${url}/login`,
      network: `${url}/`,
    }[signIn],
    certificate: isTls ? { cert: await readFile(certFile), key: await readFile(keyFile) } : undefined,
    async answered() {
      const lines = (await readFile(join(directory, 'attempts.log'), 'utf8')).trim().split('\n')
      return lines.map(line => {
        const [, method = '', status, upstream, target = ''] =
          /^(\S+) (\d+) \[([^\]]*)\] (.*)$/.exec(line) ?? []
        return {
          method,
          status: Number(status),
          arrived: /\d/.test(upstream ?? '') && status !== '401',
          target,
        }
      })
    },
    async files() {
      const entries = await readdir(join(folder, 'files'), { recursive: true, withFileTypes: true }).catch(
        () => [],
      )
      return entries.filter(entry => entry.isFile()).map(({ name }) => name)
    },
    log: () => server.lines.map(line => JSON.parse(line)),
  }
}
