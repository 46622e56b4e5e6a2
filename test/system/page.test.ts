import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { describe, expect, it, type TestContext } from 'vitest'
import { inBrowser, type Page } from '../helpers/browser.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { download } from '../helpers/form.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { startGate } from '../helpers/gate.ts'
import { needs } from '../helpers/needs.ts'
import { makePicture } from '../helpers/picture.ts'
import { runNginx } from '../helpers/reverse-proxies.ts'
import { startApp, type TestApp } from '../helpers/start-app.ts'

const KEY = 'schlüssel-钥匙'
const WITH_KEY = { server: { key: KEY }, auth: { loopbackExempt: false } }
const AXE = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

interface Visit {
  page: Page
  app: TestApp
  /** Errors in the browser's console, including blocked content. */
  errors: string[]
  /** The URLs of all requests. */
  urls: string[]
}

type Work = (visit: Visit) => Promise<void>

interface VisitOptions {
  config?: Record<string, unknown>
  browser?: Parameters<typeof inBrowser>[2]
}

/** Opens the page of a new server. The browser must report no errors except for rejected requests. */
async function visit(
  context: TestContext,
  work: Work,
  { config, browser }: VisitOptions = {},
): Promise<void> {
  const app = await startApp({ config })
  const options = { permissions: ['clipboard-read', 'clipboard-write'], ...browser }
  await inBrowser(
    context,
    async open => {
      const page = await open()
      const seen: Visit = { page, app, errors: [], urls: [] }
      page.on('console', message => message.type() === 'error' && seen.errors.push(message.text()))
      page.on('pageerror', error => seen.errors.push(error.message))
      page.on('request', request => seen.urls.push(request.url()))
      await page.goto(app.url)
      await settled(page)
      await work(seen)
      expect(
        seen.errors.filter(text => !/the server responded with a status of (?:4|502)/.test(text)),
      ).toEqual([])
    },
    options,
  )
}

/** A test on the page of a new server. */
function onPage(name: string, options: VisitOptions | Work, work?: Work): void {
  const [given, run] = typeof options === 'function' ? [{}, options] : [options, work]
  it(name, context => visit(context, run as Work, given))
}

/** Waits until the page shows what the visitor may do. Without JavaScript it never does. */
async function settled(page: Page): Promise<void> {
  await page.locator('#visitor :is(.admitted, strong), noscript p:visible').first().waitFor()
}

/** Polls for up to 20 seconds, since the machine may be busy. */
const eventually = <T>(read: () => T) => expect.poll(read, { timeout: 20_000, interval: 20 })

const pictureFile = (name: string, buffer = makePicture()) => ({ name, mimeType: 'image/png', buffer })
const rows = (page: Page, state: string) => page.locator(`#uploads li[data-state=${state}]`)
const clipboard = (page: Page) => page.evaluate('navigator.clipboard.readText()')
const linkIn = async (page: Page, n = 0) => rows(page, 'stored').nth(n).getByRole('textbox').innerText()
const choose = (page: Page, ...names: string[]) =>
  page.setInputFiles(
    '#files',
    names.map(name => pictureFile(name)),
  )

/** Uploads pictures, and waits until all of them and the earlier ones are stored. */
async function store(page: Page, ...names: string[]): Promise<void> {
  const before = await rows(page, 'stored').count()
  await choose(page, ...names)
  await eventually(() => rows(page, 'stored').count()).toBe(before + names.length)
}

async function sendUrl(page: Page, url: string): Promise<void> {
  await page.locator('#url-text').fill(url)
  await page.locator('#url button').click()
}

async function giveKey(page: Page, key = KEY): Promise<void> {
  await page.locator('#key-text').fill(key)
  await page.getByRole('button', { name: 'Use this key' }).click()
}

/** A destination that serves its files. */
const place = (directory: string, more: object = {}) => ({ directory, serve: true, ...more })
/** Opens the page at a name of another machine, which is not local. */
const elsewhere = ({ url }: TestApp) => `http://img.example.com:${new URL(url).port}/`
const OPEN = { server: { allowedHosts: ['img.example.com'] }, auth: { anonymous: true } }
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }

/** Drops files on the page, as the operating system does. */
async function drop(page: Page, files: string[], items: object[] = []): Promise<void> {
  const session = await page.context().newCDPSession(page)
  const data = { items, files, dragOperationsMask: 1 }
  for (const type of ['dragEnter', 'dragOver', 'drop'])
    await session.send('Input.dispatchDragEvent', { type, x: 600, y: 300, data } as never)
}

