import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import sharp, { type Sharp } from 'sharp'
import { describe, expect, it } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { expectFailure, expectStored } from '../helpers/expect-answer.ts'
import { upload } from '../helpers/form.ts'
import { heifOf, imageOf } from '../helpers/heif.ts'
import { expectColour, open, plain, RED, type Rgb, startWith, store } from '../helpers/pictures-app.ts'
import { spawnServer } from '../helpers/spawn-server.ts'
import { greyPage, tiffOf } from '../helpers/tiff.ts'

/**
 * 64 x 48, #c03060 with a square of 16 in #00ff00 in the corner, in Display P3: a PNG that sharp made, through
 * `heif-enc -q 50` of libheif 1.15.
 */
const HEIC = fileURLToPath(new URL('../fixtures/p3.heic', import.meta.url))

const BLUE: Rgb = [0, 0, 255]

const photos = new Map<string, Promise<Buffer>>()

/** Red on the left, blue on the right, with some noise so that quality makes a difference. Made once for each size. */
async function photo(width = 400, height = 300): Promise<Sharp> {
  const size = `${width}x${height}`
  const made = photos.get(size) ?? makePhoto(width, height)
  photos.set(size, made)
  return sharp(await made)
}

async function makePhoto(width: number, height: number): Promise<Buffer> {
  const half = await plain(width / 2, height, BLUE)
    .png()
    .toBuffer()
  const noise = {
    create: {
      width,
      height,
      channels: 3,
      background: '#000',
      noise: { type: 'gaussian', mean: 0, sigma: 20 },
    },
  } as const
  const grain = await sharp(noise).png().toBuffer()
  return plain(width, height)
    .composite([
      { input: half, left: width / 2, top: 0 },
      { input: grain, blend: 'add' },
    ])
    .png()
    .toBuffer()
}

const WITH_PLACE = {
  IFD0: { Artist: 'somebody' },
  IFD3: { GPSLatitudeRef: 'N', GPSLatitude: '51/1 30/1 0/1' },
}

/** A profile by which grey is shown lighter: its curve is a line. */
async function greyProfile(): Promise<string> {
  const tag = (type: string, ...values: number[]) => {
    const data = Buffer.alloc(8 + values.length * 4)
    data.write(type)
    for (const [n, value] of values.entries()) data.writeUInt32BE(value, 8 + n * 4)
    return data
  }
  const white = [0xf6d6, 0x10000, 0xd32d]
  const tags: [string, Buffer][] = [
    ['desc', tag('desc', 1, 0, ...Array<number>(20).fill(0))],
    ['cprt', tag('text', 0)],
    ['wtpt', tag('XYZ ', ...white)],
    ['kTRC', tag('curv', 1, 0x0100_0000)],
  ]
  const head = Buffer.alloc(128 + 4 + tags.length * 12)
  head.write('\x02\x10', 8, 'latin1')
  head.write('mntrGRAYXYZ ', 12)
  head.write('acsp', 36)
  for (const [n, value] of white.entries()) head.writeUInt32BE(value, 68 + n * 4)
  head.writeUInt32BE(tags.length, 128)
  let size = head.length
  for (const [n, [name, data]] of tags.entries()) {
    head.write(name, 132 + n * 12)
    head.writeUInt32BE(size, 136 + n * 12)
    head.writeUInt32BE(data.length, 140 + n * 12)
    size += data.length
  }
  head.writeUInt32BE(size)
  const path = join(await makeDirectory(), 'grey.icc')
  await writeFile(path, Buffer.concat([head, ...tags.map(([, data]) => data)]))
  return path
}

