import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeDirectory } from '../../helpers/directory.ts'
import { expectFailure, expectStored } from '../../helpers/expect-answer.ts'
import { upload } from '../../helpers/form.ts'
import { missing } from '../../helpers/needs.ts'
import { expectColour, open, plain, RED, startWith, store } from '../../helpers/pictures-app.ts'
import { spawnServer } from '../../helpers/spawn-server.ts'

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

  it('of text says that no font is there, instead of drawing boxes', async () => {
    const directory = await makeDirectory()
    const conf = join(directory, 'fonts.conf')
    await writeFile(conf, `<fontconfig><dir>${directory}</dir></fontconfig>`)
    const config = { images: { watermark: { text: 'me' } } }
    await writeFile(join(directory, 'upload-server.json'), JSON.stringify(config))
    const server = await spawnServer(['--port', '0'], { directory, env: { FONTCONFIG_FILE: conf } })
    const picture = await plain(10, 10).png().toBuffer()
    const answer = await upload(`${await server.url}/upload`, { 'a.png': picture })
    expectFailure(answer, 502, 'destination_failed')
    expect(answer.message).toContain('this machine has no font')
  })
})

describe('without a package', () => {
  const HOOK = new URL('../../fixtures/without.mjs', import.meta.url)

  async function spawnWithout(name: string, pictures: object | undefined): Promise<string> {
    const directory = await makeDirectory()
    await writeFile(join(directory, 'upload-server.json'), JSON.stringify({ images: pictures }))
    const env = { NODE_OPTIONS: `--import=${HOOK}?${name}` }
    const server = await spawnServer(['--port', '0'], { directory, env })
    return server.url
  }

  it('pictures say that sharp is to be installed, other files are stored', async () => {
    const url = await spawnWithout('sharp', { stripMetadata: true })
    const answer = await upload(`${url}/upload`, { 'a.png': await plain(10, 10).png().toBuffer() })
    expectFailure(answer, 502, 'destination_failed')
    expect(answer.message).toMatch(
      /^Image processing is not available: .*"npm install --omit=optional sharp @img\//,
    )
    await expectStored(await upload(`${url}/upload`, { 'a.txt': 'text' }), ['text'])
  })

  it('HEIC says that libheif-js is to be installed, other pictures are changed', async () => {
    const url = await spawnWithout('libheif-js', { format: 'webp', larger: true })
    const answer = await upload(`${url}/upload`, {
      'a.heic': await readFile(new URL('../../fixtures/p3.heic', import.meta.url)),
    })
    expectFailure(answer, 502, 'destination_failed')
    expect(answer.message).toMatch(
      /^Image processing is not available: .*"npm install --omit=optional libheif-js"/,
    )
    const other = await upload(`${url}/upload`, { 'a.png': await plain(10, 10).png().toBuffer() })
    expect((await open(other)).item.contentType).toBe('image/webp')
  })
})
