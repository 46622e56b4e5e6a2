import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { describe, expect, it, type TestContext } from 'vitest'
import { runNginx } from '../helpers/behind-proxy.ts'
import { inBrowser, type Page } from '../helpers/browser.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { download } from '../helpers/form.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { startGate } from '../helpers/gate.ts'
import { needs } from '../helpers/needs.ts'
import { makePicture } from '../helpers/picture.ts'
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

interface VisitOptions {
  config?: Record<string, unknown>
  path?: string
  /** Opens the page at another base URL. */
  url?: string
  browser?: Parameters<typeof inBrowser>[2]
}

/** Opens the page of a new server. The browser must report no errors except for rejected requests. */
async function visit(
  context: TestContext,
  work: (visit: Visit) => Promise<void>,
  { config, path = '/', url, browser }: VisitOptions = {},
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
      await page.goto((url ?? app.url) + path)
      await settled(page)
      await work(seen)
      expect(
        seen.errors.filter(text => !/the server responded with a status of (?:4|502)/.test(text)),
      ).toEqual([])
    },
    options,
  )
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
  it('that are chosen are stored, several at once and under one name, and have thumbnails', async context => {
    await visit(context, async ({ page, app }) => {
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
      expect(await page.getByRole('status').innerText()).toMatch(/was uploaded\.$/)
      expect(await page.locator('#tally').innerText()).toBe('3 of 3 uploaded')
    })
  })

  it('that are dropped anywhere are stored; a folder is rejected with the reason', async context => {
    await visit(context, async ({ page, app }) => {
      const folder = join(app.directory, 'folder')
      await mkdir(folder)
      const files = ['a.png', 'b.png'].map(name => join(folder, name))
      for (const file of files) await writeFile(file, makePicture())
      await drop(page, [...files, folder])
      await eventually(() => rows(page, 'stored').count()).toBe(2)
      expect(await rows(page, 'failed').allInnerTexts()).toEqual([
        expect.stringMatching(
          /^folder\s+Folders can’t be uploaded\s+Choose the files in the folder instead\.$/,
        ),
      ])
    })
  })

  it('that are pasted are stored', async context => {
    await visit(context, async ({ page }) => {
      await page.evaluate(`(async () => {
        const canvas = new OffscreenCanvas(4, 3)
        canvas.getContext('2d').fillRect(0, 0, 4, 3)
        await navigator.clipboard.write([new ClipboardItem({ 'image/png': await canvas.convertToBlob() })])
      })()`)
      await page.keyboard.press('Control+V')
      await eventually(() => rows(page, 'stored').count()).toBe(1)
      expect((await download(await linkIn(page))).subarray(1, 4).toString()).toBe('PNG')
    })
  })

  it('can be URLs, typed, pasted or dropped', async context => {
    await visit(context, async ({ page }) => {
      const gate = await startGate()
      gate.open()
      await page.getByLabel('Or enter the URL of a file').fill(gate.url)
      await page.getByRole('button', { name: 'Upload', exact: true }).click()
      await eventually(() => rows(page, 'stored').count()).toBe(1)
      await page.evaluate(`navigator.clipboard.writeText('${gate.url}')`)
      await page.keyboard.press('Control+V')
      await eventually(() => rows(page, 'stored').count()).toBe(2)
      await drop(page, [], [{ mimeType: 'text/uri-list', data: gate.url }])
      await eventually(() => rows(page, 'stored').count()).toBe(3)
      expect((await download(await linkIn(page, 2))).toString()).toBe('the file')
    })
  })

  it('show their progress, and can be cancelled and retried', async context => {
    await visit(context, async ({ page, app }) => {
      const session = await page.context().newCDPSession(page)
      const limit = (uploadThroughput: number) =>
        session.send('Network.emulateNetworkConditions', {
          offline: false,
          latency: 0,
          downloadThroughput: -1,
          uploadThroughput,
        })
      await limit(100_000)
      await page.setInputFiles('#files', pictureFile('a.png', makePicture(5_000_000)))
      await eventually(() => rows(page, 'sending').innerText()).toMatch(/Uploading, [1-9]\d? %/)
      const pace = /[\d.]+ (?:KB|MB) of 4\.8 MB · [\d.]+ KB\/s · \d+ (?:sec|min) left/
      await eventually(() => rows(page, 'sending').innerText()).toMatch(pace)
      expect(await page.getByRole('progressbar', { name: 'a.png' }).count()).toBe(1)
      await page.getByRole('button', { name: 'Cancel a.png' }).click()
      await eventually(() => rows(page, 'cancelled').innerText()).toMatch(/Cancelled/)
      expect(await app.files()).toEqual([])
      await limit(-1)
      await page.keyboard.press('Enter') // the focus is on the Retry button
      await eventually(() => rows(page, 'stored').count()).toBe(1)
    })
  })

  it('show that the destination is storing them', async context => {
    await visit(context, async ({ page }) => {
      const gate = await startGate()
      await page.locator('#url-text').fill(gate.url)
      await page.locator('#url button').click()
      await gate.reached(1)
      await eventually(() => rows(page, 'sending').innerText()).toMatch(/^file\.txt[\s\S]*Storing…$/)
      gate.open()
      await eventually(() => rows(page, 'stored').count()).toBe(1)
    })
  })
})