describe('pictures are converted', () => {
  it.for([
    ['webp', 'webp', 'image/webp', '.webp'],
    ['avif', 'heif', 'image/avif', '.avif'],
    ['jpeg', 'jpeg', 'image/jpeg', '.jpg'],
    ['png', 'png', 'image/png', '.png'],
  ] as const)('to %s, and so are name, type, size and hash', async ([format, found, type, extension]) => {
    const app = await startWith({ format, larger: true })
    const source = await (await photo()).tiff().toBuffer()
    const { meta, item, at } = await open(await store(app, 'my photo.tiff', source))
    expect(meta).toMatchObject({ format: found, width: 400, height: 300 })
    expect(item).toMatchObject({
      contentType: type,
      origin: 'my photo.tiff',
      fileName: `my photo${extension}`,
    })
    expectColour(at(20, 20), RED)
    expectColour(at(380, 20), BLUE)
  })

  it('each format to its own', async () => {
    const app = await startWith({ format: { png: 'webp', tiff: 'jpeg' } })
    const picture = await photo()
    expect((await store(app, 'a.png', await picture.png().toBuffer())).items[0]?.contentType).toBe(
      'image/webp',
    )
    expect((await store(app, 'a.tif', await picture.tiff().toBuffer())).items[0]?.contentType).toBe(
      'image/jpeg',
    )
    const jpeg = await picture.jpeg().toBuffer()
    await expectStored(await store(app, 'a.jpg', jpeg), [jpeg])
  })

  it('with the quality that is asked for', async () => {
    const source = await (await photo()).jpeg({ quality: 100 }).toBuffer()
    const sizes = await Promise.all(
      [30, 80].map(
        async quality => (await open(await store(await startWith({ quality }), 'a.jpg', source))).item.size,
      ),
    )
    expect(sizes[0]).toBeLessThan(sizes[1]! * 0.7)
    expect(sizes[1]).toBeLessThan(source.length)
  })

  it('and kept as they are when that has more bytes, unless it is asked for', async () => {
    const small = await plain(300, 300).webp({ quality: 1 }).toBuffer()
    const kept = await store(await startWith({ format: 'png', quality: 100 }), 'a.webp', small)
    await expectStored(kept, [small])
    expect(kept.items[0]?.fileName).toBe('a.webp')
    const { meta } = await open(
      await store(await startWith({ format: 'png', larger: true }), 'a.webp', small),
    )
    expect(meta.format).toBe('png')
  })

  it('with what was transparent on white where the format has no transparency', async () => {
    const app = await startWith({ format: 'jpeg', larger: true })
    const clear = await sharp({ create: { width: 20, height: 20, channels: 4, background: '#ff000000' } })
      .png()
      .toBuffer()
    expectColour((await open(await store(app, 'a.png', clear))).at(5, 5), [255, 255, 255])
  })
})

describe('HEIC', () => {
  it.each([
    [{ stripMetadata: true }, 'a.jpg', 'image/jpeg', 64],
    [{ format: 'webp', resize: { width: 32 } }, 'a.webp', 'image/webp', 32],
  ] as const)('with %j becomes %s, in its colours', async (options, name, type, width) => {
    const { at, item, meta } = await open(
      await store(await startWith(options), 'a.heic', await readFile(HEIC)),
    )
    expect(item).toMatchObject({ fileName: name, contentType: type })
    expect(meta).toMatchObject({ width, hasProfile: true, hasAlpha: false })
    const isNear = (seen: number[], wanted: Rgb) =>
      seen.every((value, channel) => Math.abs(value - wanted[channel]!) < 40)
    expect(isNear([...at(2, 2)], [0, 255, 0])).toBe(true)
    expect(isNear([...at(width - 4, width / 2)], [0xc0, 0x30, 0x60])).toBe(true)
  })

  it('lies as it is when nothing is asked for', async () => {
    const whole = await readFile(HEIC)
    await expectStored(await store(await startWith({}), 'a.heic', whole), [whole])
  })
})