/** The accessibility violations that axe finds. */
async function listViolations(page: Page): Promise<string[]> {
  await page.evaluate(AXE)
  return (await page.evaluate(
    `axe.run().then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(node => id + ': ' + node.html + ' ' + node.failureSummary)))`,
  )) as string[]
}

describe('files', () => {
  onPage('that are chosen are stored, several at once and under one name', async ({ page, app }) => {
    const pictures = [makePicture(), makePicture(), Buffer.from('some text')]
    await page.setInputFiles('#files', [
      pictureFile('图 "1".png', pictures[0]),
      pictureFile('图 "1".png', pictures[1]),
      { name: 'notes.txt', mimeType: 'text/plain', buffer: pictures[2] as Buffer },
    ])
    await eventually(() => rows(page, 'stored').count()).toBe(3)
    for (const [n, picture] of pictures.entries())
      expect(picture.equals(await download(await linkIn(page, n)))).toBe(true)
    expect(await app.files()).toHaveLength(3)
    await eventually(() => page.locator('.thumb img').count()).toBe(2)
    expect(await rows(page, 'stored').allInnerTexts()).toEqual([
      expect.stringContaining('图 "1".png 1.1 KB'),
      expect.stringContaining('图 "1".png 1.1 KB'),
      expect.stringContaining('notes.txt 9 B'),
    ])
    expect(await page.getByRole('status').innerText()).toMatch(/: Uploaded$/)
    expect(await page.locator('#tally').innerText()).toBe('3 of 3 uploaded')
    const opener = page.getByRole('link', { name: 'Open notes.txt' })
    const [opened] = await Promise.all([page.waitForEvent('popup'), opener.click()])
    await opened.waitForLoadState()
    expect(opened.url()).toBe(await linkIn(page, 2))
  })

  onPage('that are dropped are stored; a folder is rejected', async ({ page, app }) => {
    const folder = join(app.directory, 'folder')
    await mkdir(folder)
    const files = ['a.png', 'b.png'].map(name => join(folder, name))
    for (const file of files) await writeFile(file, makePicture())
    await drop(page, [...files, folder])
    await eventually(() => rows(page, 'stored').count()).toBe(2)
    expect(await rows(page, 'failed').innerText()).toMatch(
      /^folder\s+Folders can’t be uploaded\s+Choose the files in the folder instead\.$/,
    )
  })

  onPage('that are pasted are stored', async ({ page }) => {
    await page.evaluate(`(async () => {
        const canvas = new OffscreenCanvas(4, 3)
        canvas.getContext('2d').fillRect(0, 0, 4, 3)
        await navigator.clipboard.write([new ClipboardItem({ 'image/png': await canvas.convertToBlob() })])
      })()`)
    await page.keyboard.press('Control+V')
    await eventually(() => rows(page, 'stored').count()).toBe(1)
    expect((await download(await linkIn(page))).subarray(1, 4).toString()).toBe('PNG')
  })

  onPage('can be URLs, typed, pasted or dropped', async ({ page }) => {
    const gate = await startGate()
    await sendUrl(page, gate.url)
    await gate.reached(1)
    await eventually(() => rows(page, 'sending').innerText()).toMatch(/^file\.txt[\s\S]*Storing…$/)
    gate.open()
    await eventually(() => rows(page, 'stored').count()).toBe(1)
    await page.evaluate(`navigator.clipboard.writeText('${gate.url}')`)
    await page.keyboard.press('Control+V')
    await eventually(() => rows(page, 'stored').count()).toBe(2)
    await drop(page, [], [{ mimeType: 'text/uri-list', data: gate.url }])
    await eventually(() => rows(page, 'stored').count()).toBe(3)
    expect((await download(await linkIn(page, 2))).toString()).toBe('the file')
  })

  onPage('show their progress, and can be cancelled and retried', async ({ page, app }) => {
    const session = await page.context().newCDPSession(page)
    const limit = (uploadThroughput: number) =>
      session.send('Network.emulateNetworkConditions', {
        ...{ offline: false, latency: 0, downloadThroughput: -1, uploadThroughput },
      })
    await limit(100_000)
    await page.setInputFiles('#files', pictureFile('a.png', makePicture(5_000_000)))
    await eventually(() => rows(page, 'sending').innerText()).toMatch(/Uploading, [1-9]\d? %/)
    expect(await page.getByRole('progressbar', { name: 'a.png' }).count()).toBe(1)
    await page.getByRole('button', { name: 'Cancel a.png' }).click()
    await eventually(() => rows(page, 'cancelled').innerText()).toMatch(/Cancelled/)
    expect(await app.files()).toEqual([])
    await limit(-1)
    await page.keyboard.press('Enter') // the focus is on the Retry button
    await eventually(() => rows(page, 'stored').count()).toBe(1)
  })
})