it.for([
  [360, 640],
  [1440, 800],
] as const)(
  'at %i × %i a new upload is visible without scrolling, also after more',
  async ([width, height], context) => {
    await visit(context, async ({ page }) => {
      await page.setViewportSize({ width, height })
      const isInView = (n: number) =>
        page.evaluate(
          `(({ top, bottom }) => top >= 0 && bottom <= innerHeight)(document.querySelectorAll('#uploads li')[${n}].getBoundingClientRect())`,
        )
      await page.setInputFiles('#files', pictureFile('a.png'))
      await eventually(() => rows(page, 'stored').count()).toBe(1)
      expect(await page.evaluate('scrollY')).toBe(0)
      expect(await isInView(0)).toBe(true)
      for (let n = 1; n < 8; n++) await page.setInputFiles('#files', pictureFile(`${n}.png`))
      await eventually(() => rows(page, 'stored').count()).toBe(8)
      expect(await rows(page, 'stored').first().innerText()).toMatch(/^7\.png/)
      expect(await isInView(0)).toBe(true)
      await page.getByRole('button', { name: 'Copy all' }).click()
      await eventually(() => clipboard(page)).toMatch(/\/a-.*\n(?:.*\n){6}.*\/7-/)
    })
  },
)

it.for([
  ['desktop', { viewport: { width: 1280, height: 800 } }],
  ['phone', { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }],
] as const)(
  'for 30 files on a %s the tally and the buttons for all files stay visible, with the end of each link',
  async ([, browser], context) => {
    await visit(
      context,
      async ({ page }) => {
        const gate = await startGate()
        await page.locator('#url-text').fill(gate.url)
        await page.locator('#url button').click()
        await page.setInputFiles(
          '#files',
          Array.from({ length: 29 }, (_, n) => pictureFile(`Screenshot from 2026-11-23 ${n}.png`)),
        )
        await eventually(() => rows(page, 'stored').count()).toBe(29)
        await eventually(() => page.locator('#tally').innerText()).toBe('29 of 30 uploaded')
        const total = page.getByRole('progressbar', { name: 'Progress of all files' })
        expect(Number(await total.getAttribute('value'))).toBeGreaterThan(0.9)
        expect(await listViolations(page)).toEqual([])
        gate.open()
        await eventually(() => page.locator('#tally').innerText()).toBe('30 of 30 uploaded')
        expect(await total.isVisible()).toBe(false)

        await rows(page, 'stored').last().scrollIntoViewIfNeeded()
        expect(Number(await page.evaluate('scrollY'))).toBeGreaterThan(1000)
        for (const name of ['#tally', '#formats', '#copy-all', '#clear']) {
          const box = await page.locator(name).boundingBox()
          expect(box?.y, name).toBeGreaterThanOrEqual(0)
          expect((box?.y ?? 0) + (box?.height ?? 0), name).toBeLessThan(250)
        }
        await page.getByRole('button', { name: 'Copy all' }).click()
        await eventually(async () => String(await clipboard(page)).split('\n').length).toBe(30)

        // Links are shortened in the middle: the end is visible, and the whole text can be selected.
        const [beginsBefore, isCut, isWhole] = (await page.evaluate(`(() => {
          const link = [...document.querySelectorAll('#uploads .link')].at(5)
          const end = document.createRange()
          end.selectNodeContents(link.lastChild)
          link.focus()
          return [
            end.getBoundingClientRect().right <= link.getBoundingClientRect().right,
            link.firstChild.scrollWidth > link.firstChild.clientWidth,
            getSelection().toString(),
          ]
        })()`)) as [boolean, boolean, string]
        expect([beginsBefore, isCut]).toEqual([true, true])
        expect(isWhole).toMatch(/^http:\/\/\S+\/Screenshot\S+\.png$/)
      },
      { browser },
    )
  },
)

it('on a phone every control is large enough for a finger', async context => {
  await visit(
    context,
    async ({ page }) => {
      await page.setInputFiles('#files', pictureFile('a.png'))
      await eventually(() => rows(page, 'stored').count()).toBe(1)
      const small = await page.evaluate(
        `[...document.querySelectorAll('.panel :is(button, .button, select, summary, fieldset span, input:not(.unseen, [type=radio], [type=checkbox]))')]
          .filter(e => e.checkVisibility() && e.getBoundingClientRect().height < 44).map(e => e.outerHTML)`,
      )
      expect(small).toEqual([])
      expect(await page.getByText('Drop files anywhere').isVisible()).toBe(false)
    },
    { browser: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true } },
  )
})

