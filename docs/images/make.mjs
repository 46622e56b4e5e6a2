// Makes the pictures of the usage page in this folder, with the server as it was built: npm run screenshots
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startBrowser, startServer } from './program.mjs'

const SHOTS = [1440, 360].flatMap(width =>
  ['light', 'dark'].map(scheme => ({ width, scheme, locale: 'en', name: `page-${width}-${scheme}` })),
)
SHOTS.push({ width: 1440, scheme: 'light', locale: 'zh-CN', name: 'page-zh-CN' })

const directory = await mkdtemp(join(tmpdir(), 'upload-server-screenshots-'))
const folder = name => ({ directory: join(directory, name), serve: true })
const server = await startServer(directory, {
  server: { port: 0, publicUrl: 'https://img.example.com' },
  default: 'local/blog',
  keyTemplate: '{filename}-{sha256-8}{extname}',
  providers: { local: { blog: folder('blog'), screenshots: folder('screenshots') } },
})
const browser = await startBrowser()
try {
  for (const { width, scheme, locale, name } of SHOTS) {
    const viewport = { width, height: width < 600 ? 800 : 1000 }
    const page = await browser.newPage({ viewport, colorScheme: scheme, locale })
    await page.goto(server.url)
    await uploadPictures(page)
    await page.getByText('Markdown', { exact: true }).click()
    await page.mouse.move(0, 0)
    await page.evaluate(() => scrollTo(0, 0))
    await page.screenshot({ path: fileURLToPath(new URL(`${name}.png`, import.meta.url)) })
    await page.close()
  }
} finally {
  await browser.close()
  server.process.kill()
  await rm(directory, { recursive: true, force: true })
}

/** Chooses two pictures that the browser paints itself, and waits until they are stored. */
async function uploadPictures(page) {
  await page.evaluate(async () => {
    const paint = async (name, type, from, to, sun) => {
      const canvas = new OffscreenCanvas(320, 320)
      const brush = canvas.getContext('2d')
      const sky = brush.createLinearGradient(0, 0, 0, 320)
      sky.addColorStop(0, from)
      sky.addColorStop(1, to)
      brush.fillStyle = sky
      brush.fillRect(0, 0, 320, 320)
      brush.fillStyle = sun
      brush.arc(220, 150, 46, 0, 7)
      brush.fill()
      brush.fillStyle = '#0006'
      brush.beginPath()
      brush.moveTo(0, 320)
      brush.lineTo(110, 190)
      brush.lineTo(190, 270)
      brush.lineTo(250, 220)
      brush.lineTo(320, 320)
      brush.fill()
      return new File([await canvas.convertToBlob({ type })], name, { type })
    }
    const files = new DataTransfer()
    files.items.add(await paint('evening.png', 'image/png', '#f7b267', '#d1495b', '#fff3c4'))
    files.items.add(await paint('morning.jpg', 'image/jpeg', '#bfe3f0', '#5b8fb9', '#fffdf2'))
    const input = document.getElementById('files')
    input.files = files.files
    input.dispatchEvent(new Event('change'))
  })
  await page.locator('[data-state=stored] img').nth(1).waitFor()
}
