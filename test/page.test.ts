import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, type TestContext } from 'vitest'
import { inBrowser, type Page } from './helpers/browser.ts'
import { makeDirectory } from './helpers/directory.ts'
import { download } from './helpers/form.ts'
import { findFreePorts } from './helpers/free-port.ts'
import { startGate } from './helpers/gate.ts'
import { needs } from './helpers/needs.ts'
import { makePicture } from './helpers/picture.ts'
import { startApp, type TestApp } from './helpers/start-app.ts'
import { startDaemon } from './servers/daemon.ts'

const KEY = 'schlüssel-钥匙'
const WITH_KEY = { server: { key: KEY }, auth: { loopbackExempt: false } }
const AXE = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

interface Visit {
  page: Page
  app: TestApp
  /** What the browser complained about, blocked content included. */
  complaints: string[]
  /** Every address it asked for. */
  addresses: string[]
}

interface VisitOptions {
  config?: Record<string, unknown>
  path?: string
  /** Opens the page under another address. */
  url?: string
  browser?: Parameters<typeof inBrowser>[2]
}

/** Opens the page of a new server, and sees that the browser has nothing to complain about but refused requests. */
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
      const seen: Visit = { page, app, complaints: [], addresses: [] }
      page.on('console', message => message.type() === 'error' && seen.complaints.push(message.text()))
      page.on('pageerror', error => seen.complaints.push(error.message))
      page.on('request', request => seen.addresses.push(request.url()))
      await page.goto((url ?? app.url) + path)
      await work(seen)
      expect(
        seen.complaints.filter(text => !/the server responded with a status of (?:4|502)/.test(text)),
      ).toEqual([])
    },
    options,
  )
}

/** The machine may be busy. */
const eventually = <T>(read: () => T) => expect.poll(read, { timeout: 20_000, interval: 20 })

const pictureFile = (name: string, buffer = makePicture()) => ({ name, mimeType: 'image/png', buffer })
const rows = (page: Page, state: string) => page.locator(`#uploads li[data-state=${state}]`)
const clipboard = (page: Page) => page.evaluate('navigator.clipboard.readText()')
const linkIn = async (page: Page, n = 0) => rows(page, 'stored').nth(n).getByRole('textbox').inputValue()

/** Drops what is at these paths on the page, as the system does it. */
async function drop(page: Page, files: string[], items: object[] = []): Promise<void> {
  const session = await page.context().newCDPSession(page)
  const data = { items, files, dragOperationsMask: 1 }
  for (const type of ['dragEnter', 'dragOver', 'drop'])
    await session.send('Input.dispatchDragEvent', { type, x: 600, y: 300, data } as never)
}

/** What axe finds, in words. */
async function listViolations(page: Page): Promise<string[]> {
  await page.evaluate(AXE)
  return (await page.evaluate(
    `axe.run().then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(node => id + ': ' + node.html + ' ' + node.failureSummary)))`,
  )) as string[]
}

