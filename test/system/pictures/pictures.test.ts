import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { expectFailure } from '../../helpers/expect-answer.ts'
import { missing } from '../../helpers/needs.ts'
import { expectColour, open, plain, RED, startWith, store } from '../../helpers/pictures-app.ts'

const FONTS = ['Sans', 'SansMono'].map(name => `/usr/share/fonts/truetype/dejavu/DejaVu${name}.ttf`)
const NEEDS_FONTS = 'needs fonts: apt-get install fonts-dejavu-core'

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
