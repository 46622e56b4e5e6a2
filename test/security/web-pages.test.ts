import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { inBrowser } from '../helpers/browser.ts'
import { upload } from '../helpers/form.ts'
import { makePicture } from '../helpers/picture.ts'
import { startApp } from '../helpers/start-app.ts'

/** A web server of the attacker. @returns its port */
async function servePage(headers: Record<string, string> = {}): Promise<number> {
  const server = createServer((req, res) => {
    for (const [name, value] of Object.entries(headers)) res.setHeader(name, value)
    if (req.url?.startsWith('/redirect'))
      res.writeHead(307, { Location: String(req.url.split('?to=')[1]) }).end()
    else res.setHeader('Content-Type', 'text/html').end('<!doctype html><title>a page</title>')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as { port: number }).port
}

/** What a page tries; each leaves at least one request in the log of the server. `url` and `body` are given. */
const ATTEMPTS: readonly [what: string, script: string][] = [
  ['fetch of a simple request', `fetch(url, { method: 'POST', body })`],
  ['fetch without CORS', `fetch(url, { method: 'POST', body, mode: 'no-cors' })`],
  ['fetch as text/plain', `fetch(url, { method: 'POST', body, headers: { 'content-type': 'text/plain' } })`],
  ['fetch as JSON', `fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json' } })`],
  [
    'fetch as a desktop program',
    `fetch(url, { method: 'POST', body, headers: { 'user-agent': 'Electron/1' } })`,
  ],
  ['fetch with credentials', `fetch(url, { method: 'POST', body, credentials: 'include', mode: 'no-cors' })`],
  [
    'fetch without a referrer',
    `fetch(url, { method: 'POST', body, mode: 'no-cors', referrerPolicy: 'no-referrer' })`,
  ],
  ['fetch that outlives its page', `fetch(url, { method: 'POST', body, mode: 'no-cors', keepalive: true })`],
  ['fetch of the clipboard', `fetch(url, { method: 'POST', mode: 'no-cors' })`],
  ['fetch of a file', `fetch(url, { method: 'PUT', body: 'hello' })`],
  [
    'fetch of a file under its own type',
    `fetch(url, { method: 'POST', body: new Blob(['x'], { type: 'image/png' }), mode: 'no-cors' })`,
  ],
  [
    'fetch of a form',
    `(() => { const f = new FormData(); f.append('file', new Blob(['x']), 'a.png'); return fetch(url, { method: 'POST', body: f, mode: 'no-cors' }) })()`,
  ],
  [
    'fetch of 0.0.0.0',
    `fetch(url.replace('127.0.0.1', '0.0.0.0'), { method: 'POST', body, mode: 'no-cors' })`,
  ],
  ['fetch by way of a redirect', `fetch('/redirect?to=' + url, { method: 'POST', body, mode: 'no-cors' })`],
  [
    'XMLHttpRequest',
    `new Promise(done => { const x = new XMLHttpRequest(); x.open('POST', url); x.onloadend = done; x.send(body) })`,
  ],
  ['sendBeacon', `navigator.sendBeacon(url, body)`],
  ['sendBeacon without a body', `navigator.sendBeacon(url)`],
  [
    'the ping of a link',
    `(() => { const a = document.createElement('a'); a.href = '#'; a.ping = url; document.body.append(a); a.click() })()`,
  ],
  ['a report of its policy', `(() => { const i = new Image(); i.src = 'http://blocked.example/x.png' })()`],
  ['an image', `(() => { const i = new Image(); i.src = url + '?list=' + encodeURIComponent(body) })()`],
  ...['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data'].map(
    (type): [string, string] => [`a form of ${type}`, `submit(document, '${type}')`],
  ),
  ['a form in a sandbox', `sandbox('submit(document, "text/plain")', 'allow-scripts allow-forms')`],
  ['fetch in a sandbox', `sandbox('fetch(url, { method: "POST", body, mode: "no-cors" })', 'allow-scripts')`],
  [
    'fetch in a data: page',
    `frame('data:text/html,' + encodeURIComponent(inner('fetch(url, { method: "POST", body, mode: "no-cors" })')))`,
  ],
  [
    'fetch in a worker',
    `new Worker(URL.createObjectURL(new Blob(['const url = ' + JSON.stringify(url) + ', body = ' + JSON.stringify(body) + '; fetch(url, { method: "POST", body, mode: "no-cors" })'])))`,
  ],
]

const TOOLS = (url: string, body: string): string => `
  const url = ${JSON.stringify(url)}, body = ${JSON.stringify(body)}
  function submit(document, type) {
    const form = document.createElement('form')
    form.method = 'POST'; form.enctype = type; form.action = url; form.target = 'f' + Math.random()
    const frame = document.createElement('iframe'); frame.name = form.target
    const input = document.createElement('input')
    input.name = body.slice(0, -1) + ', "x": "'; input.value = '"}'
    form.append(input); document.body.append(frame, form); form.submit()
  }
  function inner(script) {
    return '<body><script>const url = ' + JSON.stringify(url) + ', body = ' + JSON.stringify(body) + ';' + submit + ';' + script + '<\\/script>'
  }
  function sandbox(script, allow) {
    const frame = document.createElement('iframe')
    frame.sandbox = allow; frame.srcdoc = inner(script); document.body.append(frame)
  }
  function frame(src) {
    const frame = document.createElement('iframe'); frame.src = src; document.body.append(frame)
  }
`

it('attack: a page from elsewhere uploads, whatever kind of request it sends', async context => {
  await inBrowser(context, async open => {
    const app = await startApp({ config: { server: { key: 'k3y-0f-the-server' } } })
    const secret = join(app.directory, 'secret.txt')
    await writeFile(secret, 'private')
    const url = `${app.url}/upload`
    const policy = `img-src 'self' http://127.0.0.1:*; report-uri ${url}`
    const page = await open()
    await page.goto(`http://evil.example:${await servePage({ 'Content-Security-Policy': policy })}`)
    const seen = () =>
      app.log.filter(line => line['req'] && (line['req'] as { path: string }).path === '/upload')
    for (const [what, script] of ATTEMPTS) {
      const before = seen().length
      await page.evaluate(`(async () => { ${TOOLS(url, JSON.stringify({ list: [secret] }))}
        try { await ${script} } catch {} })()`)
      await expect.poll(() => seen().length, { message: what, timeout: 5000 }).toBeGreaterThan(before)
    }
    const methods = (line: Record<string, unknown>) => (line['req'] as { method: string }).method
    for (const line of seen().filter(one => /POST|PUT/.test(methods(one))))
      expect(line).toMatchObject({ res: { status: 401 } })
    expect(app.log.filter(line => 'stored' in line)).toEqual([])
    expect(await app.files()).toEqual(['secret.txt'])
  })
})

it('attack: a name of the attacker leads to this machine (DNS rebinding)', async context => {
  await inBrowser(context, async open => {
    const app = await startApp()
    const page = await open()
    const { port } = new URL(app.url)
    for (const host of ['rebound.evil.example', 'localhost.evil.example', '127.0.0.1.nip.example']) {
      await page.goto(`http://${host}:${port}/heartbeat`)
      const status = await page.evaluate(
        `fetch('/upload', { method: 'POST', body: '{"list":["/etc/hostname"]}' }).then(r => r.status)`,
      )
      expect(status).toBe(401)
    }
  })
})

const HACK = 'try { top.hacked = true } catch {} try { parent.hacked = true } catch {} window.hacked = true'

it('attack: a stored file runs script in the origin of the server, opened, framed or included', async context => {
  await inBrowser(context, async open => {
    const app = await startApp()
    const xhtml = 'http://www.w3.org/1999/xhtml'
    const picture = makePicture()
    const files = {
      'page.svg': `<svg xmlns="http://www.w3.org/2000/svg" onload="${HACK}"><script>${HACK}</script></svg>`,
      'svg-behind-comments.png': `<!-- a --><?x?><svg xmlns="http://www.w3.org/2000/svg"><script>${HACK}</script></svg>`,
      'page.html': `<!doctype html><script>${HACK}</script>`,
      'page-without-doctype.txt': `hello <script>${HACK}</script>`,
      'page-behind-blanks.jpg': `\n\n  <script>${HACK}</script>`,
      'page.xml': `<?xml version="1.0"?><html xmlns="${xhtml}"><script>${HACK}</script></html>`,
      'style.xsl': `<?xml version="1.0"?><?xml-stylesheet href="#" type="text/xsl"?><a/>`,
      'gif-and-script.gif': `GIF89a/*${'x'.repeat(20)}*/=1;${HACK}`,
      'html-in-a-picture.png': Buffer.concat([picture, Buffer.from(`<html><script>${HACK}</script></html>`)]),
      'picture-called.html': picture,
      'picture-called.svg': picture,
      'script.js': HACK,
      'module.mjs': `${HACK}; export {}`,
      'page.mhtml': `MIME-Version: 1.0\r\nContent-Type: text/html\r\n\r\n<script>${HACK}</script>`,
      'a.pdf': `%PDF-1.4\n1 0 obj<</Type/Catalog/OpenAction<</S/JavaScript/JS(${HACK})>>>>endobj trailer<</Root 1 0 R>>`,
      'utf16.txt': Buffer.from(`\ufeff<script>${HACK}</script>`, 'utf16le'),
      'utf7.html': `+ADw-script+AD4-${HACK}+ADw-/script+AD4-`,
    }
    const links = (await upload(`${app.url}/upload`, files)).result
    expect(links).toHaveLength(Object.keys(files).length)
    const page = await open()
    await page.goto(`${app.url}/heartbeat`)
    for (const link of links) {
      const hacked = await page.evaluate(`(async () => {
        const add = (tag, attributes) => new Promise(done => {
          const element = Object.assign(document.createElement(tag), attributes)
          element.onload = element.onerror = done
          setTimeout(done, 150)
          document.body.append(element)
        })
        const link = ${JSON.stringify(link)}
        await Promise.all([
          add('iframe', { src: link }), add('script', { src: link }), add('embed', { src: link }),
          add('object', { data: link }), add('script', { src: link, type: 'module' }),
          navigator.serviceWorker?.register(link).catch(() => {}),
        ])
        return window.hacked === true
      })()`)
      expect.soft(hacked, `${link} included`).toBe(false)
    }
    for (const link of links) {
      const opened = await open()
      await opened.goto(link).catch(() => {}) // a download ends the navigation
      expect.soft(await opened.evaluate('window.hacked === true'), `${link} opened`).toBe(false)
      await opened.close()
    }
  })
})
