import { readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { renderReport } from '../../../../src/client/reports/report-page.ts'
import { type ReviewRow, sortRows } from '../../../../src/client/reports/review.ts'
import { inBrowser } from '../../../helpers/browser.ts'
import { makeDirectory } from '../../../helpers/directory.ts'
import { listen } from '../../../helpers/listen.ts'
import { makePicture } from '../../../helpers/picture.ts'

const AXE = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const EVIL = `</h2><script>document.title='evil'</script><img src=x onerror="document.title='evil'">" onclick=x \u202egnp.a`

/** A page with changed images and some others, and a server that counts the images it is asked for. */
async function prepare(count = 512) {
  let asked = 0
  let made = 0
  const { url, close } = await listen((_, res) => {
    asked++
    res.writeHead(200, { 'Content-Type': 'image/png' }).end(makePicture())
  })
  onTestFinished(close)
  const image = (name: string, width = 640) => ({ name, url: `${url}/${made++}`, width, height: 400 })
  const rows: ReviewRow[] = Array.from({ length: count }, (_, index) => ({
    ...{ name: `Card/${index}.png`, state: 'changed', share: index / count },
    ...{ before: image('a', 320), after: image('b'), difference: image('c') },
  }))
  rows.push(
    { name: EVIL, state: 'new', after: { name: EVIL, url: 'javascript:document.title="evil"' } },
    { name: 'Menu/old.png', state: 'gone', before: image('old') },
    { name: 'to.png', from: EVIL, state: 'renamed', after: image('to') },
    { name: 'bad.png', state: 'failed', after: { name: 'bad.png', error: EVIL } },
    { name: 'Menu/same.png', state: 'same', after: image('same') },
  )
  const file = join(await makeDirectory(), 'report.html')
  const review = { rows: sortRows(rows), baseline: { name: EVIL }, run: { commit: 'ab'.repeat(20) } }
  await writeFile(file, await renderReport(EVIL, review))
  return { address: `file://${file}`, asked: () => asked }
}

it('filters by kind and name, changes the view, and moves by keys, and loads only images near what is shown', async context => {
  const { address, asked } = await prepare()
  await inBrowser(context, async open => {
    const page = await open()
    const faults: string[] = []
    page.on('console', message => faults.push(message.text()))
    page.on('pageerror', error => faults.push(error.message))
    await page.goto(address)
    await page.waitForLoadState('networkidle')
    expect(asked()).toBeGreaterThan(2)
    expect(asked()).toBeLessThan(200)
    const shown = () => page.locator('article:not([hidden]) h2').allTextContents()
    expect(await shown()).toHaveLength(517)
    await page.getByText('Gone 1').click()
    expect(await shown()).toEqual(['Gone Menu/old.png'])
    await page.getByText('All 517').click()
    await page.keyboard.press('/')
    await page.keyboard.type('MENU/')
    expect(await shown()).toEqual(['Gone Menu/old.png', 'The same Menu/same.png'])
    expect(await page.locator('.found').textContent()).toBe('2 of 517 images')
    await page.locator('[type=search]').fill('/511')
    await page.locator('h1').click()
    await page.keyboard.press('j')
    expect(await page.evaluate('document.activeElement.querySelector("h2").textContent')).toBe(
      'Changed Card/511.png',
    )
    const row = page.locator('article:not([hidden])')
    const isShown = async () =>
      Promise.all(
        ['.before', '.after', '.difference', '[type=range]'].map(part => row.locator(part).isVisible()),
      )
    for (const [key, parts] of [
      ['2', [true, true, false, true]],
      ['3', [true, true, false, true]],
      ['4', [false, false, true, false]],
      ['1', [true, true, true, false]],
    ] as const) {
      await page.keyboard.press(key)
      expect(await isShown(), key).toEqual(parts)
    }
    await page.keyboard.press('2')
    await row.locator('[type=range]').focus()
    await page.keyboard.press('ArrowRight')
    expect(await row.locator('.images').getAttribute('style')).toContain('--at: 51%')
    const images = `document.querySelectorAll('article:not([hidden]) :is(.before, .after) img')`
    const widths = await page.evaluate(`[...${images}].map(image => image.width)`)
    expect(widths).toEqual([320, 640])
    expect(faults).toEqual([])
  })
})

it('attack: names in a report are text, links run no script, and the page loads no script of others', async context => {
  const { address } = await prepare()
  await inBrowser(context, async open => {
    const page = await open()
    await page.goto(address)
    expect(await page.title()).toContain('</h2><script>')
    expect(await page.locator('h2 script, [onerror], [onclick], [href^=javascript]').count()).toBe(0)
    expect(await page.locator('script').count()).toBe(1)
    const run = `const script = document.createElement('script'); script.textContent = 'document.title = "evil"'; document.head.append(script)`
    await page.evaluate(run)
    expect(await page.title()).not.toBe('evil')
  })
})

it.for([360, 1440])('is accessible, and not wider than a screen of %i pixels', async (width, context) => {
  const { address } = await prepare(3)
  for (const colorScheme of ['light', 'dark'] as const)
    await inBrowser(
      context,
      async open => {
        const page = await open()
        await page.goto(address)
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
        await page.evaluate(AXE)
        const found =
          'axe.run().then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(one => id + one.html + one.failureSummary)))'
        expect(await page.evaluate(found)).toEqual([])
      },
      { viewport: { width, height: 900 }, colorScheme },
    )
})
