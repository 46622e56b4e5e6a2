import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { type Browser, chromium } from 'playwright-core'
import { afterAll, expect, it, onTestFinished, type TestContext } from 'vitest'
import { download } from './helpers/form.ts'
import { needs } from './helpers/needs.ts'
import { startApp } from './helpers/start-app.ts'

const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // Names that are not this machine's resolve to it, so that pages of other origins can be had without a network.
  '--host-resolver-rules=MAP * 127.0.0.1',
]

let browser: Promise<Browser> | undefined

function launch(context: TestContext): Promise<Browser> {
  needs(context, 'chromium', 'chromium')
  browser ??= chromium.launch({ executablePath: '/usr/bin/chromium', args: ARGUMENTS })
  return browser
}

afterAll(async () => (await browser)?.close())

/** A web server that answers every path with a page. @returns its port */
async function servePage(html = '<!doctype html><title>a page</title>'): Promise<number> {
  const server = createServer((_req, res) => res.setHeader('Content-Type', 'text/html').end(html))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as { port: number }).port
}

it.for(['/', '/upload'])(
  'the page at %s explains this very server, and nothing in it fails',
  async (path, context) => {
    await inBrowser(context, async open => {
      const app = await startApp()
      const page = await open()
      const failures: string[] = []
      page.on('console', message => message.type() === 'error' && failures.push(message.text()))
      page.on('pageerror', error => failures.push(error.message))
      await page.goto(app.url + path)
      expect(await page.title()).toBe('upload-server')
      expect(await page.textContent('body')).toContain(`curl -F file=@picture.png ${app.url}/upload`)
      for (const width of [360, 1440]) {
        await page.setViewportSize({ width, height: 800 })
        expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
      }
      expect(failures).toEqual([])
    })
  },
)

it('a page of this machine uploads, and the picture it gets back is shown', async context => {
  await inBrowser(context, async open => {
    const app = await startApp()
    const page = await open()
    await page.goto(`http://localhost:${await servePage()}`)
    const answer = (await page.evaluate(`(async () => {
      const canvas = new OffscreenCanvas(4, 3)
      canvas.getContext('2d').fillRect(0, 0, 4, 3)
      const form = new FormData()
      form.append('file', new File([await canvas.convertToBlob()], '画 "1".png'))
      const response = await fetch('${app.url}/upload', { method: 'POST', body: form })
      return { status: response.status, id: response.headers.get('x-request-id'), ...(await response.json()) }
    })()`)) as { status: number; id: string; result: string[]; items: { origin: string; type: string }[] }
    expect(answer).toMatchObject({ status: 200, items: [{ origin: '画 "1".png', type: 'image/png' }] })
    expect(answer.id).toMatch(/./)
    expect((await download(answer.result[0]!)).subarray(1, 4).toString()).toBe('PNG')
    const width = await page.evaluate(`new Promise((resolve, reject) => {
      const image = new Image()
      image.onload = () => resolve(image.naturalWidth)
      image.onerror = reject
      image.src = ${JSON.stringify(answer.result[0])}
    })`)
    expect(width).toBe(4)
  })
})

it('attack: a web page from elsewhere publishes no local file, whatever kind of request it sends', async context => {
  await inBrowser(context, async open => {
    const app = await startApp()
    const secret = join(app.directory, 'secret.txt')
    await writeFile(secret, 'private')
    const page = await open()
    await page.goto(`http://evil.example:${await servePage()}`)
    const body = JSON.stringify({ list: [secret] })
    const statuses = (await page.evaluate(`(async () => {
      const url = '${app.url}/upload', body = ${JSON.stringify(body)}
      const send = async init => { try { return (await fetch(url, { method: 'POST', body, ...init })).status } catch { return 'blocked' } }
      const form = document.createElement('form')
      form.method = 'POST'; form.enctype = 'text/plain'; form.action = url; form.target = 'frame'
      const input = document.createElement('input'); input.name = body.slice(0, -1) + ', "x": "'; input.value = '"}'
      const frame = document.createElement('iframe'); frame.name = 'frame'
      form.append(input); document.body.append(frame, form); form.submit()
      navigator.sendBeacon(url, body)
      const sandbox = document.createElement('iframe'); sandbox.sandbox = 'allow-scripts'
      sandbox.srcdoc = '<script>fetch(' + JSON.stringify(url) + ', { method: "POST", body: ' + JSON.stringify(JSON.stringify(body)) + ' })</scr' + 'ipt>'
      document.body.append(sandbox)
      return [
        await send({}),
        await send({ mode: 'no-cors' }),
        await send({ headers: { 'content-type': 'application/json' } }),
        await send({ headers: { 'content-type': 'text/plain' } }),
        await send({ headers: { 'user-agent': 'Electron/1' } }),
        await send({ credentials: 'include' }),
      ]
    })()`)) as unknown[]
    expect(statuses.filter(status => status === 200)).toEqual([])
    await expect.poll(() => app.log.filter(line => line['msg'] === 'failed').length).toBeGreaterThanOrEqual(6)
    expect(app.log.filter(line => 'stored' in line)).toEqual([])
    expect(await app.files()).toEqual(['secret.txt'])
  })
})

it('attack: a name of the attacker that resolves to this machine (DNS rebinding) is not exempt', async context => {
  await inBrowser(context, async open => {
    const app = await startApp()
    const page = await open()
    const { port } = new URL(app.url)
    await page.goto(`http://rebound.evil.example:${port}/heartbeat`)
    const status = await page.evaluate(
      `fetch('/upload', { method: 'POST', body: '{"list":["/etc/hostname"]}' }).then(r => r.status)`,
    )
    expect(status).toBe(401)
  })
})

it.for([
  [
    'page.svg',
    '<svg xmlns="http://www.w3.org/2000/svg"><script>parent.hacked = true; top.hacked = true</script></svg>',
  ],
  ['page.html', '<!doctype html><script>top.hacked = true; parent.hacked = true</script>'],
  ['picture.png', 'GIF89a/*<script>top.hacked = true</script>*/=1;'],
  [
    'page.xml',
    '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><script>top.hacked = true</script></html>',
  ],
])('attack: the stored %s runs no script in this origin', async ([name, content], context) => {
  await inBrowser(context, async open => {
    const app = await startApp()
    const form = new FormData()
    form.append('file', new Blob([content as string]), name as string)
    const response = await fetch(`${app.url}/upload`, { method: 'POST', body: form })
    const { result } = (await response.json()) as { result: string[] }
    const page = await open()
    await page.goto(app.url)
    const hacked = await page.evaluate(`new Promise(resolve => {
      const frame = document.createElement('iframe')
      frame.src = ${JSON.stringify(result[0])}
      document.body.append(frame)
      setTimeout(() => resolve(window.hacked === true), 500)
    })`)
    expect(hacked).toBe(false)
    await page.goto(result[0]!).catch(() => {}) // a download ends the navigation
    expect(await page.evaluate('window.hacked === true')).toBe(false)
  })
})

type Page = Awaited<ReturnType<Browser['newPage']>>

/** Runs with pages of a fresh profile. */
async function inBrowser(
  context: TestContext,
  work: (open: () => Promise<Page>) => Promise<void>,
): Promise<void> {
  const profile = await (await launch(context)).newContext()
  try {
    await work(() => profile.newPage())
  } finally {
    await profile.close()
  }
}
