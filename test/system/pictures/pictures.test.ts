import { existsSync } from 'node:fs'
import sharp from 'sharp'
import { describe, expect, it } from 'vitest'
import { expectFailure } from '../../helpers/expect-answer.ts'
import { type Answer, download, upload } from '../../helpers/form.ts'
import { missing } from '../../helpers/needs.ts'
import { startApp, type TestApp } from '../../helpers/start-app.ts'

const FONTS = ['Sans', 'SansMono'].map(name => `/usr/share/fonts/truetype/dejavu/DejaVu${name}.ttf`)
const NEEDS_FONTS = 'needs fonts: apt-get install fonts-dejavu-core'

type Rgb = [number, number, number]

const RED: Rgb = [255, 0, 0]

function plain(width: number, height: number, [r, g, b]: Rgb = RED) {
  return sharp({ create: { width, height, channels: 3, background: { r, g, b } } })
}

function startWith(pictures: object, more: object = {}): Promise<TestApp> {
  const local = {
    Default: { directory: './files', serve: true, keyTemplate: '{filename}{extname}', ...more },
  }
  return startApp({ config: { images: pictures, providers: { local } } })
}

async function store(app: TestApp, name: string, bytes: Uint8Array, query = ''): Promise<Answer> {
  return upload(`${app.url}/upload${query}`, { [name]: bytes })
}

/** What lies behind the only link of an answer. */
async function open(answer: Answer) {
  expect(answer.message).toBeUndefined()
  const bytes = await download(answer.result[0]!)
  const [item] = answer.items
  expect(item).toMatchObject({ size: bytes.length, imgUrl: answer.result[0] })
  const meta = await sharp(bytes, { animated: true }).metadata()
  const { data, info } = await sharp(bytes, { animated: true })
    .toColourspace('srgb')
    .removeAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true })
  const at = (x: number, y: number): Rgb =>
    [...data.subarray((y * info.width + x) * info.channels).subarray(0, 3)] as Rgb
  return { bytes, meta, at, item: item! }
}

function expectColour(found: Rgb, wanted: Rgb): void {
  for (const [index, value] of wanted.entries())
    expect(Math.abs(found[index]! - value), `${found}`).toBeLessThan(90)
}

describe('a watermark', () => {
  it('is text, of which nothing is markup', async context => {
    if (!FONTS.every(existsSync)) missing(context, NEEDS_FONTS)
    const watermark = { text: '<b>me</b> & you 图片', color: '#ffffff', scale: 0.9, position: 'centre' }
    const app = await startWith({ watermark })
    const { at } = await open(await store(app, 'a.jpg', await plain(400, 300).jpeg().toBuffer()))
    let light = 0
    for (let x = 0; x < 400; x++) for (let y = 0; y < 300; y++) light += at(x, y)[1] > 128 ? 1 : 0
    expect(light).toBeGreaterThan(300)
    expectColour(at(5, 5), RED)
  })

  it('is written in the font that is named, of several', async context => {
    if (!FONTS.every(existsSync)) missing(context, NEEDS_FONTS)
    const source = await plain(400, 300).png().toBuffer()
    const inFont = async (font: string) => {
      const app = await startWith({ watermark: { text: 'ill', font, color: '#ffffff', scale: 0.9 } })
      return store(app, 'a.png', source)
    }
    const [sans, mono] = await Promise.all(FONTS.map(async font => (await open(await inFont(font))).bytes))
    expect(sans?.equals(mono!)).toBe(false)
    const failed = await inFont(process.execPath)
    expectFailure(failed, 502, 'destination_failed')
    expect(failed.message).toMatch(/not a TrueType or OpenType font/)
  })
})