describe('pictures fit into a size', () => {
  it.for([
    [{ width: 100 }, 100, 75],
    [{ height: 60 }, 80, 60],
    [{ width: 100, height: 50 }, 67, 50],
    [{ width: 1000 }, 400, 300],
    [{ width: 800, enlarge: true }, 800, 600],
    [{ percent: 50 }, 200, 150],
    [{ percent: 200 }, 400, 300],
  ] as const)('%o', async ([resize, width, height]) => {
    const app = await startWith({ resize })
    const source = await (await photo()).png().toBuffer()
    const answer = await store(app, 'a.png', source)
    const { meta, at } = await open(answer)
    expect(meta).toMatchObject({ width, height, format: 'png' })
    expectColour(at(2, 2), RED)
    expectColour(at(width - 3, 2), BLUE)
    if (width === 400) await expectStored(answer, [source])
  })

  it('as they are seen, not as they lie in the file', async () => {
    const app = await startWith({ resize: { width: 150 } })
    const lying = await (await photo()).withMetadata({ orientation: 6 }).jpeg().toBuffer()
    const { meta, at } = await open(await store(app, 'a.jpg', lying))
    expect(meta).toMatchObject({ width: 150, height: 200 })
    expect(meta.orientation ?? 1).toBe(1)
    expectColour(at(75, 5), RED)
    expectColour(at(75, 195), BLUE)
  })
})

describe('pictures are turned', () => {
  it('as their metadata says', async () => {
    const app = await startWith({ orient: true })
    const picture = await photo()
    const lying = await picture.clone().withMetadata({ orientation: 6 }).jpeg().toBuffer()
    const { meta } = await open(await store(app, 'a.jpg', lying))
    expect(meta).toMatchObject({ width: 300, height: 400 })
    const upright = await picture.jpeg().toBuffer()
    await expectStored(await store(app, 'b.jpg', upright), [upright])
  })
})

describe('metadata', () => {
  const taken = async () =>
    (await photo()).withExif(WITH_PLACE).withXmp('<x:xmpmeta xmlns:x="adobe:ns:meta/"/>').withIccProfile('p3')

  it('is removed when that is asked for, the place first of all; the colour profile stays', async () => {
    const app = await startWith({ stripMetadata: true })
    for (const format of ['jpeg', 'webp', 'png', 'avif'] as const) {
      const source = await (await taken()).toFormat(format).toBuffer()
      expect((await sharp(source).metadata()).exif, format).toBeDefined()
      const { meta, bytes } = await open(await store(app, `a.${format}`, source))
      expect(meta, format).toMatchObject({ format: format === 'avif' ? 'heif' : format })
      expect([meta.exif, meta.xmp], format).toEqual([undefined, undefined])
      expect(bytes.includes('somebody'), format).toBe(false)
      expect(meta.icc, format).toBeDefined()
    }
  })

  it('is kept when it is not', async () => {
    const source = await (await taken()).jpeg().toBuffer()
    const { meta } = await open(await store(await startWith({ resize: { width: 100 } }), 'a.jpg', source))
    expect(meta.exif?.includes('somebody')).toBe(true)
  })

  it('of a TIFF is removed by encoding it again, without loss', async () => {
    const app = await startWith({ stripMetadata: true })
    const deep = sharp(
      new Uint16Array(3600).map((_, n) => n * 17),
      { raw: { width: 40, height: 30, channels: 3 } },
    ).toColourspace('rgb16')
    for (const [image, orientation] of [
      [await photo(40, 30), 1],
      [deep, 6],
    ] as const) {
      const tagged = image.withExif(WITH_PLACE).withXmp('<x>somebody</x>').withMetadata({ orientation })
      const source = Buffer.concat([
        await tagged.tiff({ compression: 'lzw' }).toBuffer(),
        Buffer.from('somebody'),
      ])
      const { meta, bytes } = await open(await store(app, 'a.tif', source))
      expect(meta.orientation ?? 1).toBe(1)
      expect(bytes.includes('somebody')).toBe(false)
      const pixels = (file: Buffer) => sharp(file).autoOrient().raw({ depth: 'ushort' }).toBuffer()
      expect(await pixels(bytes)).toEqual(await pixels(source))
    }
    const two = await store(app, 'b.tif', tiffOf(greyPage(16, 8), greyPage(16, 8)))
    expectFailure(two, 422, 'source_failed')
    expect(two.message).toMatch(/"b\.tif".*it has several pages/)
  })

  it('costs pictures without any nothing', async () => {
    const source = await (await photo()).jpeg().toBuffer()
    await expectStored(await store(await startWith({ stripMetadata: true }), 'a.jpg', source), [source])
  })
})