it('with forced colours, the chosen format still differs from the others', async context => {
  await visit(
    context,
    async ({ page }) => {
      await page.setInputFiles('#files', pictureFile('a.png'))
      await eventually(() => rows(page, 'stored').count()).toBe(1)
      const colours = (await page.evaluate(
        `[...document.querySelectorAll('#formats span')].map(e => getComputedStyle(e).backgroundColor)`,
      )) as string[]
      expect(colours).toHaveLength(4)
      expect(new Set(colours).size).toBe(2)
      expect(await listViolations(page)).toEqual([])
    },
    { browser: { forcedColors: 'active' } },
  )
})

it('offers the expiry times of a destination, and shows when a link expires and how many bytes were stored', async context => {
  const place = (name: string, more: object) => ({ directory: name, serve: true, ...more })
  const providers = {
    local: {
      month: place('month', {
        expiry: { default: '30d', max: '45d' },
        images: { allowFromRequest: ['format'] },
      }),
      stays: place('stays', {}),
    },
  }
  await visit(
    context,
    async ({ page, urls }) => {
      const field = page.getByLabel('Delete after')
      expect(await field.locator('option').allInnerTexts()).toEqual([
        '30 days (default)',
        ...['1 hour', '1 day', '7 days', '45 days'],
      ])
      expect(await listViolations(page)).toEqual([])
      await field.selectOption('7 days')
      await page.getByText('Convert and resize images').click()
      await page.getByLabel('Format').selectOption('WEBP')
      await page.setInputFiles('#files', pictureFile('a.png', makePicture(20_000)))
      await eventually(() => rows(page, 'stored').count()).toBe(1)
      expect(urls.find(address => address.includes('/upload?'))).toMatch(/&expires=7d$/)
      const size = (await download(await linkIn(page))).length
      expect(await rows(page, 'stored').innerText()).toContain(`20 KB → ${size} B`)
      const week = new Date(Date.now() + 7 * 86_400_000)
      const day = new Intl.DateTimeFormat('en', { dateStyle: 'medium' }).format(week)
      expect(await rows(page, 'stored').innerText()).toContain(`Expires ${day}`)

      await page.reload()
      await page.getByText('Recent uploads').click()
      await eventually(() => page.locator('#recent li').innerText()).toContain(`Expires ${day}`)
      // The expiry date passes.
      await page.evaluate(`for (const place of Object.keys(localStorage)) {
        const [kept] = JSON.parse(localStorage.getItem(place))
        localStorage.setItem(place, JSON.stringify([{ ...kept, expiresAt: '2026-01-01T00:00:00Z' }]))
      }`)
      await page.reload()
      expect(await page.locator('#recent').isVisible()).toBe(false)

      await page.getByLabel('Destination').selectOption('local / stays')
      expect(await field.isVisible()).toBe(false)
      await page.setInputFiles('#files', pictureFile('b.png'))
      await eventually(() => rows(page, 'stored').innerText()).not.toMatch(/Expires/)
    },
    { config: { default: 'local/month', providers } },
  )
})

it('offers only the image options that the chosen destination allows', async context => {
  const place = (name: string, requests: string[]) => ({
    directory: name,
    serve: true,
    images: { allowFromRequest: requests },
  })
  const providers = {
    local: {
      all: place('all', ['format', 'quality', 'size', 'stripMetadata']),
      none: place('none', []),
      some: place('some', ['format']),
    },
  }
  await visit(
    context,
    async ({ page, urls }) => {
      await page.getByText('Convert and resize images').click()
      await page.getByLabel('Format').selectOption('WEBP')
      await page.getByLabel('Quality').fill('300')
      await page.getByLabel('Maximum width').fill('2')
      await page.getByLabel('Remove metadata').check()
      expect(await listViolations(page)).toEqual([])
      await page.setInputFiles('#files', pictureFile('a.png'))
      await eventually(() => rows(page, 'stored').count()).toBe(1)
      expect((await download(await linkIn(page))).subarray(8, 12).toString()).toBe('WEBP')
      expect(urls.find(address => address.includes('/upload?'))).toMatch(
        /\?destination=local%2Fall&format=webp&width=2&stripMetadata=1$/,
      )
      await page.getByLabel('Destination').selectOption('local / some')
      expect(await page.getByLabel('Maximum width').isVisible()).toBe(false)
      await page.getByLabel('Destination').selectOption('local / none')
      expect(await page.getByText('Convert and resize images').isVisible()).toBe(false)
      await page.setInputFiles('#files', pictureFile('b.png'))
      await eventually(() => rows(page, 'stored').count()).toBe(2)
    },
    { config: { default: 'local/all', providers } },
  )
})