describe.each([
  ['desktop', { viewport: { width: 1440, height: 800 } }],
  ['phone', PHONE],
])('on a %s', (_, browser) => {
  onPage('a new upload is visible without scrolling, also after more', { browser }, async ({ page }) => {
    const isInView = () =>
      page.evaluate(
        `(({ top }) => top >= 0 && top + 100 <= innerHeight)(document.querySelector('#uploads li').getBoundingClientRect())`,
      )
    await store(page, 'a.png')
    expect(await page.evaluate('scrollY')).toBe(0)
    expect(await isInView()).toBe(true)
    for (let n = 1; n < 8; n++) await choose(page, `${n}.png`)
    await eventually(() => rows(page, 'stored').count()).toBe(8)
    expect(await rows(page, 'stored').first().innerText()).toMatch(/^7\.png/)
    expect(await isInView()).toBe(true)
    await page.getByRole('button', { name: 'Copy all' }).click()
    await eventually(() => clipboard(page)).toMatch(/\/a-.*\n(?:.*\n){6}.*\/7-/)
  })

  onPage('for 30 files the tools stay visible', { browser }, async ({ page }) => {
    await store(page, ...Array.from({ length: 30 }, (_, n) => `Screenshot from 2026-11-23 ${n}.png`))
    expect(await page.locator('#tally').innerText()).toBe('30 of 30 uploaded')
    await rows(page, 'stored').last().scrollIntoViewIfNeeded()
    expect(Number(await page.evaluate('scrollY'))).toBeGreaterThan(1000)
    for (const name of ['#tally', '#formats', '#copy-all', '#clear']) {
      const { y = -1, height = 0 } = (await page.locator(name).boundingBox()) ?? {}
      expect(y, name).toBeGreaterThanOrEqual(0)
      expect(y + height, name).toBeLessThan(250)
    }
  })
})

onPage('on a phone every control is large enough for a finger', { browser: PHONE }, async ({ page }) => {
  await store(page, 'a.png')
  const small = await page.evaluate(
    `[...document.querySelectorAll('.panel :is(button, .button, select, summary, fieldset span, input:not(.unseen, [type=radio], [type=checkbox]))')]
      .filter(e => e.checkVisibility() && e.getBoundingClientRect().height < 44).map(e => e.outerHTML)`,
  )
  expect(small).toEqual([])
  expect(await page.getByText('Drop files anywhere').isVisible()).toBe(false)
})

const FORCED_COLOURS = { browser: { forcedColors: 'active' } } as const

onPage('with forced colours a choice is visible', FORCED_COLOURS, async ({ page }) => {
  await store(page, 'a.png')
  const colours = (await page.evaluate(
    `[...document.querySelectorAll('#formats span')].map(e => getComputedStyle(e).backgroundColor)`,
  )) as string[]
  expect(colours).toHaveLength(4)
  expect(new Set(colours).size).toBe(2)
  expect(await listViolations(page)).toEqual([])
})

const images = (...allowFromRequest: string[]) => ({ images: { allowFromRequest } })
const PROVIDERS = {
  local: {
    month: place('month', {
      expiry: { default: '30d', max: '45d' },
      ...images('format', 'quality', 'size', 'stripMetadata'),
    }),
    some: place('some', images('format')),
    none: place('none'),
  },
}

const MONTH = { config: { default: 'local/month', providers: PROVIDERS } }