describe('depth, colours and exactness', () => {
  const ofRaw = (channels: 1 | 3, values: Uint8Array | Uint16Array) =>
    sharp(values, { raw: { width: 40, height: 30, channels } })
  const deep = (channels: 1 | 3) =>
    ofRaw(
      channels,
      new Uint16Array(1200 * channels).map((_, n) => n * 17),
    ).toColourspace(channels === 1 ? 'grey16' : 'rgb16')
  const grey = () => ofRaw(1, new Uint8Array(1200).fill(160)).toColourspace('b-w')

  it.for<[string, string, () => Promise<Buffer>, object]>([
    ['a PNG of 16 bits', 'a.png', () => deep(3).png().toBuffer(), { space: 'rgb16', depth: 'ushort' }],
    ['a grey PNG of 16 bits', 'a.png', () => deep(1).png().toBuffer(), { space: 'grey16', channels: 1 }],
    [
      'a TIFF of 16 bits',
      'a.tif',
      () => deep(3).tiff({ compression: 'lzw' }).toBuffer(),
      { depth: 'ushort' },
    ],
    ['an AVIF of 10 bits', 'a.avif', () => deep(3).avif({ bitdepth: 10 }).toBuffer(), { bitsPerSample: 10 }],
    ['a grey PNG', 'a.png', () => grey().png().toBuffer(), { space: 'b-w', channels: 1 }],
    ['a grey JPEG', 'a.jpg', () => grey().jpeg().toBuffer(), { space: 'b-w', channels: 1 }],
    [
      'a PNG of a palette',
      'a.png',
      () => plain(40, 30).png({ palette: true }).toBuffer(),
      { isPalette: true, bitsPerSample: 8 },
    ],
    [
      'a transparent TIFF',
      'a.tif',
      () => plain(40, 30).ensureAlpha(0.5).tiff({ compression: 'lzw' }).toBuffer(),
      { hasAlpha: true },
    ],
  ])('of %s stay when it is changed', async ([, name, make, shape]) => {
    const source = await make()
    expect(await sharp(source).metadata()).toMatchObject(shape)
    const { meta } = await open(
      await store(await startWith({ stripMetadata: true, resize: { percent: 50 } }), name, source),
    )
    expect(meta).toMatchObject(shape)
  })

  it.for(['jpeg', 'png', 'webp'] as const)(
    'of a grey picture with a profile of its own stay as %s',
    async format => {
      const source = await grey()
        .withIccProfile(await greyProfile())
        .png()
        .toBuffer()
      const shown = async (picture: Buffer) =>
        (await sharp(picture).toColourspace('srgb').raw().toBuffer())[0]!
      for (const strip of [true, false]) {
        const app = await startWith({ stripMetadata: strip, resize: { percent: 50 }, format, larger: true })
        const { bytes } = await open(await store(app, 'a.png', source))
        expect(Math.abs((await shown(bytes)) - (await shown(source)))).toBeLessThan(3)
      }
    },
  )
})