it('recent uploads from this browser are found, copied and deleted', async context => {
  await visit(context, async ({ page }) => {
    expect(await page.locator('#recent').isVisible()).toBe(false)
    await page.setInputFiles('#files', [
      pictureFile('holiday.png'),
      pictureFile('invoice.png'),
      pictureFile('<b>.png'),
    ])
    await eventually(() => rows(page, 'stored').count()).toBe(3)
    const link = await linkIn(page, 1)
    await page.reload()
    expect(await page.locator('#uploads').isVisible()).toBe(false)
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
    expect(await page.evaluate(`Object.keys(localStorage).filter(name => name.includes('links'))`)).toEqual(
      [],
    )
  })
})

it('with page.history the list comes from the server for a key, and from the browser if that fails', async context => {
  await visit(
    context,
    async ({ page, app }) => {
      await page.setInputFiles('#files', pictureFile('holiday.png'))
      await page.locator('#key-text').fill(KEY)
      await page.locator('#key-form button').click()
      await eventually(() => rows(page, 'stored').count()).toBe(1)
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
      await kept.getByRole('button', { name: 'Copy by-curl.png' }).click()
      await eventually(() => clipboard(page)).toMatch(/by-curl/)
      await page.route('**/history?*', route => route.fulfill({ status: 502, body: '<h1>Bad gateway</h1>' }))
      await page.getByLabel('Search names and links').fill('')
      await eventually(() => kept.locator('bdi').allInnerTexts()).toEqual(['holiday.png'])
      expect(await page.locator('#recent').innerText()).toMatch(
        /can’t be shown: .+\. This is the list kept by this browser/,
      )
      expect(await page.getByText('Recent uploads from this browser').isVisible()).toBe(true)
      expect(await listViolations(page)).toEqual([])
    },
    { config: { ...WITH_KEY, page: { history: true } } },
  )
})

it('a white image has a border, and Open shows the stored file', async context => {
  await visit(context, async ({ page }) => {
    await page.setInputFiles('#files', pictureFile('a.png'))
    await eventually(() => rows(page, 'stored').count()).toBe(1)
    expect(
      await page.evaluate(`getComputedStyle(document.querySelector('#uploads .thumb')).borderTopWidth`),
    ).toBe('1px')
    const opener = page.getByRole('link', { name: 'Open a.png' })
    expect(await opener.getAttribute('href')).toBe(await linkIn(page))
    const [opened] = await Promise.all([page.waitForEvent('popup'), opener.click()])
    await opened.waitForLoadState()
    expect(opened.url()).toBe(await linkIn(page))
  })
})

it('asks before leaving while an upload is in progress, and not after', async context => {
  await visit(context, async ({ page, app }) => {
    const asked: string[] = []
    page.on('dialog', dialog => {
      asked.push(dialog.type())
      void dialog.accept()
    })
    const gate = await startGate()
    await page.locator('#url-text').fill(gate.url)
    await page.locator('#url button').click()
    await gate.reached(1)
    await page.goto(`${app.url}/?lang=zh`)
    expect(asked).toEqual(['beforeunload'])
    gate.open()
    await page.setInputFiles('#files', pictureFile('a.png'))
    await eventually(() => rows(page, 'stored').count()).toBe(1)
    await page.goto(app.url)
    expect(asked).toHaveLength(1)
  })
})

it('links are copied as URL, Markdown, HTML and BBCode, one or all', async context => {
  await visit(context, async ({ page }) => {
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
    await page.getByText('Terminal and programs').last().click()
    await page.getByRole('button', { name: 'Copy curl' }).click()
    await eventually(() => clipboard(page)).toMatch(/^curl -F file=@picture\.png http:\S+\/upload$/)
    await page.getByRole('button', { name: 'Copy Or send the file as the request body' }).click()
    await eventually(() => clipboard(page)).toMatch(/^curl .*-T picture\.png http:\S+\/upload\/$/)
    await page.getByRole('button', { name: 'Clear the list' }).click()
    expect(await page.locator('#uploads').isVisible()).toBe(false)
  })
})

it('copying also works without TLS, where browsers offer no clipboard API', async context => {
  const config = { server: { allowedHosts: ['img.example.com'] }, auth: { anonymous: true } }
  await visit(
    context,
    async ({ page, app }) => {
      await page.goto(`http://img.example.com:${new URL(app.url).port}/`)
      expect(await page.evaluate('isSecureContext')).toBe(false)
      await page.getByText('Terminal and programs').last().click()
      await page.getByRole('button', { name: 'Copy curl' }).click()
      await eventually(() => page.getByRole('status').innerText()).toBe('Copied')
      await page.locator('#url-text').focus()
      await page.keyboard.press('Control+V')
      expect(await page.locator('#url-text').inputValue()).toMatch(/^curl /)
    },
    { config },
  )
})