onPage('offers what a destination allows', MONTH, async ({ page, urls }) => {
  const times = page.getByLabel('Delete after')
  expect(await times.locator('option').allInnerTexts()).toEqual([
    '30 days (default)',
    ...['1 hour', '1 day', '7 days', '45 days'],
  ])
  await times.selectOption('7 days')
  await page.getByText('Convert and resize images').click()
  await page.getByLabel('Format').selectOption('WEBP')
  await page.getByLabel('Quality').fill('300')
  await page.getByLabel('Maximum width').fill('2')
  await page.getByLabel('Remove metadata').check()
  expect(await listViolations(page)).toEqual([])
  await page.setInputFiles('#files', pictureFile('a.png', makePicture(20_000)))
  await eventually(() => rows(page, 'stored').count()).toBe(1)
  expect(urls.find(address => address.includes('/upload?'))).toMatch(
    /\?destination=local%2Fmonth&format=webp&width=2&stripMetadata=1&expires=7d$/,
  )
  const stored = await download(await linkIn(page))
  expect(stored.subarray(8, 12).toString()).toBe('WEBP')
  const day = new Intl.DateTimeFormat('en', { dateStyle: 'medium' }).format(
    new Date(Date.now() + 7 * 86_400_000),
  )
  const text = await rows(page, 'stored').innerText()
  expect(text).toContain(`20 KB → ${stored.length} B`)
  expect(text).toContain(`Expires ${day}`)

  await page.getByLabel('Destination').selectOption('local / some')
  expect(await page.getByLabel('Maximum width').isVisible()).toBe(false)
  await page.getByLabel('Destination').selectOption('local / none')
  expect(await page.getByText('Convert and resize images').isVisible()).toBe(false)
  expect(await times.isVisible()).toBe(false)
  await store(page, 'b.png')
  expect(await rows(page, 'stored').first().innerText()).not.toMatch(/Expires/)

  // The expiry date passes.
  await page.evaluate(`for (const place of Object.keys(localStorage).filter(name => name.includes('links'))) {
        const kept = JSON.parse(localStorage.getItem(place)).filter(link => link.expiresAt)
        localStorage.setItem(place, JSON.stringify(kept.map(link => ({ ...link, expiresAt: '2026-01-01T00:00:00Z' }))))
      }`)
  await page.reload()
  await settled(page)
  expect(await page.locator('#recent').isVisible()).toBe(false)
})

onPage('recent uploads from this browser are found, copied and deleted', async ({ page }) => {
  expect(await page.locator('#recent').isVisible()).toBe(false)
  await store(page, 'holiday.png', 'invoice.png', '<b>.png')
  const link = await linkIn(page, 1)
  await page.reload()
  const kept = page.locator('#recent li')
  await page.getByText('Recent uploads').click()
  await eventually(() => kept.count()).toBe(3)
  await eventually(() => kept.locator('img').count()).toBe(3)
  expect(await listViolations(page)).toEqual([])
  await page.getByText('Markdown', { exact: true }).click()
  await page.getByLabel('Search names and links').fill('INVOICE')
  await eventually(() => kept.count()).toBe(1)
  await kept.getByRole('button', { name: 'Copy invoice.png' }).click()
  await eventually(() => clipboard(page)).toBe(`![invoice.png](${link})`)
  await page.getByLabel('Search names and links').fill('nothing like it')
  await eventually(() => page.locator('#recent').innerText()).toMatch(/No matching uploads/)
  await page.getByRole('button', { name: 'Delete this browser’s list' }).click()
  await page.reload()
  expect(await page.locator('#recent').isVisible()).toBe(false)
  expect(await page.evaluate(`Object.keys(localStorage).join()`)).not.toContain('links')
})

const HISTORY = { config: { ...WITH_KEY, page: { history: true } } }

onPage('with page.history they come from the server', HISTORY, async ({ page, app }) => {
  await giveKey(page)
  await eventually(() => page.getByLabel('Destination').count()).toBe(1)
  await store(page, 'holiday.png')
  const form = new FormData()
  form.append('file', new Blob([Buffer.from(makePicture(300))]), 'by-curl.png')
  const address = `${app.url}/upload?${new URLSearchParams({ key: KEY })}`
  expect((await fetch(address, { method: 'POST', body: form })).status).toBe(200)
  const kept = page.locator('#recent li')
  await page.getByText('Your recent uploads').click()
  await eventually(() => kept.locator('bdi').allInnerTexts()).toEqual(['by-curl.png', 'holiday.png'])
  expect(await listViolations(page)).toEqual([])
  await page.getByLabel('Search names and links').fill('CURL')
  await eventually(() => kept.count()).toBe(1)
  await page.route('**/history?*', route => route.fulfill({ status: 502, body: '<h1>Bad gateway</h1>' }))
  await page.getByLabel('Search names and links').fill('')
  await eventually(() => kept.locator('bdi').allInnerTexts()).toEqual(['holiday.png'])
  expect(await page.locator('#recent').innerText()).toMatch(
    /^Recent uploads from this browser[\s\S]*can’t be shown: .+\. This is the list kept by this browser/,
  )
})

onPage('asks before leaving while an upload is in progress, and not after', async ({ page, app }) => {
  const asked: string[] = []
  page.on('dialog', dialog => {
    asked.push(dialog.type())
    void dialog.accept()
  })
  const gate = await startGate()
  await sendUrl(page, gate.url)
  await gate.reached(1)
  await page.goto(`${app.url}/?lang=zh`)
  expect(asked).toEqual(['beforeunload'])
  gate.open()
  await store(page, 'a.png')
  await page.goto(app.url)
  expect(asked).toHaveLength(1)
})