describe('files of several still pictures', () => {
  const avif = async (width: number, colour: Rgb) =>
    imageOf(await plain(width, 48, colour).avif({ effort: 0 }).toBuffer())
  const two = async (primary: number) => heifOf([await avif(64, RED), await avif(48, BLUE)], { primary })

  it.for([
    [
      'an AVIF',
      'a.avif',
      { resize: { width: 32 }, format: 'avif', larger: true },
      () => two(2),
      'a.avif',
      32,
      BLUE,
    ],
    [
      'an AVIF of which nothing but metadata is to go',
      'a.avif',
      { stripMetadata: true },
      () => two(2),
      'a.avif',
      48,
      BLUE,
    ],
    ['an AVIF', 'a.avif', { format: 'webp', larger: true }, () => two(1), 'a.webp', 64, RED],
    [
      'a TIFF of different sizes',
      'a.tif',
      { format: 'webp', larger: true },
      async () => tiffOf(greyPage(255, 9), greyPage(5, 8)),
      'a.webp',
      255,
      [255, 255, 255],
    ],
  ] as const)(
    '%s, of %s with %o: the primary one is changed',
    async ([, name, options, make, stored, width, colour]) => {
      const { meta, item, at } = await open(await store(await startWith(options), name, await make()))
      expect(item.fileName).toBe(stored)
      expect([meta.width, meta.pages ?? 1]).toEqual([width, 1])
      expectColour(at(2, 2), [...colour])
    },
  )

  it('an animated AVIF is stored as it is, or refused by name when its metadata is to go', async () => {
    const animated = heifOf([await avif(64, RED)], { brands: ['avis', 'avif', 'mif1'] })
    await expectStored(await store(await startWith({ format: 'webp', larger: true }), 'a.avif', animated), [
      animated,
    ])
    const answer = await store(
      await startWith({ stripMetadata: true, unreadable: 'keep' }),
      'a.avif',
      animated,
    )
    expectFailure(answer, 422, 'source_failed')
    expect(answer.message).toContain('"a.avif" could not be removed, because it is an animated AVIF')
  })
})

describe('animated pictures', () => {
  const frames = () => Promise.all([RED, BLUE, RED].map(colour => plain(60, 40, colour).png().toBuffer()))
  const gif = async () =>
    sharp(await frames(), { join: { animated: true } })
      .gif({ delay: [50, 60, 70], loop: 2 })
      .toBuffer()

  it.for(['webp', 'jpeg'] as const)('stay so when everything becomes %s', async format => {
    const app = await startWith({
      format,
      larger: true,
      resize: { width: 30 },
      stripMetadata: true,
    })
    const { meta, at, item } = await open(await store(app, 'a.gif', await gif()))
    const shape = { pages: 3, pageHeight: 20, width: 30, delay: [50, 60, 70], loop: 2 }
    expect(meta).toMatchObject({ ...shape, format: format === 'webp' ? 'webp' : 'gif' })
    expect(item.fileName).toBe(format === 'webp' ? 'a.webp' : 'a.gif')
    expectColour(at(15, 10), RED)
    expectColour(at(15, 30), BLUE)
    expectColour(at(15, 50), RED)
  })
})