describe('a failure', () => {
  it('is shown with a title, the server’s message and the error code, and can be retried', async context => {
    const config = { sources: { url: { enabled: false } } }
    await visit(
      context,
      async ({ page }) => {
        await page.locator('#url-text').fill('http://files.example/big.png')
        await page.locator('#url button').click()
        const row = rows(page, 'failed')
        await eventually(() => row.innerText()).toMatch(/source is not allowed/)
        expect(await row.innerText()).toMatch(/sources\.url[\s\S]*source_forbidden · request [0-9a-f-]{36}/)
        expect(await page.getByRole('status').innerText()).toMatch(/^big\.png was not uploaded: /)
        expect(await page.getByRole('button', { name: 'Copy all' }).isDisabled()).toBe(true)
        expect(await listViolations(page)).toEqual([])
        await page.getByRole('button', { name: 'Retry big.png' }).click()
        await eventually(() => row.count()).toBe(1)
      },
      { config },
    )
  })

  it('of a file that is too large is shown before it is sent', async context => {
    await visit(
      context,
      async ({ page, urls }) => {
        const asked = urls.length
        await page.setInputFiles('#files', pictureFile('big.png', makePicture(5000)))
        await eventually(() => rows(page, 'failed').innerText()).toMatch(
          /File too large\s+The maximum file size is 2\.0 KB/,
        )
        expect(await page.getByRole('status').innerText()).toBe('big.png was not uploaded: File too large.')
        expect(urls.slice(asked).filter(address => address.includes('/upload'))).toEqual([])
      },
      { config: { limits: { fileSize: '2000B' } } },
    )
  })

  it('of an unreachable destination is not called a rejection', async context => {
    const port = await findFreePorts()
    const webdav = {
      username: 'me',
      password: 'pass word',
      url: `http://127.0.0.1:${port}/`,
      urlPrefix: 'http://127.0.0.1/',
    }
    await visit(
      context,
      async ({ page }) => {
        await page.setInputFiles('#files', pictureFile('a.png'))
        await eventually(() => rows(page, 'failed').innerText()).toMatch(
          /The upload to the destination failed/,
        )
      },
      {
        config: { default: 'webdav/cloud', providers: { webdav: { cloud: webdav } }, limits: { retries: 0 } },
      },
    )
  })

  it('of the connection is retried automatically when the server responds', async context => {
    await visit(context, async ({ page, app, errors }) => {
      await page.route('**/upload?*', route => route.abort())
      await page.route('**/heartbeat', route => route.abort())
      const names = Array.from({ length: 8 }, (_, n) => `${n}.png`)
      await page.setInputFiles(
        '#files',
        names.map(name => pictureFile(name)),
      )
      await eventually(() => rows(page, 'failed').count()).toBeGreaterThan(0)
      expect(await rows(page, 'failed').first().innerText()).toMatch(
        /can’t be reached\s+The upload is retried automatically when/,
      )
      await eventually(() => page.locator('#tally').innerText()).toMatch(/· waiting for the server$/)
      // The other uploads wait for the server.
      expect(await rows(page, 'waiting').count()).toBeGreaterThan(0)
      expect(await listViolations(page)).toEqual([])
      await page.unrouteAll()
      await eventually(() => rows(page, 'stored').count()).toBe(8)
      expect(await page.locator('#tally').innerText()).toBe('8 of 8 uploaded')
      expect(await app.files()).toHaveLength(8)
      errors.length = 0
    })
  })

  it('of a reverse proxy is shown as such, and is not retried automatically', async context => {
    await visit(context, async ({ page, urls }) => {
      const proxy = (status: number) =>
        page.route('**/upload?*', route => route.fulfill({ status, body: '<html>nginx</html>' }))
      await proxy(413)
      await page.setInputFiles('#files', [pictureFile('a.png'), pictureFile('b.png')])
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
  })

  it('of a post-upload step is completed by its ID, without uploading again', async context => {
    const directory = await makeDirectory()
    const broken = join(directory, 'broken')
    await writeFile(broken, '')
    const hook = { name: 'announce', command: ['sh', '-c', `! test -e ${broken}`] }
    await visit(
      context,
      async ({ page, urls, app }) => {
        await page.setInputFiles('#files', pictureFile('a.png'))
        await eventually(() => rows(page, 'pending').innerText()).toMatch(
          /Uploaded, but a post-upload step failed/,
        )
        expect(await rows(page, 'pending').innerText()).toMatch(/hook "announce" failed/)
        expect(await listViolations(page)).toEqual([])
        await page.getByRole('button', { name: 'Complete a.png' }).click()
        await eventually(() => urls.filter(url => /finalizationId=/.test(url)).length).toBe(1)
        await eventually(() => rows(page, 'pending').count()).toBe(1)
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
  const providers = {
    local: { secretblog: { directory: 'a', serve: true }, otherblog: { directory: 'b', serve: true } },
  }
  const config = { ...WITH_KEY, providers, default: 'local/secretblog' }

  it('shows the destinations and allows uploads, appears in no URL and no log, and is discarded with the page', async context => {
    await visit(
      context,
      async ({ page, app, urls }) => {
        expect(await page.content()).not.toMatch(/secretblog|otherblog/)
        await page.setInputFiles('#files', pictureFile('a.png'))
        await eventually(() => rows(page, 'failed').innerText()).toMatch(
          /An upload key is required\s+Enter your key above/,
        )
        expect(await rows(page, 'failed').innerText()).not.toMatch(/query|Bearer/)

        const give = async (key: string) => {
          await page.getByLabel('Upload key').fill(key)
          await page.getByRole('button', { name: 'Use this key' }).click()
        }
        await give('mistaken')
        await eventually(() => page.getByRole('status').innerText()).toBe('The key is not accepted.')
        expect(await page.locator('#visitor').innerText()).toMatch(/^The key is not accepted\.\n/)
        expect(await listViolations(page)).toEqual([])
        expect(await page.content()).not.toMatch(/secretblog|otherblog/)
        await give(KEY)
        await eventually(() => page.locator('#visitor').innerText()).toMatch(/^Your key is accepted\./)
        expect(await page.getByLabel('Destination').innerText()).toMatch(/local \/ secretblog \(default\)/)
        expect(await page.locator('#destinations').textContent()).toMatch(/destination=local\/otherblog/)

        // The upload that was rejected without a key is retried automatically.
        await eventually(() => rows(page, 'stored').count()).toBe(1)
        await page.getByLabel('Destination').selectOption('local / otherblog')
        await page.setInputFiles('#files', pictureFile('b.png'))
        await eventually(() => rows(page, 'stored').count()).toBe(2)
        expect(await linkIn(page)).toMatch(/\/files\/otherblog\//)

        const everything = urls.map(decodeURIComponent).join() + app.rawLog()
        expect(everything).not.toMatch(/schl|mistaken/)
        expect(
          await page.evaluate(
            'JSON.stringify([{ ...sessionStorage }, { ...localStorage }, document.cookie])',
          ),
        ).not.toMatch(/schl|mistaken|钥匙/)
        await page.reload()
        expect(await page.content()).not.toMatch(/secretblog|otherblog/)
      },
      { config },
    )
  })

  it.for([
    ['page', 0, 0],
    ['tab', 1, 0],
    ['device', 1, 1],
  ] as const)('is kept until the visitor says no: %s', async ([place, inTab, elsewhere], context) => {
    await visit(
      context,
      async ({ page }) => {
        const isAdmitted = async (tab: Page) => {
          await settled(tab)
          return tab.getByLabel('Destination').count()
        }
        await page.getByLabel('Keep the key').selectOption(place)
        await page.getByLabel('Upload key').fill(KEY)
        await page.getByRole('button', { name: 'Use this key' }).click()
        await eventually(() => page.getByLabel('Destination').count()).toBe(1)
        await page.reload()
        expect(await isAdmitted(page)).toBe(inTab)
        const other = await page.context().newPage()
        await other.goto(page.url())
        expect(await isAdmitted(other)).toBe(elsewhere)
        if (inTab) await page.locator('#key summary').click()
        await page.getByLabel('Keep the key').selectOption('page')
        await page.reload()
        expect(await isAdmitted(page)).toBe(0)
      },
      { config },
    )
  })
})

it('remembers the link format, the destination and automatic copying on this device', async context => {
  const providers = { local: { one: { directory: 'a', serve: true }, two: { directory: 'b', serve: true } } }
  await visit(
    context,
    async ({ page }) => {
      await page.setInputFiles('#files', pictureFile('a.png'))
      await eventually(() => rows(page, 'stored').count()).toBe(1)
      await page.getByText('Markdown', { exact: true }).click()
      await page.getByLabel('Copy new links automatically').check()
      await page.getByLabel('Destination').selectOption('local / two')
      await page.reload()
      await settled(page)
      await page.setInputFiles('#files', [pictureFile('b.png'), pictureFile('c.png')])
      await eventually(() => clipboard(page)).toMatch(
        /^!\[b\.png\]\(http.*\/files\/two\/\S+\)\n!\[c\.png\]\(http.*\/files\/two\/\S+\)$/,
      )
      expect(await page.getByRole('status').innerText()).toBe('Links copied: 2')
    },
    { config: { default: 'local/one', providers } },
  )
})

it('says that links work on this machine only, where that is so, and shows a link as a QR code', async context => {
  const config = { server: { allowedHosts: ['img.example.com'] }, auth: { anonymous: true } }
  await visit(
    context,
    async ({ page, app }) => {
      const note = page.locator('#local')
      expect(await note.isVisible()).toBe(false)
      await page.setInputFiles('#files', pictureFile('a.png'))
      await eventually(() => rows(page, 'stored').count()).toBe(1)
      expect(await note.isVisible()).toBe(true)
      await page.getByRole('button', { name: 'QR code a.png' }).click()
      const code = page.getByRole('img', { name: await linkIn(page) })
      await code.waitFor()
      expect(await page.evaluate(`document.querySelector('#qr img').naturalWidth`)).toBeGreaterThan(20)
      expect(await listViolations(page)).toEqual([])
      await page.getByRole('button', { name: 'Close' }).click()

      await page.goto(`http://img.example.com:${new URL(app.url).port}/`)
      await page.setInputFiles('#files', pictureFile('b.png'))
      await eventually(() => rows(page, 'stored').count()).toBe(1)
      expect(await note.isVisible()).toBe(false)
    },
    { config },
  )
})

it('warns of HEIC, and offers JPEG where the destination converts images', async context => {
  const place = (directory: string, requests: string[]) => ({
    directory,
    serve: true,
    images: { allowFromRequest: requests },
  })
  const providers = { local: { plain: place('a', []), converts: place('b', ['format']) } }
  const heic = Buffer.from('\0\0\0\x18ftypheic\0\0\0\0mif1heic')
  await visit(
    context,
    async ({ page, urls }) => {
      const add = () => page.setInputFiles('#files', { name: 'a.heic', mimeType: 'image/heic', buffer: heic })
      await add()
      await eventually(() => rows(page, 'stored').innerText()).toMatch(/Most browsers can’t show HEIC/)
      expect(await page.getByRole('button', { name: 'Upload as JPEG' }).count()).toBe(0)
      await page.getByLabel('Destination').selectOption('local / converts')
      await add()
      await page.getByRole('button', { name: 'Upload as JPEG a.heic' }).click()
      await eventually(() => urls.filter(url => /converts&format=jpeg$/.test(url)).length).toBe(1)
      await eventually(() => rows(page, 'sending').count()).toBe(0)
    },
    { config: { default: 'local/plain', providers } },
  )
})

it('the documentation is folded, and a link into it opens its section', async context => {
  await visit(context, async ({ page }) => {
    expect(await page.locator('#guide details[open]').count()).toBe(0)
    await page.getByRole('link', { name: 'GitLab CI' }).click()
    await eventually(() => page.locator('#ci').getAttribute('open')).toBe('')
    await page.goto(`${page.url().split('#')[0]}#typora`)
    await page.reload()
    await settled(page)
    expect(await page.locator('#editors').getAttribute('open')).toBe('')
    for (const section of await page.locator('#guide summary').all()) await section.click()
    expect(await listViolations(page)).toEqual([])
  })
})

it('is in Chinese for browsers that prefer it, errors included', async context => {
  await visit(
    context,
    async ({ page }) => {
      expect(await page.locator('html').getAttribute('lang')).toBe('zh-Hans')
      await page.setInputFiles('#files', [pictureFile('1.png'), pictureFile('2.png', makePicture(5000))])
      await eventually(() => rows(page, 'stored').locator('.actions').innerText()).toMatch(
        /^复制\s*打开\s*二维码$/,
      )
      await eventually(() => rows(page, 'failed').innerText()).toMatch(/文件过大\s+单个文件不能超过/)
      await page.evaluate("for (const e of document.querySelectorAll('pre, code, .reason')) e.remove()")
      expect(await page.locator('body').innerText()).not.toMatch(/\b(?:the|and|a|to|is|copy|file|key)\b/i)
      await page.getByRole('link', { name: 'English' }).click()
      await eventually(() => page.locator('html').getAttribute('lang')).toBe('en')
    },
    { config: { limits: { fileSize: '2000B' } }, browser: { locale: 'zh-CN' } },
  )
})

it('works at /, /upload and /upload/ behind nginx with a path prefix', async context => {
  needs(context, 'nginx', 'nginx-light')
  const port = await findFreePorts()
  const url = `http://127.0.0.1:${port}/deep/img`
  const config = { server: { publicUrl: url, trustProxy: ['loopback'] }, auth: { anonymous: true } }
  await visit(
    context,
    async ({ page, app, urls }) => {
      await startNginx(port, app.url)
      urls.length = 0
      for (const path of ['/', '/upload', '/upload/']) {
        await page.goto(url + path)
        await page.setInputFiles('#files', pictureFile('a.png'))
        await eventually(() => rows(page, 'stored').count()).toBe(1)
        await download(await linkIn(page))
        expect(await page.locator('#curl ~ .copy code').first().textContent()).toContain(`${url}/upload`)
      }
      expect(urls.filter(one => !one.startsWith(url) && !/^(?:data|blob):/.test(one))).toEqual([])
    },
    { config },
  )
})

/** @param more settings of the location, which may name the user `me` with the password `secret-word` of `htpasswd` */
async function startNginx(port: number, target: string, more = ''): Promise<void> {
  const directory = await makeDirectory()
  await writeFile(join(directory, 'htpasswd'), 'me:{PLAIN}secret-word\n')
  await runNginx(
    directory,
    `server { listen 127.0.0.1:${port}; location /deep/img/ {
       proxy_pass ${target}/; proxy_set_header X-Forwarded-For $remote_addr; ${more} } }`,
    port,
  )
}

describe.each(['en', 'zh-CN'])('in %s', locale => {
  it('in light and dark colours axe finds nothing, and no width scrolls sideways', async context => {
    const gate = await startGate()
    await visit(
      context,
      async ({ page }) => {
        await page.setInputFiles('#files', [
          pictureFile('a-name-without-any-place-to-break-it-into-two-lines-'.repeat(3) + '.png'),
          pictureFile('big.png', makePicture(5000)),
        ])
        await page.locator('#url-text').fill(gate.url)
        await page.locator('#url button').click()
        await eventually(() => rows(page, 'stored').count()).toBe(1)
        await eventually(() => rows(page, 'failed').count()).toBe(1)
        await eventually(() => rows(page, 'sending').count()).toBe(1)
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme })
          for (const width of [360, 768, 1024, 1440]) {
            await page.setViewportSize({ width, height: 800 })
            expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
          }
          expect(await listViolations(page), colorScheme).toEqual([])
        }
        gate.open()
      },
      { config: { limits: { fileSize: '2000B' } }, browser: { locale } },
    )
  })

  it('axe finds nothing when a key is needed', async context => {
    await visit(
      context,
      async ({ page }) => {
        await page.setViewportSize({ width: 360, height: 800 })
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360)
        expect(await listViolations(page)).toEqual([])
      },
      { config: WITH_KEY, browser: { locale } },
    )
  })
})

it('everything is reachable with the keyboard', async context => {
  await visit(context, async ({ page }) => {
    await page.setInputFiles('#files', pictureFile('a.png'))
    await eventually(() => rows(page, 'stored').count()).toBe(1)
    await page.locator('#programs > summary').click()
    await page.mouse.click(5, 5)
    const reached = new Set<string>()
    for (let n = 0; n < 60; n++) {
      await page.keyboard.press('Tab')
      const name = `(e => e === document.body ? '' : e.getAttribute('aria-label') || e.id || e.textContent)(document.activeElement)`
      reached.add(String(await page.evaluate(name)).trim())
    }
    const wanted = [
      'Skip to the content',
      '中文',
      'destination',
      'files',
      'url-text',
      'Upload',
      'copy-all',
      'Link of a.png',
      'Copy a.png',
      'Open a.png',
      'Copy Python',
    ]
    expect([...reached]).toEqual(expect.arrayContaining(wanted))
  })
})

it('without JavaScript it is documentation, and offers nothing that would not work', async context => {
  await visit(
    context,
    async ({ page, app }) => {
      await page.locator('#programs > summary').click()
      const text = await page.locator('body').innerText()
      expect(text).toContain(`curl -F file=@picture.png ${app.url}/upload`)
      expect(text).toContain('needs JavaScript')
      expect(await page.getByRole('button').count()).toBe(0)
      expect(await page.locator('.panel').isVisible()).toBe(false)
    },
    { browser: { javaScriptEnabled: false } },
  )
})

it('attack: a page of another site can’t read destination names from it, or show it in a frame', async context => {
  const config = { providers: { local: { secretblog: { directory: 'a', serve: true } } } }
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

it('behind a reverse proxy with a password it asks for no key, and its examples send the password', async context => {
  needs(context, 'nginx', 'nginx-light')
  const port = await findFreePorts()
  const url = `http://127.0.0.1:${port}/deep/img`
  const config = {
    server: { publicUrl: url, trustProxy: ['loopback'], key: 'upload-key-of-the-proxy' },
    auth: { loopbackExempt: false },
  }
  await visit(
    context,
    async ({ page, app }) => {
      await startNginx(
        port,
        app.url,
        `auth_basic files; auth_basic_user_file htpasswd; proxy_set_header Authorization "Bearer upload-key-of-the-proxy";`,
      )
      await page.goto(`${url}/`)
      await settled(page)
      expect(await page.locator('#visitor').innerText()).toMatch(/^You are signed in\. No key is needed\./)
      expect(await page.locator('#key').isVisible()).toBe(false)
      await page.setInputFiles('#files', pictureFile('a.png'))
      await eventually(() => rows(page, 'stored').count()).toBe(1)
      const examples = (await page.locator('pre').allTextContents()).join('\n')
      expect(examples).toContain(`curl -u "$UPLOAD_USER" -F file=@picture.png ${url}/upload`)
      expect(examples).toContain(`--server ${url.replace('://', '://NAME:PASSWORD@')}`)
      expect(examples).not.toMatch(/UPLOAD_KEY/)
      expect(await page.content()).not.toMatch(/upload-key-of-the-proxy|secret-word/)
      expect(await listViolations(page)).toEqual([])
    },
    { config, browser: { httpCredentials: { username: 'me', password: 'secret-word' } } },
  )
})
