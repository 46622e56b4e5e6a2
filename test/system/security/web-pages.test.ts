import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it, vi } from 'vitest'
import { inBrowser } from '../../helpers/browser.ts'
import { ATTEMPTS, FORGERIES, servePage, TOOLS } from '../../helpers/evil-page.ts'
import { upload } from '../../helpers/form.ts'
import { makePicture } from '../../helpers/picture.ts'
import { startApp } from '../../helpers/start-app.ts'

/** The first test with a browser starts it, which may take half a minute on a busy machine. */
vi.setConfig({ testTimeout: 90_000 })

it('a page of this machine uploads, and the picture it gets back is shown', async context => {
  await inBrowser(context, async open => {
    const app = await startApp()
    const page = await open()
    await page.goto(`http://localhost:${await servePage()}`)
    const seen = await page.evaluate(`(async () => {
      const canvas = new OffscreenCanvas(4, 3)
      canvas.getContext('2d').fillRect(0, 0, 4, 3)
      const form = new FormData()
      form.append('file', new File([await canvas.convertToBlob()], '画 "1".png'))
      const response = await fetch('${app.url}/upload', { method: 'POST', body: form })
      const { result, items } = await response.json()
      const image = Object.assign(new Image(), { src: result[0] })
      await image.decode()
      return [items[0].origin, response.headers.has('x-request-id'), image.naturalWidth]
    })()`)
    expect(seen).toEqual(['画 "1".png', true, 4])
  })
})

it('attack: a page from elsewhere uploads, whatever kind of request it sends, in Chromium', async context => {
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

it('attack: a sandboxed frame passes for a desktop program and publishes a file, in Chromium', async context => {
  await inBrowser(context, async open => {
    const app = await startApp()
    const secret = join(app.directory, 'secret.txt')
    await writeFile(secret, 'private')
    const tools = TOOLS(`${app.url}/upload`, JSON.stringify({ list: [secret] }))
    const tab = await open()
    await tab.goto(`http://evil.example:${await servePage()}`)
    for (const [, script] of FORGERIES) {
      for (const run of [script, `inSandbox(${JSON.stringify(script)})`])
        await tab.evaluate(`(async () => { ${tools} try { await ${run} } catch {} })()`)
    }
    const seen = app.log.flatMap(line => (line['req'] ? [line] : []))
    expect(seen.length).toBeGreaterThan(FORGERIES.length)
    for (const { req, res } of seen as { req: { method: string }; res: { status: number } }[])
      expect(res.status).toBe(req.method === 'OPTIONS' ? 204 : 401)
    expect(await app.files()).toEqual(['secret.txt'])
  })
})

it('attack: a name of the attacker leads to this machine (DNS rebinding), in Chromium', async context => {
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
    let underWay = 0
    page.on('request', () => underWay++)
    page.on('requestfinished', () => underWay--)
    page.on('requestfailed', () => underWay--)
    for (const link of links) {
      await page.evaluate(`(async () => {
        const link = ${JSON.stringify(link)}
        const add = (tag, attributes) =>
          document.body.append(Object.assign(document.createElement(tag), attributes))
        for (const tag of ['iframe', 'script', 'embed']) add(tag, { src: link })
        add('object', { data: link })
        add('script', { src: link, type: 'module' })
        await navigator.serviceWorker?.register(link).catch(() => {})
        await new Promise(requestAnimationFrame)
      })()`)
      // Not every element says that it is there.
      await expect.poll(() => underWay).toBe(0)
      const hacked = await page.evaluate('window.hacked === true')
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
