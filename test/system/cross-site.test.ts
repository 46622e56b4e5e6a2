import { expect, it, type TestContext } from 'vitest'
import { inBrowser, type Tab } from '../helpers/browser.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { ATTEMPTS, readCertificate, servePage, TOOLS } from '../helpers/evil-page.ts'
import { NGINX, NGINX_SSO, startFront } from '../helpers/reverse-proxies.ts'
import { makeCertificate } from '../servers/certificate.ts'

/** How nginx knows people: a password, a cookie that a sign-in service checks, or that their machine is in its network. */
type SignIn = 'password' | 'cookie' | 'network'
/** What nginx tells the server: a name, or a key that says `addedByProxy`. */
type Told = 'a name' | 'a key'

const HOST = 'img.example.com'
const KEY = 'the-key-that-nginx-adds'
const PERSON = /set \$person \$remote_user;/

/** Examples of the documents, which sign people in as `alice`, under a name that only browsers of the tests resolve. */
async function startSignedInSite(context: TestContext, signIn: SignIn, told: Told) {
  const keys = [{ name: 'nginx', key: KEY, addedByProxy: true }]
  const front = await startFront(signIn === 'cookie' ? NGINX_SSO : NGINX, context, {
    name: HOST,
    config: {
      page: { history: true },
      // Both ways to say which origin is the own one.
      ...(told === 'a name' && { server: { publicUrl: undefined, allowedHosts: [HOST] } }),
      ...(told === 'a key' && { auth: { loopbackExempt: false, keys } }),
    },
    example(text) {
      const noted = "log_format noquery '$request_method $status [$upstream_status] $request_uri';"
      const example = text.replace(/log_format noquery '.*';/, () => noted)
      const known =
        signIn === 'network'
          ? example.replace(PERSON, () => 'set $person alice;').replace(/auth_basic.*;/g, '')
          : example
      return told === 'a name'
        ? known
        : known
            .replace(/proxy_set_header Authorization .*;/, '')
            .replace(/proxy_set_header X-\S+ \$person;/, `proxy_set_header Authorization "Bearer ${KEY}";`)
    },
  })
  const { app, url } = front
  return {
    url,
    /** Where a browser signs in. */
    signInUrl: {
      password: `${url.replace('://', '://alice:open%20sesame@')}/`,
      cookie: `${url}/oauth2/sign_in`,
      network: `${url}/`,
    }[signIn],
    /** What nginx has answered so far. `arrived`: whether it was passed on to the server. */
    async answered() {
      const lines = (await front.accessLog()).trim().split('\n')
      return lines.map(line => {
        const [, method = '', status = '', upstream = '', target = ''] =
          /^(\S+) (\d+) \[([^\]]*)\] (.*)$/.exec(line) ?? []
        return { method, status: Number(status), arrived: /\d/.test(upstream) && status !== '401', target }
      })
    },
    files: async () => (await app.files()).filter(path => /^files\/[^.]/.test(path)),
    log: () => app.log,
  }
}

type SignedInSite = Awaited<ReturnType<typeof startSignedInSite>>

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
async function startAttackers({ url }: SignedInSite) {
  const { protocol, hostname } = new URL(url)
  const certificate =
    protocol === 'https:' ? readCertificate(makeCertificate(await makeDirectory())) : undefined
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