onPage('links are copied as URL, Markdown, HTML and BBCode, one or all', async ({ page }) => {
  await page.setInputFiles('#files', [
    pictureFile('a [1] "&.png'),
    { name: 'n [2].txt', mimeType: '', buffer: Buffer.from('text') },
  ])
  await eventually(() => rows(page, 'stored').count()).toBe(2)
  const [a, b] = [await linkIn(page, 0), await linkIn(page, 1)]
  const formats = {
    URL: [a, b],
    Markdown: [`![a \\[1\\] "&.png](${a})`, `[n \\[2\\].txt](${b})`],
    HTML: [`<img src="${a}" alt="a [1] &quot;&amp;.png">`, `<a href="${b}">n [2].txt</a>`],
    BBCode: [`[img]${a}[/img]`, `[url=${b}]n 2.txt[/url]`],
  }
  for (const [format, links] of Object.entries(formats)) {
    await page.getByText(format, { exact: true }).click()
    await page.getByRole('button', { name: 'Copy a [1]' }).click()
    await eventually(() => clipboard(page)).toBe(links[0])
    await page.getByRole('button', { name: 'Copy all' }).click()
    await eventually(() => clipboard(page)).toBe(links.join('\n'))
  }
  await page.getByRole('button', { name: 'Clear the list' }).click()
  expect(await page.locator('#uploads').isVisible()).toBe(false)
})

onPage('copying also works without TLS', { config: OPEN }, async ({ page, app }) => {
  await page.goto(elsewhere(app))
  expect(await page.evaluate('isSecureContext')).toBe(false)
  await page.getByText('Terminal and programs').click()
  await page.getByRole('button', { name: 'Copy curl' }).click()
  await eventually(() => page.getByRole('status').innerText()).toBe('Copied')
  await page.locator('#url-text').focus()
  await page.keyboard.press('Control+V')
  expect(await page.locator('#url-text').inputValue()).toMatch(
    /^curl -F file=@picture\.png http:\S+\/upload$/,
  )
})

describe('a failure', () => {
  const NO_URLS = { config: { sources: { url: { enabled: false } } } }

  onPage('has title, message and code, and a retry', NO_URLS, async ({ page }) => {
    await sendUrl(page, 'http://files.example/big.png')
    const row = rows(page, 'failed')
    await eventually(() => row.innerText()).toMatch(/source is not allowed/)
    expect(await row.innerText()).toMatch(/sources\.url[\s\S]*source_forbidden · request [0-9a-f-]{36}/)
    expect(await page.getByRole('status').innerText()).toBe('big.png: This source is not allowed')
    expect(await page.getByRole('button', { name: 'Copy all' }).isDisabled()).toBe(true)
    expect(await listViolations(page)).toEqual([])
    await page.getByRole('button', { name: 'Retry big.png' }).click()
    await eventually(() => row.count()).toBe(1)
  })

  onPage('of the connection is retried automatically', async ({ page, app, errors }) => {
    await page.route('**/upload?*', route => route.abort())
    await page.route('**/heartbeat', route => route.abort())
    await choose(page, ...Array.from({ length: 8 }, (_, n) => `${n}.png`))
    await eventually(() => page.locator('#tally').innerText()).toMatch(/· waiting for the server$/)
    expect(await rows(page, 'failed').first().innerText()).toMatch(
      /can’t be reached\s+The upload is retried automatically when/,
    )
    // The other uploads wait for the server.
    expect(await rows(page, 'waiting').count()).toBeGreaterThan(0)
    expect(await listViolations(page)).toEqual([])
    await page.unrouteAll()
    await eventually(() => rows(page, 'stored').count()).toBe(8)
    expect(await page.locator('#tally').innerText()).toBe('8 of 8 uploaded')
    expect(await app.files()).toHaveLength(8)
    errors.length = 0
  })

  onPage('of a reverse proxy is shown as such, and is not retried automatically', async ({ page, urls }) => {
    await page.route('**/upload?*', route => route.fulfill({ status: 413, body: '<html>nginx</html>' }))
    await choose(page, 'a.png', 'b.png')
    await eventually(() => rows(page, 'failed').count()).toBe(2)
    expect(await rows(page, 'failed').first().innerText()).toMatch(/not from this server.*status 413/s)
    const before = urls.length
    await page.getByRole('button', { name: 'Retry a.png' }).click()
    await eventually(() => urls.length).toBe(before + 1)
    await eventually(() => rows(page, 'failed').count()).toBe(2)
    expect(await page.locator('#tally').innerText()).toBe('0 of 2 uploaded · 2 failed')
    await page.unroute('**/upload?*')
    await page.getByRole('button', { name: 'Retry all' }).click()
    await eventually(() => rows(page, 'stored').count()).toBe(2)
    expect(await page.getByRole('button', { name: 'Retry all' }).isVisible()).toBe(false)
  })

  it('of a post-upload step is completed by its ID, without uploading again', async context => {
    const broken = join(await makeDirectory(), 'broken')
    await writeFile(broken, '')
    const hook = { name: 'announce', command: ['sh', '-c', `! test -e ${broken}`] }
    await visit(
      context,
      async ({ page, urls, app }) => {
        await choose(page, 'a.png')
        const row = rows(page, 'pending')
        await eventually(() => row.innerText()).toMatch(
          /post-upload step failed[\s\S]*hook "announce" failed/,
        )
        expect(await listViolations(page)).toEqual([])
        await page.getByRole('button', { name: 'Complete a.png' }).click()
        await eventually(() => urls.filter(url => /finalizationId=/.test(url)).length).toBe(1)
        await eventually(() => row.count()).toBe(1)
        await rm(broken)
        await page.getByRole('button', { name: 'Complete a.png' }).click()
        await eventually(() => rows(page, 'stored').count()).toBe(1)
        await download(await linkIn(page))
        expect(urls.filter(url => url.includes('/upload?destination='))).toHaveLength(1)
        expect(await app.files()).toHaveLength(1)
      },
      { config: { finalization: { hooks: [hook] } } },
    )
  })
})