describe('files', () => {
  it('that are chosen are stored, several at once and under one name, and shown in small', async context => {
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
      expect(await page.getByRole('status').innerText()).toMatch(/is stored\.$/)
      expect(await page.locator('#tally').innerText()).toBe('3 of 3 stored')
    })
  })

  it('that are dropped anywhere are stored; of a folder it says that it can’t be sent', async context => {
    await visit(context, async ({ page, app }) => {
      const folder = join(app.directory, 'folder')
      await mkdir(folder)
      const files = ['a.png', 'b.png'].map(name => join(folder, name))
      for (const file of files) await writeFile(file, makePicture())
      await drop(page, [...files, folder])
      await eventually(() => rows(page, 'stored').count()).toBe(2)
      expect(await rows(page, 'failed').allInnerTexts()).toEqual([
        expect.stringMatching(/^folder\s+A folder can’t be sent\s+Choose the files in it\.$/),
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

  it('may be addresses, typed, pasted or dropped', async context => {
    await visit(context, async ({ page }) => {
      const gate = await startGate()
      gate.open()
      await page.getByLabel('Or the address of a file').fill(gate.url)
      await page.getByRole('button', { name: 'Send' }).click()
      await eventually(() => rows(page, 'stored').count()).toBe(1)
      await page.evaluate(`navigator.clipboard.writeText('${gate.url}')`)
      await page.keyboard.press('Control+V')
      await eventually(() => rows(page, 'stored').count()).toBe(2)
      await drop(page, [], [{ mimeType: 'text/uri-list', data: gate.url }])
      await eventually(() => rows(page, 'stored').count()).toBe(3)
      expect((await download(await linkIn(page, 2))).toString()).toBe('the file')
    })
  })

  it('show how far they are, and can be called back and sent again', async context => {
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
      await eventually(() => rows(page, 'sending').innerText()).toMatch(/Sending, [1-9]\d? %/)
      const pace = /[\d.]+ (?:KB|MB) of 4\.8 MB · [\d.]+ KB a second · \d+ (?:sec|min) left/
      await eventually(() => rows(page, 'sending').innerText()).toMatch(pace)
      expect(await page.getByRole('progressbar', { name: 'a.png' }).count()).toBe(1)
      await page.getByRole('button', { name: 'Cancel a.png' }).click()
      await eventually(() => rows(page, 'cancelled').innerText()).toMatch(/Cancelled/)
      expect(await app.files()).toEqual([])
      await limit(-1)
      await page.keyboard.press('Enter') // the keyboard is on what can be done now
      await eventually(() => rows(page, 'stored').count()).toBe(1)
    })
  })

  it('say when it is the destination’s turn', async context => {
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
  'at %i × %i what was uploaded stands in view, at once and after more',
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

it('offers for pictures what the chosen destination allows, and no more', async context => {
  const place = (name: string, requests: string[]) => ({
    directory: name,
    serve: true,
    pictures: { requests },
  })
  const providers = {
    local: {
      all: place('all', ['format', 'quality', 'size', 'strip']),
      none: place('none', []),
      some: place('some', ['format']),
    },
  }
  await visit(
    context,
    async ({ page, addresses }) => {
      await page.getByText('Change pictures').click()
      await page.getByLabel('Format').selectOption('WEBP')
      await page.getByLabel('Quality').fill('300')
      await page.getByLabel('Most pixels wide').fill('2')
      await page.getByLabel('Remove metadata').check()
      expect(await listViolations(page)).toEqual([])
      await page.setInputFiles('#files', pictureFile('a.png'))
      await eventually(() => rows(page, 'stored').count()).toBe(1)
      expect((await download(await linkIn(page))).subarray(8, 12).toString()).toBe('WEBP')
      expect(addresses.find(address => address.includes('/upload?'))).toMatch(
        /\?picbed=local&configName=all&format=webp&width=2&strip=1$/,
      )
      await page.getByLabel('Destination').selectOption('local / some')
      expect(await page.getByLabel('Most pixels wide').isVisible()).toBe(false)
      await page.getByLabel('Destination').selectOption('local / none')
      expect(await page.getByText('Change pictures').isVisible()).toBe(false)
      await page.setInputFiles('#files', pictureFile('b.png'))
      await eventually(() => rows(page, 'stored').count()).toBe(2)
    },
    { config: { default: 'local/all', providers } },
  )
})

it('what was uploaded lately with this browser is found, copied and forgotten', async context => {
  await visit(context, async ({ page }) => {
    expect(await page.locator('#lately').isVisible()).toBe(false)
    await page.setInputFiles('#files', [
      pictureFile('holiday.png'),
      pictureFile('invoice.png'),
      pictureFile('<b>.png'),
    ])
    await eventually(() => rows(page, 'stored').count()).toBe(3)
    const link = await linkIn(page, 1)
    await page.reload()
    expect(await page.locator('#uploads').isVisible()).toBe(false)
    const kept = page.locator('#lately li')
    await page.getByText('Uploaded lately').click()
    await eventually(() => kept.count()).toBe(3)
    await eventually(() => kept.locator('img').count()).toBe(3)
    expect(await listViolations(page)).toEqual([])
    await page.getByText('Markdown', { exact: true }).click()
    await page.getByLabel('Search names and links').fill('INVOICE')
    await eventually(() => kept.count()).toBe(1)
    await kept.getByRole('button', { name: 'Copy invoice.png' }).click()
    await eventually(() => clipboard(page)).toBe(`![invoice.png](${link})`)
    await page.getByLabel('Search names and links').fill('nothing like it')
    await eventually(() => page.locator('#lately').innerText()).toMatch(/Nothing was found/)
    await page.getByRole('button', { name: 'Forget here' }).click()
    await page.reload()
    expect(await page.locator('#lately').isVisible()).toBe(false)
    expect(await page.evaluate('localStorage.length')).toBe(0)
  })
})

it('with page.history the list is that of the server for a key, and the own one where that fails', async context => {
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
      const kept = page.locator('#lately li')
      await page.getByText('Your latest uploads').click()
      await eventually(() => kept.locator('bdi').allInnerTexts()).toEqual(['by-curl.png', 'holiday.png'])
      expect(await listViolations(page)).toEqual([])
      await page.getByLabel('Search names and links').fill('CURL')
      await eventually(() => kept.count()).toBe(1)
      await kept.getByRole('button', { name: 'Copy by-curl.png' }).click()
      await eventually(() => clipboard(page)).toMatch(/by-curl/)
      await page.route('**/history?*', route => route.fulfill({ status: 502, body: '<h1>Bad gateway</h1>' }))
      await page.getByLabel('Search names and links').fill('')
      await eventually(() => kept.locator('bdi').allInnerTexts()).toEqual(['holiday.png'])
      expect(await page.locator('#lately').innerText()).toMatch(
        /can’t be shown: .+\. This is what this browser/,
      )
      expect(await page.getByText('Uploaded lately with this browser').isVisible()).toBe(true)
      expect(await listViolations(page)).toEqual([])
    },
    { config: { ...WITH_KEY, page: { history: true } } },
  )
})

it('a white picture has an edge, and Open shows what was stored', async context => {
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

it('asks before it is left while something is under way, and not after', async context => {
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
    await page.getByRole('button', { name: 'Copy curl' }).click()
    await eventually(() => clipboard(page)).toMatch(/^curl -F file=@picture\.png http:\S+\/upload$/)
    await page.getByRole('button', { name: 'Copy Or the file as it is' }).click()
    await eventually(() => clipboard(page)).toMatch(/^curl .*-T picture\.png http:\S+\/upload\/$/)
    await page.getByRole('button', { name: 'Clear the list' }).click()
    expect(await page.locator('#uploads').isVisible()).toBe(false)
  })
})

it('copying works without TLS, too, where browsers keep the clipboard from pages', async context => {
  const config = { server: { allowedHosts: ['img.example.com'] }, auth: { anonymous: true } }
  await visit(
    context,
    async ({ page, app }) => {
      await page.goto(`http://img.example.com:${new URL(app.url).port}/`)
      expect(await page.evaluate('isSecureContext')).toBe(false)
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
  it('is told in words, with the server’s message and its code, and can be tried again', async context => {
    const config = { sources: { url: { enabled: false } } }
    await visit(
      context,
      async ({ page }) => {
        await page.locator('#url-text').fill('http://files.example/big.png')
        await page.locator('#url button').click()
        const row = rows(page, 'failed')
        await eventually(() => row.innerText()).toMatch(/may not be sent from here/)
        expect(await row.innerText()).toMatch(/sources\.url[\s\S]*source_forbidden · request [0-9a-f-]{36}/)
        expect(await page.getByRole('status').innerText()).toMatch(/^big\.png is not stored: /)
        expect(await page.getByRole('button', { name: 'Copy all' }).isDisabled()).toBe(true)
        expect(await listViolations(page)).toEqual([])
        await page.getByRole('button', { name: 'Try again big.png' }).click()
        await eventually(() => row.count()).toBe(1)
      },
      { config },
    )
  })

  it('of a file that is too large is told before it is sent', async context => {
    await visit(
      context,
      async ({ page, addresses }) => {
        const asked = addresses.length
        await page.setInputFiles('#files', pictureFile('big.png', makePicture(5000)))
        await eventually(() => rows(page, 'failed').innerText()).toMatch(
          /Too large\s+A file may have 2\.0 KB at most/,
        )
        expect(await page.getByRole('status').innerText()).toBe('big.png is not stored: Too large.')
        expect(addresses.slice(asked).filter(address => address.includes('/upload'))).toEqual([])
      },
      { config: { limits: { fileSize: 2000 } } },
    )
  })

  it('at a destination where nobody listens is not called a refusal', async context => {
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
        await eventually(() => rows(page, 'failed').innerText()).toMatch(/It did not get to the destination/)
      },
      {
        config: { default: 'webdav/cloud', providers: { webdav: { cloud: webdav } }, limits: { retries: 0 } },
      },
    )
  })

  it('of the connection is none of the server: trying again works when it is back', async context => {
    await visit(context, async ({ page, complaints }) => {
      await page.route('**/upload?*', route => route.abort())
      await page.setInputFiles('#files', pictureFile('a.png'))
      await eventually(() => rows(page, 'failed').innerText()).toMatch(/can’t be reached/)
      await page.unroute('**/upload?*')
      await page.route('**/upload?*', route => route.fulfill({ status: 413, body: '<html>nginx</html>' }))
      await page.getByRole('button', { name: 'Try again a.png' }).click()
      await eventually(() => rows(page, 'failed').innerText()).toMatch(/not the server’s own.*status 413/s)
      await page.unroute('**/upload?*')
      await page.getByRole('button', { name: 'Try again a.png' }).click()
      await eventually(() => rows(page, 'stored').count()).toBe(1)
      complaints.length = 0
    })
  })

  it('of the last step is finished by the id, without uploading again', async context => {
    const directory = await makeDirectory()
    const broken = join(directory, 'broken')
    await writeFile(broken, '')
    const hook = { name: 'announce', command: ['sh', '-c', `! test -e ${broken}`] }
    await visit(
      context,
      async ({ page, addresses, app }) => {
        await page.setInputFiles('#files', pictureFile('a.png'))
        await eventually(() => rows(page, 'pending').innerText()).toMatch(/Stored, but not finished/)
        expect(await rows(page, 'pending').innerText()).toMatch(/Hook "announce" failed/)
        expect(await listViolations(page)).toEqual([])
        await page.getByRole('button', { name: 'Finish a.png' }).click()
        await eventually(() => addresses.filter(url => /finalizationId=/.test(url)).length).toBe(1)
        await eventually(() => rows(page, 'pending').count()).toBe(1)
        await rm(broken)
        await page.getByRole('button', { name: 'Finish a.png' }).click()
        await eventually(() => rows(page, 'stored').count()).toBe(1)
        await download(await linkIn(page))
        expect(addresses.filter(url => url.includes('/upload?picbed='))).toHaveLength(1)
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

  it('shows the destinations and lets upload, is in no address and no log, and is forgotten', async context => {
    await visit(
      context,
      async ({ page, app, addresses }) => {
        expect(await page.content()).not.toMatch(/secretblog|otherblog/)
        await page.setInputFiles('#files', pictureFile('a.png'))
        await eventually(() => rows(page, 'failed').innerText()).toMatch(
          /An upload key is needed\s+Put the key in above/,
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
        expect(await page.locator('#destinations').innerText()).toMatch(/picbed=local&configName=otherblog/)

        // What was refused for want of it is sent by itself.
        await eventually(() => rows(page, 'stored').count()).toBe(1)
        await page.getByLabel('Destination').selectOption('local / otherblog')
        await page.setInputFiles('#files', pictureFile('b.png'))
        await eventually(() => rows(page, 'stored').count()).toBe(2)
        expect(await linkIn(page)).toMatch(/\/files\/otherblog\//)

        const everything = addresses.map(decodeURIComponent).join() + app.rawLog()
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

  it('stays in the tab when asked, and no longer', async context => {
    await visit(
      context,
      async ({ page }) => {
        await page.getByLabel('Upload key').fill(KEY)
        await page.getByLabel('Keep it').check()
        await page.getByRole('button', { name: 'Use this key' }).click()
        await eventually(() => page.getByLabel('Destination').count()).toBe(1)
        await page.reload()
        await eventually(() => page.getByLabel('Destination').count()).toBe(1)
        const other = await page.context().newPage()
        await other.goto(page.url())
        expect(await other.content()).not.toContain('secretblog')
        await page.locator('#key summary').click()
        await page.getByLabel('Keep it').uncheck()
        await page.reload()
        expect(await page.getByLabel('Destination').count()).toBe(0)
      },
      { config },
    )
  })
})

it('speaks Chinese to whoever prefers it, errors included', async context => {
  await visit(
    context,
    async ({ page }) => {
      expect(await page.locator('html').getAttribute('lang')).toBe('zh-Hans')
      await page.setInputFiles('#files', [pictureFile('1.png'), pictureFile('2.png', makePicture(5000))])
      await eventually(() => rows(page, 'stored').locator('.actions').innerText()).toMatch(/^复制\s*打开$/)
      await eventually(() => rows(page, 'failed').innerText()).toMatch(/文件过大\s+此处单个文件最大/)
      await page.evaluate("for (const e of document.querySelectorAll('pre, code, .reason')) e.remove()")
      expect(await page.locator('body').innerText()).not.toMatch(/\b(?:the|and|a|to|is|copy|file|key)\b/i)
      await page.getByRole('link', { name: 'English' }).click()
      await eventually(() => page.locator('html').getAttribute('lang')).toBe('en')
    },
    { config: { limits: { fileSize: 2000 } }, browser: { locale: 'zh-CN' } },
  )
})

it('at /, /upload and /upload/ it works below a path behind nginx', async context => {
  needs(context, 'nginx', 'nginx-light')
  const port = await findFreePorts()
  const url = `http://127.0.0.1:${port}/deep/img`
  const config = { server: { publicUrl: url, trustProxy: ['loopback'] }, auth: { anonymous: true } }
  await visit(
    context,
    async ({ page, app, addresses }) => {
      await startNginx(port, app.url)
      addresses.length = 0
      for (const path of ['/', '/upload', '/upload/']) {
        await page.goto(url + path)
        await page.setInputFiles('#files', pictureFile('a.png'))
        await eventually(() => rows(page, 'stored').count()).toBe(1)
        await download(await linkIn(page))
        expect(await page.locator('#curl ~ .copy code').first().innerText()).toContain(`${url}/upload`)
      }
      expect(addresses.filter(one => !one.startsWith(url) && !/^(?:data|blob):/.test(one))).toEqual([])
    },
    { config },
  )
})

/** @param more settings of the place, which may name the user `me` with the password `secret-word` of `htpasswd` */
async function startNginx(port: number, target: string, more = ''): Promise<void> {
  const directory = await makeDirectory()
  await mkdir(join(directory, 'tmp'))
  await writeFile(join(directory, 'htpasswd'), 'me:{PLAIN}secret-word\n')
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    name => `${name}_temp_path tmp/${name};`,
  )
  await writeFile(
    join(directory, 'nginx.conf'),
    `${userInfo().uid === 0 ? 'user root;' : ''} daemon off; pid nginx.pid; events {} http { access_log off; ${temporary.join(' ')}
       server { listen 127.0.0.1:${port}; location /deep/img/ { proxy_pass ${target}/; proxy_set_header X-Forwarded-For $remote_addr; ${more} } } }`,
  )
  const daemon = await startDaemon('nginx', ['-p', directory, '-c', 'nginx.conf', '-e', 'error.log'], {
    port,
  })
  onTestFinished(daemon.stop)
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
      { config: { limits: { fileSize: 2000 } }, browser: { locale } },
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

it('everything can be reached by the keyboard', async context => {
  await visit(context, async ({ page }) => {
    await page.setInputFiles('#files', pictureFile('a.png'))
    await eventually(() => rows(page, 'stored').count()).toBe(1)
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
      'Send',
      'copy-all',
      'Link of a.png',
      'Copy a.png',
      'Open a.png',
      'Copy Python',
    ]
    expect([...reached]).toEqual(expect.arrayContaining(wanted))
  })
})

it('without scripts it is documentation, and offers nothing that would not work', async context => {
  await visit(
    context,
    async ({ page, app }) => {
      const text = await page.locator('body').innerText()
      expect(text).toContain(`curl -F file=@picture.png ${app.url}/upload`)
      expect(text).toContain('needs JavaScript')
      expect(await page.getByRole('button').count()).toBe(0)
      expect(await page.locator('.panel').isVisible()).toBe(false)
    },
    { browser: { javaScriptEnabled: false } },
  )
})

it('attack: a page of another site learns no name from it, and shows it in no frame', async context => {
  const config = { providers: { local: { secretblog: { directory: 'a', serve: true } } } }
  await visit(
    context,
    async ({ page, app, complaints }) => {
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
      complaints.length = 0 // of the frame that was refused
    },
    { config },
  )
})

it('behind a proxy that asks for a password it asks for no key, and its examples sign in', async context => {
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
      expect(await page.locator('#visitor').innerText()).toMatch(/^You are signed in\. No key is needed\./)
      expect(await page.locator('#key').isVisible()).toBe(false)
      await page.setInputFiles('#files', pictureFile('a.png'))
      await eventually(() => rows(page, 'stored').count()).toBe(1)
      const examples = (await page.locator('pre').allInnerTexts()).join('\n')
      expect(examples).toContain(`curl -u "$UPLOAD_USER" -F file=@picture.png ${url}/upload`)
      expect(examples).toContain(`--server ${url.replace('://', '://NAME:PASSWORD@')}`)
      expect(examples).not.toMatch(/UPLOAD_KEY/)
      expect(await page.content()).not.toMatch(/upload-key-of-the-proxy|secret-word/)
      expect(await listViolations(page)).toEqual([])
    },
    { config, browser: { httpCredentials: { username: 'me', password: 'secret-word' } } },
  )
})