describe('a watermark', () => {
  const white: Rgb = [255, 255, 255]

  async function marked(watermark: object, width = 400, height = 300) {
    const app = await startWith({ watermark: { image: './mark.png', ...watermark } })
    await writeFile(join(app.directory, 'mark.png'), await plain(100, 50, white).png().toBuffer())
    return open(await store(app, 'a.png', await plain(width, height).png().toBuffer()))
  }

  it('lies where it should, as large as it should', async () => {
    const { at, meta } = await marked({ position: 'northwest', scale: 0.25 })
    expect(meta).toMatchObject({ width: 400, height: 300 })
    expectColour(at(98, 48), white)
    expectColour(at(102, 48), RED)
    expectColour(at(98, 52), RED)
  })

  it('shows what is under it', async () => {
    expectColour((await marked({ opacity: 0.5 })).at(398, 298), [255, 128, 128])
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

  it('of the configuration may be an SVG, though uploaded ones are not read', async () => {
    const app = await startWith({ format: 'png', watermark: { image: './mark.svg', position: 'northwest' } })
    const drawing =
      '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9" fill="#fff"/></svg>'
    await writeFile(join(app.directory, 'mark.svg'), drawing)
    const source = await plain(100, 100).jpeg().toBuffer()
    for (const name of ['a.jpg', 'b.jpg'])
      expectColour((await open(await store(app, name, source))).at(5, 5), white)
    const foreign = Buffer.from(drawing)
    await expectStored(await store(app, 'c.jpg', foreign), [foreign])
  })

  it('that is not there fails the upload, and says so', async () => {
    const app = await startWith({ watermark: { image: './nowhere.png' } })
    const answer = await store(app, 'a.png', await plain(10, 10).png().toBuffer())
    expectFailure(answer, 502, 'destination_failed')
    expect(answer.message).toContain('images.watermark')
  })
})

describe('left as they are:', () => {
  const everything = {
    format: 'webp',
    quality: 1,
    stripMetadata: true,
    resize: { percent: 50 },
    larger: true,
  }

  it.for([
    ['SVG', '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script/></svg>'],
    ['text', 'some text'],
    ['PDF', '%PDF-1.7\n%%EOF'],
    ['nothing', ''],
    ['BMP', Buffer.concat([Buffer.from('BM'), randomBytes(100)])],
  ] as const)('%s', async ([, content]) => {
    await expectStored(await store(await startWith(everything), 'a.png', Buffer.from(content)), [content])
  })
})

describe('hostile pictures', () => {
  it('that would fill the memory are refused before they are read', async () => {
    const app = await startWith({ stripMetadata: true, maxPixels: 1_000_000 })
    const bomb = await sharp({ create: { width: 8000, height: 8000, channels: 3, background: '#000' } })
      .png({ compressionLevel: 9 })
      .toBuffer()
    const answer = await store(app, 'bomb.png', bomb)
    expectFailure(answer, 413, 'too_large')
    expect(answer.message).toMatch(/"bomb\.png" has 64 million pixels.*images\.maxPixels/)
  })

  it('that would fill the memory with their frames', async () => {
    const app = await startWith({ stripMetadata: true, maxPixels: 100_000 })
    const frames = await Promise.all(
      Array.from({ length: 30 }, (_, index) =>
        plain(100, 100, index % 2 ? RED : BLUE)
          .png()
          .toBuffer(),
      ),
    )
    const many = await sharp(frames, { join: { animated: true } })
      .gif()
      .toBuffer()
    expectFailure(await store(app, 'a.gif', many), 413, 'too_large')
  })

  it('that grow by what the destination says are stopped, too', async () => {
    const app = await startWith({ maxPixels: 1_000_000, resize: { percent: 500, enlarge: true } })
    const answer = await store(app, 'a.png', await plain(900, 900).png().toBuffer())
    expectFailure(answer, 413, 'too_large')
  })

  it('that are broken fail, or are stored as they are where that is wanted', async () => {
    const whole = await (await photo()).png().toBuffer()
    const broken = whole.subarray(0, whole.length / 2)
    const answer = await store(
      await startWith({ stripMetadata: true, resize: { percent: 50 } }),
      'a.png',
      broken,
    )
    expectFailure(answer, 422, 'source_failed')
    expect(answer.message).toMatch(/"a\.png" could not be decoded as an image.*images\.unreadable/)
    const kept = await store(
      await startWith({ stripMetadata: true, resize: { percent: 50 }, unreadable: 'keep' }),
      'a.png',
      broken,
    )
    await expectStored(kept, [broken])
  })

  it('that take too long end', async () => {
    const app = await startWith({ format: 'avif', timeout: '5ms' })
    const source = await (await photo(1200, 1200)).png().toBuffer()
    const answer = await store(app, 'a.png', source)
    expectFailure(answer, 422, 'source_failed')
    expect(answer.message).toContain('images.timeout')
  })

  it('of HEIC are told apart', async () => {
    const heic = Buffer.concat([
      Buffer.from('\0\0\0\x18ftypheic\0\0\0\0mif1heic', 'latin1'),
      randomBytes(1000),
    ])
    const answer = await store(await startWith({ format: 'jpeg' }), 'a.heic', heic)
    expectFailure(answer, 422, 'source_failed')
    expect(answer.message).toContain('could not be decoded as an image')
    const whole = await readFile(HEIC)
    const cut = Buffer.concat([whole.subarray(0, -300), randomBytes(300)])
    for (const options of [{ format: 'webp' }, { stripMetadata: true, maxPixels: 1000 }] as const) {
      const failed = await store(await startWith(options), 'a.heic', 'maxPixels' in options ? whole : cut)
      expect(failed.success).toBe(false)
    }
  })

  it('leave nothing behind', async () => {
    const app = await startWith({ stripMetadata: true, maxPixels: 1000, format: 'webp' })
    await store(
      app,
      'a.png',
      Buffer.concat([await (await photo(1200, 1200)).png().toBuffer(), randomBytes(3_000_000)]),
    )
    expect(
      (await app.files()).filter(path => path.includes('upload-server/') && !path.endsWith('store.db')),
    ).toEqual([])
  })
})

describe('a request asks for', () => {
  const requests = ['format', 'quality', 'size', 'stripMetadata']

  it('what it may, within what the destination says', async () => {
    const app = await startWith({ allowFromRequest: requests, resize: { width: 200 } })
    const source = await (await photo()).withExif(WITH_PLACE).jpeg().toBuffer()
    const one = await open(
      await store(app, 'a.jpg', source, '?format=webp&quality=50&width=100&stripMetadata=1'),
    )
    expect(one.meta).toMatchObject({ format: 'webp', width: 100, height: 75 })
    expect(one.meta.exif).toBeUndefined()
    const two = await open(await store(app, 'a.jpg', source, '?width=390'))
    expect(two.meta).toMatchObject({ format: 'jpeg', width: 200 })
  })

  it.for([
    ['?format=webp', {}, 'images.allowFromRequest'],
    ['?width=100', { allowFromRequest: ['format'] }, 'the size of images'],
    ['?format=bmp', { allowFromRequest: requests }, '"format" must be webp, avif, jpeg, png'],
    ['?quality=0', { allowFromRequest: requests }, '"quality" must be'],
    ['?height=99999', { allowFromRequest: requests }, '"height" must be'],
    ['?stripMetadata=please', { allowFromRequest: requests }, '"stripMetadata" must be'],
  ] as const)('too much: %s with %o', async ([query, pictures, words]) => {
    const app = await startWith(pictures)
    const answer = await store(app, 'a.png', await plain(10, 10).png().toBuffer(), query)
    expectFailure(answer, 400, 'invalid_request')
    expect(answer.message).toContain(words)
  })
})

it('many at once are changed one after the other, each by itself', async () => {
  const app = await startWith({ format: 'webp', larger: true })
  const colours = Array.from({ length: 12 }, (_, index): Rgb => [index * 20, 0, 255 - index * 20])
  const answers = await Promise.all(
    colours.map(async (colour, index) =>
      store(app, `${index}.png`, await plain(50, 50, colour).png().toBuffer()),
    ),
  )
  for (const [index, answer] of answers.entries()) {
    const { at, item } = await open(answer)
    expect(item.fileName).toBe(`${index}.webp`)
    for (const [channel, value] of colours[index]!.entries())
      expect(Math.abs(at(25, 25)[channel]! - value)).toBeLessThan(8)
  }
})

describe('without a package', () => {
  const HOOK = new URL('../fixtures/without.mjs', import.meta.url)

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
    const answer = await upload(`${url}/upload`, { 'a.heic': await readFile(HEIC) })
    expectFailure(answer, 502, 'destination_failed')
    expect(answer.message).toMatch(
      /^Image processing is not available: .*"npm install --omit=optional libheif-js"/,
    )
    const other = await upload(`${url}/upload`, { 'a.png': await plain(10, 10).png().toBuffer() })
    expect((await open(other)).item.contentType).toBe('image/webp')
  })
})