describe('the key', () => {
  const providers = { local: { secretblog: place('a'), otherblog: place('b') } }
  const config = { ...WITH_KEY, providers, default: 'local/secretblog' }

  onPage('allows uploads, and appears in no URL, log or storage', { config }, async ({ page, app, urls }) => {
    expect(await page.content()).not.toMatch(/secretblog|otherblog/)
    await choose(page, 'a.png')
    await eventually(() => rows(page, 'failed').innerText()).toMatch(
      /An upload key is required\s+Enter your key above/,
    )
    expect(await rows(page, 'failed').innerText()).not.toMatch(/query|Bearer/)
    await giveKey(page, 'mistaken')
    await eventually(() => page.getByRole('status').innerText()).toBe('The key is not accepted.')
    expect(await page.locator('#visitor').innerText()).toMatch(/^The key is not accepted\.\n/)
    expect(await listViolations(page)).toEqual([])
    expect(await page.content()).not.toMatch(/secretblog|otherblog/)
    await giveKey(page)
    await eventually(() => page.locator('#visitor').innerText()).toMatch(/^Your key is accepted\./)
    expect(await page.getByLabel('Destination').innerText()).toMatch(/local \/ secretblog \(default\)/)
    expect(await page.locator('#destinations').textContent()).toMatch(/destination=local\/otherblog/)

    // The upload that was rejected without a key is retried automatically.
    await eventually(() => rows(page, 'stored').count()).toBe(1)
    await page.getByLabel('Destination').selectOption('local / otherblog')
    await store(page, 'b.png')
    expect(await linkIn(page)).toMatch(/\/files\/otherblog\//)

    expect(urls.map(decodeURIComponent).join() + app.rawLog()).not.toMatch(/schl|mistaken/)
    expect(
      await page.evaluate('JSON.stringify([{ ...sessionStorage }, { ...localStorage }, document.cookie])'),
    ).not.toMatch(/schl|mistaken|钥匙/)
    await page.reload()
    expect(await page.content()).not.toMatch(/secretblog|otherblog/)
  })

  onPage('is remembered on this device until the visitor says no', { config }, async ({ page }) => {
    await page.getByLabel('Remember the key').check()
    await giveKey(page)
    await eventually(() => page.getByLabel('Destination').count()).toBe(1)
    const other = await page.context().newPage()
    await other.goto(page.url())
    await settled(other)
    expect(await other.getByLabel('Destination').count()).toBe(1)
    await other.locator('#key summary').click()
    await other.getByLabel('Remember the key').uncheck()
    await page.reload()
    await settled(page)
    expect(await page.getByLabel('Destination').count()).toBe(0)
  })
})

const ONE_AND_TWO = {
  config: { default: 'local/one', providers: { local: { one: place('a'), two: place('b') } } },
}

onPage('remembers the choices of a visitor', ONE_AND_TWO, async ({ page }) => {
  await store(page, 'a.png')
  await page.getByText('Markdown', { exact: true }).click()
  await page.getByLabel('Copy new links automatically').check()
  await page.getByLabel('Destination').selectOption('local / two')
  await page.reload()
  await settled(page)
  await choose(page, 'b.png', 'c.png')
  await eventually(() => clipboard(page)).toMatch(
    /^!\[b\.png\]\(http.*\/files\/two\/\S+\)\n!\[c\.png\]\(http.*\/files\/two\/\S+\)$/,
  )
  expect(await page.getByRole('status').innerText()).toBe('Links copied: 2')
})

onPage('says where links are local, and shows a QR code', { config: OPEN }, async ({ page, app }) => {
  const note = page.locator('#local')
  expect(await note.isVisible()).toBe(false)
  await store(page, 'a.png')
  expect(await note.isVisible()).toBe(true)
  await page.getByRole('button', { name: 'QR code a.png' }).click()
  await page.getByRole('img', { name: await linkIn(page) }).waitFor()
  expect(await page.evaluate(`document.querySelector('#qr img').naturalWidth`)).toBeGreaterThan(20)
  expect(await listViolations(page)).toEqual([])
  await page.getByRole('button', { name: 'Close' }).click()
  await page.goto(elsewhere(app))
  await store(page, 'b.png')
  expect(await note.isVisible()).toBe(false)
})

const converts = place('b', { images: { allowFromRequest: ['format'] } })
const heic = Buffer.from('\0\0\0\x18ftypheic\0\0\0\0mif1heic')

const CONVERTS = { config: { default: 'local/plain', providers: { local: { plain: place('a'), converts } } } }

onPage('warns of HEIC, and offers JPEG', CONVERTS, async ({ page, urls }) => {
  const add = () => page.setInputFiles('#files', { name: 'a.heic', mimeType: 'image/heic', buffer: heic })
  await add()
  await eventually(() => rows(page, 'stored').innerText()).toMatch(/Most browsers can’t show HEIC/)
  expect(await page.getByRole('button', { name: 'Upload as JPEG' }).count()).toBe(0)
  await page.getByLabel('Destination').selectOption('local / converts')
  await add()
  await page.getByRole('button', { name: 'Upload as JPEG a.heic' }).click()
  await eventually(() => urls.filter(url => /converts&format=jpeg$/.test(url)).length).toBe(1)
  await eventually(() => rows(page, 'sending').count()).toBe(0)
})

onPage('the documentation is folded, and its examples can be copied', async ({ page }) => {
  expect(await page.locator('#guide details[open]').count()).toBe(0)
  for (const section of await page.locator('#guide summary').all()) await section.click()
  expect(await listViolations(page)).toEqual([])
  for (const [name, command] of [
    ['curl', /^curl -F file=@picture\.png http:\S+\/upload$/],
    ['Or send the file as the request body', /^curl .*-T picture\.png http:\S+\/upload\/$/],
    ['CI', /^upload-server upload --server http:\S+ screenshots\/$/],
  ] as const) {
    await page.getByRole('button', { name: `Copy ${name}` }).click()
    await eventually(() => clipboard(page)).toMatch(command)
  }
})

it('works behind nginx with a path prefix and a password, which its examples send', async context => {
  needs(context, 'nginx', 'nginx-light')
  const port = await findFreePorts()
  const url = `http://127.0.0.1:${port}/deep/img`
  const directory = await makeDirectory()
  await writeFile(join(directory, 'htpasswd'), 'me:{PLAIN}secret-word\n')
  const work: Work = async ({ page, app, urls }) => {
    await runNginx(
      `server { listen 127.0.0.1:${port}; location /deep/img/ {
         auth_basic files; auth_basic_user_file htpasswd;
         proxy_pass ${app.url}/; proxy_set_header X-Forwarded-For $remote_addr;
         proxy_set_header Authorization "Bearer upload-key-of-the-proxy"; } }`,
      { directory, port },
    )
    urls.length = 0
    for (const path of ['/', '/upload', '/upload/']) {
      await page.goto(url + path)
      await settled(page)
      await store(page, 'a.png')
    }
    expect(urls.filter(one => !one.startsWith(url) && !/^(?:data|blob):/.test(one))).toEqual([])
    expect(await page.locator('#visitor').innerText()).toMatch(/^You are signed in\. No key is needed\./)
    expect(await page.locator('#key').isVisible()).toBe(false)
    const examples = (await page.locator('pre').allTextContents()).join('\n')
    expect(examples).toContain(`curl -u "$UPLOAD_USER" -F file=@picture.png ${url}/upload`)
    expect(examples).toContain(`--server ${url.replace('://', '://NAME:PASSWORD@')}`)
    expect(examples).not.toMatch(/UPLOAD_KEY/)
    expect(await page.content()).not.toMatch(/upload-key-of-the-proxy|secret-word/)
    expect(await listViolations(page)).toEqual([])
  }
  const server = { publicUrl: url, trustProxy: ['loopback'], key: 'upload-key-of-the-proxy' }
  await visit(context, work, {
    config: { server, auth: { loopbackExempt: false } },
    browser: { httpCredentials: { username: 'me', password: 'secret-word' } },
  })
})

describe.each(['en', 'zh-CN'])('in %s', locale => {
  const options = { config: { limits: { fileSize: '2000B' } }, browser: { locale } }
  onPage('axe finds nothing, and no width scrolls sideways', options, async ({ page, urls }) => {
    const gate = await startGate()
    await page.setInputFiles('#files', [
      pictureFile('a-name-without-any-place-to-break-it-into-two-lines-'.repeat(3) + '.png'),
      pictureFile('big.png', makePicture(5000)),
    ])
    await sendUrl(page, gate.url)
    for (const state of ['stored', 'failed', 'sending'])
      await eventually(() => rows(page, state).count()).toBe(1)
    expect(urls.filter(address => address.includes('/upload?'))).toHaveLength(2) // the large file was not sent
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      for (const width of [360, 768, 1440]) {
        await page.setViewportSize({ width, height: 800 })
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
      }
      expect(await listViolations(page), colorScheme).toEqual([])
    }
    gate.open()
    await eventually(() => rows(page, 'stored').count()).toBe(2)
    const isChinese = locale === 'zh-CN'
    expect(await rows(page, 'failed').innerText()).toMatch(
      isChinese ? /文件过大\s+单个文件不能超过/ : /File too large\s+The maximum file size is 2\.0 KB/,
    )
    await page.evaluate(
      "for (const e of document.querySelectorAll('pre, code, .reason, .name, .link, #status')) e.remove()",
    )
    const text = await page.locator('body').innerText()
    expect(/\b(?:the|and|a|to|is|copy|file|key)\b/i.test(text)).toBe(!isChinese)
    await page.getByRole('link', { name: isChinese ? 'English' : '中文' }).click()
    await eventually(() => page.locator('html').getAttribute('lang')).toBe(isChinese ? 'en' : 'zh-Hans')
  })
})

