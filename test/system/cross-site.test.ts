import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, it, onTestFinished, type TestContext } from 'vitest'
import { inBrowser, type Tab } from '../helpers/browser.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { ATTEMPTS, servePage, TOOLS } from '../helpers/evil-page.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { needs } from '../helpers/needs.ts'
import { runNginx } from '../helpers/reverse-proxies.ts'
import { spawnServer } from '../helpers/spawn-server.ts'
import { makeCertificate } from '../servers/certificate.ts'

/** How nginx knows people: a password, a cookie that a sign-in service checks, or that their machine is in its network. */
type SignIn = 'password' | 'cookie' | 'network'
/** What nginx tells the server: a name, or a key that says `addedByProxy`. */
type Told = 'a name' | 'a key'

interface SignedInSite {
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
async function startSignedInSite(context: TestContext, signIn: SignIn, told: Told): Promise<SignedInSite> {
  needs(context, 'nginx', 'nginx-light')
  needs(context, 'openssl', 'openssl')
  const [directory, folder] = [await makeDirectory(), await makeDirectory()]
  const port = await findFreePorts()
  const isTls = signIn === 'cookie'
  const url = `http${isTls ? 's' : ''}://${HOST}:${port}`
  const { certFile, keyFile } = makeCertificate(directory)

  const reverseProxy = { from: ['127.0.0.1'], preset: 'authelia' }
  const keys = [{ name: 'nginx', key: KEY, addedByProxy: true }]
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
  await runNginx(servers, { directory, port })

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

type Open = () => Promise<Tab>

const BODY = JSON.stringify({ list: ['data:,attack'] })

/** Lets a script send cookies and cached passwords to other origins, too. */
function withCredentials(script: string): string {
  return script
    .replaceAll(/(fetch\((?:'\/redirect\?to=' \+ )?url, \{)/g, '$1 credentials: "include",')
    .replaceAll("x.open('POST', url)", "x.open('POST', url); x.withCredentials = true")
}

/** Those that differ in what a browser adds to them. The others are in test/system/security/web-pages.test.ts. */
const TRIED = [
  'fetch as text/plain',
  'fetch as JSON',
  'fetch with credentials',
  'fetch of a file',
  'fetch of a form',
  'an image',
  'a form of text/plain',
  'a form with a file',
  'a form in a sandbox',
  'fetch in a sandbox',
]

/** Each leaves at least one request that carries its name. */
const SCRIPTS = ATTEMPTS.filter(([what]) => TRIED.includes(what)).flatMap(([what, script]) => [
  [what, script] as const,
  ...(withCredentials(script) === script
    ? []
    : [[`${what}, and credentials`, withCredentials(script)] as const]),
])

/** Forms that replace the page that sends them, so that the browser treats them as a visit. */
const VISITS = [
  ['a form for a visit', `submitFile('_self')`],
  ['a form of text for a visit', `submit(document, 'text/plain', '_self')`],
  [
    'a form for a visit in a sandbox',
    `sandbox('submit(document, "text/plain", "_top")', 'allow-scripts allow-forms allow-top-navigation')`,
  ],
] as const

/** The origins of the attacker. A page without a referrer makes browsers say "Origin: null" about its forms. */
async function startAttackers({ url, certificate }: SignedInSite) {
  const { protocol, hostname } = new URL(url)
  const serve = async (name: string, host: string, headers: Record<string, string> = {}) => {
    const port = await servePage(headers, certificate)
    return { name, origin: `${protocol}//${host}:${port}` }
  }
  return [
    await serve('another site', 'evil.example'),
    await serve('another port', hostname),
    await serve('no referrer', 'evil.example', { 'Referrer-Policy': 'no-referrer' }),
  ]
}

/** Much longer than any of it takes, also on a machine that does much else. */
const PATIENCE = { timeout: 60_000 }

/** Sends everything from every origin of the attacker, and waits until nginx has answered. */
async function attack(site: SignedInSite, open: Open): Promise<void> {
  const sent: string[] = []
  const tools = (name: string) => {
    sent.push(name)
    return TOOLS(`${site.url}/upload?attempt=${encodeURIComponent(name)}`, BODY)
  }
  const missing = async () => {
    const targets = (await site.answered()).map(({ target }) => target).join('\n')
    return sent.filter(name => !targets.includes(encodeURIComponent(name)))
  }
  for (const { name, origin } of await startAttackers(site)) {
    const all = SCRIPTS.map(
      ([what, script]) =>
        `(async () => { ${tools(`${name}: ${what}`)}; try { await ${script} } catch {} })()`,
    )
    const tab = await open()
    await tab.goto(origin)
    await tab.evaluate(`(() => { ${all.join(';')} })()`)
    await expect.poll(() => missing(), PATIENCE).toEqual([])
    for (const [what, script] of VISITS) {
      const visitor = await open()
      await visitor.goto(origin)
      const visit = `(() => { ${tools(`${name}: ${what}`)}; setTimeout(() => ${script}) })()`
      await visitor.evaluate(visit).catch(() => {}) // the page may be gone already
      await expect.poll(() => missing(), PATIENCE).toEqual([])
      // Chromium may never close a tab that is on its way to another page.
      await expect.poll(() => visitor.evaluate('location.pathname').catch(String), PATIENCE).toBe('/upload')
      await visitor.close()
    }
  }
}

/** What scripts of a page can read of the server. */
const READ = (url: string) => `Promise.all(['include', 'omit'].flatMap(credentials => [
  fetch('${url}/history', { credentials }),
  fetch('${url}/page/me', { credentials }),
  fetch('${url}/upload?finalizationId=x', { credentials, method: 'POST' }),
]).map(sent => sent.then(response => response.text()).catch(() => ''))).then(texts => texts.join())`

const HISTORY = `fetch('/history').then(response => response.json()).then(({ result }) => result.length)`

/** Chooses a file on the page of the server, and waits until it is stored. */
const CHOOSE = `new Promise((done, fail) => {
  const files = new DataTransfer()
  files.items.add(new File(['mine'], 'mine.txt'))
  const input = document.querySelector('#files')
  input.files = files.files
  input.dispatchEvent(new Event('change', { bubbles: true }))
  const timer = setInterval(() => {
    const row = document.querySelector('#uploads li')
    if (row?.dataset.state === 'stored') done(clearInterval(timer))
    if (row?.dataset.state === 'failed') fail(new Error(row.textContent, clearInterval(timer)))
  }, 20)
})`

const inside = (context: TestContext, work: (open: Open) => Promise<void>) =>
  inBrowser(context, work, { ignoreHTTPSErrors: true })

it.for<{ signIn: SignIn; told: Told }>([
  { signIn: 'password', told: 'a name' },
  { signIn: 'cookie', told: 'a key' },
  { signIn: 'network', told: 'a name' },
])(
  'attack: pages of other origins upload or read as a person whom a proxy knows by $signIn, and for whom it sends $told, in Chromium',
  { timeout: 240_000 },
  async ({ signIn, told }, context) => {
    await inside(context, async open => {
      const site = await startSignedInSite(context, signIn, told)
      const own = await open()
      await own.goto(site.signInUrl)
      await own.goto(`${site.url}/`)
      await own.evaluate(CHOOSE)
      expect(await site.files()).toHaveLength(1)

      const reader = await open()
      for (const { origin } of await startAttackers(site)) {
        await reader.goto(origin)
        expect(String(await reader.evaluate(READ(site.url)))).not.toMatch(/mine\.txt|alice|secretblog/)
      }
      await attack(site, open)
      const attempts = (await site.answered()).filter(({ target }) => target.includes('attempt='))
      const arrived = attempts.filter(one => one.arrived && /POST|PUT/.test(one.method))
      expect(arrived.filter(({ status }) => status !== 403)).toEqual([])
      expect(arrived.length).toBeGreaterThan(8)
      expect(site.log().filter(line => 'stored' in line)).toHaveLength(1)
      expect(await site.files()).toHaveLength(1)
      expect(await own.evaluate(HISTORY)).toBe(1)
    })
  },
)

it.for<Told>(['a name', 'a key'])(
  'attack: a name of the attacker leads to a proxy that knows people by their network (DNS rebinding), and sends %s',
  async (told, context) => {
    await inside(context, async open => {
      const site = await startSignedInSite(context, 'network', told)
      const own = await open()
      await own.goto(`${site.url}/`)
      await own.evaluate(CHOOSE)
      const page = await open()
      const rebound = `http://rebound.example:${new URL(site.url).port}`
      await page.goto(`${rebound}/heartbeat`)
      expect(String(await page.evaluate(READ(rebound)))).not.toMatch(/mine\.txt|alice|secretblog/)
      const status = `fetch('/upload', { method: 'POST', body: '${BODY}' }).then(response => response.status)`
      expect(await page.evaluate(status)).toBe(403)
      expect(await site.files()).toHaveLength(1)
    })
  },
)