onPage('everything is reachable with the keyboard', async ({ page }) => {
  await store(page, 'a.png')
  await page.locator('#programs > summary').click()
  await page.mouse.click(5, 5)
  const reached = new Set<string>()
  for (let n = 0; n < 40; n++) {
    await page.keyboard.press('Tab')
    const name = `(e => e === document.body ? '' : e.getAttribute('aria-label') || e.id || e.textContent)(document.activeElement)`
    reached.add(String(await page.evaluate(name)).trim())
  }
  const controls = ['中文', 'destination', 'files', 'url-text', 'Upload', 'copy-all']
  const wanted = [...controls, 'Link of a.png', 'Copy a.png', 'Open a.png', 'Copy curl']
  expect([...reached]).toEqual(expect.arrayContaining(wanted))
})

const NO_SCRIPT = { browser: { javaScriptEnabled: false } }

onPage('without JavaScript it is documentation', NO_SCRIPT, async ({ page, app }) => {
  await page.locator('#programs > summary').click()
  const text = await page.locator('body').innerText()
  expect(text).toContain(`curl -F file=@picture.png ${app.url}/upload`)
  expect(text).toContain('needs JavaScript')
  expect(await page.getByRole('button').count()).toBe(0)
  expect(await page.locator('.panel').isVisible()).toBe(false)
})

it('attack: a page of another site can’t read destination names from it, or show it in a frame', async context => {
  const config = { providers: { local: { secretblog: place('a') } } }
  await visit(
    context,
    async ({ page, app, errors }) => {
      expect(await page.content()).toContain('secretblog')
      const { port } = new URL(app.url)
      await page.goto(`http://evil.example:${port}/heartbeat`)
      const texts = (await page.evaluate(`Promise.all([
        fetch('${app.url}/').then(r => r.text()),
        fetch('/').then(r => r.text()),
        fetch('${app.url}/', { headers: { 'X-Upload-Key': 'guess' } }).then(r => r.text()),
      ])`)) as string[]
      for (const text of texts) {
        expect(text).toContain('<h1>')
        expect(text).not.toContain('secretblog')
      }
      const framed = await page.evaluate(`new Promise(resolve => {
        const frame = document.createElement('iframe')
        frame.onload = () => { try { resolve(frame.contentDocument === null) } catch { resolve(true) } }
        frame.src = '${app.url}/'
        document.body.append(frame)
      })`)
      expect(framed).toBe(true)
      expect(page.frames()[1]?.url()).not.toContain(app.url)
      errors.length = 0 // the one of the blocked frame
    },
    { config },
  )
})
