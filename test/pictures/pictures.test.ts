import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import sharp, { type Sharp } from 'sharp'
import { describe, expect, it } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { expectFailure, expectStored } from '../helpers/expect-answer.ts'
import { heifOf, imageOf } from '../helpers/heif.ts'
import { pngChunk } from '../helpers/picture.ts'
import { expectColour, open, plain, RED, type Rgb, startWith, store } from '../helpers/pictures-app.ts'
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

const raw = (channels: 1 | 3, values: Uint8Array | Uint16Array) =>
  sharp(values, { raw: { width: 40, height: 30, channels } })
const deep = (channels: 1 | 3) =>
  raw(
    channels,
    new Uint16Array(1200 * channels).map((_, n) => n * 17),
  ).toColourspace(channels === 1 ? 'grey16' : 'rgb16')
const grey = () => raw(1, new Uint8Array(1200).fill(160)).toColourspace('b-w')
const small = () => plain(300, 300).webp({ quality: 1 })
const clear = () => sharp({ create: { width: 20, height: 20, channels: 4, background: '#ff000000' } })
const lying = async () => (await photo()).withMetadata({ orientation: 6 }).jpeg()
const heic = () => readFile(HEIC)
const avif = async (width: number, colour: Rgb) =>
  imageOf(await plain(width, 48, colour).avif({ effort: 0 }).toBuffer())
const twoImages = async (primary: number) => heifOf([await avif(64, RED), await avif(48, BLUE)], { primary })
const animatedAvif = async () => heifOf([await avif(64, RED)], { brands: ['avis', 'avif', 'mif1'] })
/** @param delay of each frame; the colours alternate */
async function gif(delay: number[], size: [number, number] = [60, 40]) {
  const frames = delay.map((_, n) =>
    plain(...size, n % 2 ? BLUE : RED)
      .png()
      .toBuffer(),
  )
  return sharp(await Promise.all(frames), { join: { animated: true } }).gif({ delay, loop: 2 })
}
async function apng(): Promise<Buffer> {
  const png = await (await photo(40, 30)).png().toBuffer()
  const control = pngChunk('acTL', Buffer.from([0, 0, 0, 1, 0, 0, 0, 0]))
  return Buffer.concat([png.subarray(0, 33), control, png.subarray(33)])
}

type Source = () => Buffer | Sharp | Promise<Buffer | Sharp>
const bytesFrom = async (make: Source): Promise<Buffer> => {
  const made = await make()
  return Buffer.isBuffer(made) ? made : made.toBuffer()
}

/** What an image is, and the colours at some pixels. */
interface Changed {
  readonly is?: object
  readonly at?: readonly (readonly [x: number, y: number, colour: Rgb])[]
  readonly item?: object
}

const WHITE: Rgb = [255, 255, 255]
const HALVES = [[20, 20, RED] as const, [380, 20, BLUE] as const]
const EVERYTHING = {
  ...{ format: 'webp', quality: 1, stripMetadata: true, resize: { percent: 50 }, larger: true },
}
const HALF = { stripMetadata: true, resize: { percent: 50 } }
const LARGER = { format: 'webp', larger: true }
const resized = (width: number, height: number): Changed => ({
  is: { width, height, format: 'png' },
  at: [[2, 2, RED] as const, [width - 3, 2, BLUE] as const],
})
const converted = (format: string, contentType: string, extension: string): Changed => ({
  is: { format, width: 400, height: 300 },
  item: { contentType, origin: 'my photo.tiff', fileName: `my photo${extension}` },
  at: HALVES,
})

it.for<[what: string, images: object, name: string, make: Source, found: Changed | 'kept']>([
  ...(
    [
      ['webp', converted('webp', 'image/webp', '.webp')],
      ['avif', converted('heif', 'image/avif', '.avif')],
      ['jpeg', converted('jpeg', 'image/jpeg', '.jpg')],
      ['png', converted('png', 'image/png', '.png')],
    ] as const
  ).map(([format, found]): [string, object, string, Source, Changed] => [
    `becomes a ${format}`,
    { format, larger: true },
    'my photo.tiff',
    async () => (await photo()).tiff(),
    found,
  ]),
  ...(
    [
      ['a.png', async () => (await photo()).png(), { item: { contentType: 'image/webp' } }],
      ['a.tif', async () => (await photo()).tiff(), { item: { contentType: 'image/jpeg' } }],
      ['a.jpg', async () => (await photo()).jpeg(), 'kept'],
    ] as const
  ).map(([name, make, found]): [string, object, string, Source, Changed | 'kept'] => [
    'each format becomes its own',
    { format: { png: 'webp', tiff: 'jpeg' } },
    name,
    make,
    found,
  ]),
  ['is kept when it would have more bytes', { format: 'png', quality: 100 }, 'a.webp', small, 'kept'],
  ['is changed all the same', { format: 'png', larger: true }, 'a.webp', small, { is: { format: 'png' } }],
  [
    'is on white where the format has no transparency',
    { format: 'jpeg', larger: true },
    'a.png',
    () => clear().png(),
    { at: [[5, 5, WHITE]] },
  ],
  [
    'becomes a JPEG when nothing but metadata is to go',
    { stripMetadata: true },
    'a.heic',
    heic,
    {
      is: { width: 64, hasProfile: true, hasAlpha: false },
      item: { fileName: 'a.jpg', contentType: 'image/jpeg' },
      at: [[2, 2, [0, 255, 0]] as const, [60, 32, [0xc0, 0x30, 0x60]] as const],
    },
  ],
  [
    'is resized',
    { format: 'webp', resize: { width: 32 } },
    'a.heic',
    heic,
    { is: { width: 32, hasProfile: true }, item: { fileName: 'a.webp', contentType: 'image/webp' } },
  ],
  ['is kept when nothing is asked for', {}, 'a.heic', heic, 'kept'],
  ...(
    [
      [{ width: 100 }, resized(100, 75)],
      [{ height: 60 }, resized(80, 60)],
      [{ width: 100, height: 50 }, resized(67, 50)],
      [{ width: 1000 }, 'kept'],
      [{ width: 800, enlarge: true }, resized(800, 600)],
      [{ percent: 50 }, resized(200, 150)],
      [{ percent: 200 }, 'kept'],
    ] as const
  ).map(([resize, found]): [string, object, string, Source, Changed | 'kept'] => [
    'fits into a size',
    { resize },
    'a.png',
    async () => (await photo()).png(),
    found,
  ]),
  [
    'fits as it is seen, not as it lies in the file',
    { resize: { width: 150 } },
    'a.jpg',
    lying,
    { is: { width: 150, height: 200 }, at: [[75, 5, RED] as const, [75, 195, BLUE] as const] },
  ],
  ['is turned as its metadata says', { orient: true }, 'a.jpg', lying, { is: { width: 300, height: 400 } }],
  ['is kept when it is upright', { orient: true }, 'a.jpg', async () => (await photo()).jpeg(), 'kept'],
  ['has no metadata', { stripMetadata: true }, 'a.jpg', async () => (await photo()).jpeg(), 'kept'],
  ['keeps 16 bits', HALF, 'a.png', () => deep(3).png(), { is: { space: 'rgb16', depth: 'ushort' } }],
  ['keeps 16 bits of grey', HALF, 'a.png', () => deep(1).png(), { is: { space: 'grey16', channels: 1 } }],
  ['keeps 16 bits', HALF, 'a.tif', () => deep(3).tiff({ compression: 'lzw' }), { is: { depth: 'ushort' } }],
  ['keeps 10 bits', HALF, 'a.avif', () => deep(3).avif({ bitdepth: 10 }), { is: { bitsPerSample: 10 } }],
  ['stays grey', HALF, 'a.png', () => grey().png(), { is: { space: 'b-w', channels: 1 } }],
  ['stays grey', HALF, 'a.jpg', () => grey().jpeg(), { is: { space: 'b-w', channels: 1 } }],
  [
    'keeps its palette',
    HALF,
    'a.png',
    () => plain(40, 30).png({ palette: true }),
    { is: { isPalette: true, bitsPerSample: 8 } },
  ],
  [
    'stays transparent',
    HALF,
    'a.tif',
    () => plain(40, 30).ensureAlpha(0.5).tiff({ compression: 'lzw' }),
    { is: { hasAlpha: true } },
  ],
  [
    'is the primary image',
    { ...LARGER, format: 'avif', resize: { width: 32 } },
    'a.avif',
    () => twoImages(2),
    { is: { width: 32, pages: 1 }, at: [[2, 2, BLUE]] },
  ],
  [
    'is the primary image without metadata',
    { stripMetadata: true },
    'a.avif',
    () => twoImages(2),
    { is: { width: 48 }, at: [[2, 2, BLUE]], item: { fileName: 'a.avif' } },
  ],
  ['is the primary image', LARGER, 'a.avif', () => twoImages(1), { is: { width: 64 }, at: [[2, 2, RED]] }],
  [
    'is the first page',
    LARGER,
    'a.tif',
    () => tiffOf(greyPage(255, 9), greyPage(5, 8)),
    { is: { width: 255 }, at: [[2, 2, WHITE]], item: { fileName: 'a.webp' } },
  ],
  ['is animated, and kept', LARGER, 'a.avif', animatedAvif, 'kept'],
  ['is animated, and kept', { ...LARGER, stripMetadata: true }, 'a.png', apng, 'kept'],
  ...(['webp', 'jpeg'] as const).map((format): [string, object, string, Source, Changed] => [
    'stays animated',
    { format, larger: true, resize: { width: 30 }, stripMetadata: true },
    'a.gif',
    () => gif([50, 60, 70]),
    {
      is: {
        ...{ pages: 3, pageHeight: 20, width: 30, delay: [50, 60, 70], loop: 2 },
        format: format === 'webp' ? 'webp' : 'gif',
      },
      item: { fileName: format === 'webp' ? 'a.webp' : 'a.gif' },
      at: [[15, 10, RED] as const, [15, 30, BLUE] as const, [15, 50, RED] as const],
    },
  ]),
  ...[
    '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script/></svg>',
    ...['some text', '%PDF-1.7\n%%EOF', '', `BM${randomBytes(50).toString('hex')}`],
  ].map((content): [string, object, string, Source, 'kept'] => [
    `is ${JSON.stringify(content.slice(0, 9))}`,
    EVERYTHING,
    'a.png',
    () => Buffer.from(content),
    'kept',
  ]),
])('an image %s (%o, %s)', async ([, images, name, make, found]) => {
  const source = await bytesFrom(make)
  const answer = await store(await startWith(images), name, source)
  if (found === 'kept') return expectStored(answer, [source])
  const { meta, item, at } = await open(answer)
  expect({ pages: 1, ...meta }).toMatchObject(found.is ?? {})
  expect(meta.orientation ?? 1).toBe(1)
  expect(item).toMatchObject(found.item ?? {})
  for (const [x, y, colour] of found.at ?? []) expectColour(at(x, y), colour)
})

it('the quality is the one that is asked for', async () => {
  const source = await (await photo()).jpeg({ quality: 100 }).toBuffer()
  const sizes = await Promise.all(
    [30, 80].map(
      async quality => (await open(await store(await startWith({ quality }), 'a.jpg', source))).item.size,
    ),
  )
  expect(sizes[0]).toBeLessThan(sizes[1]! * 0.7)
  expect(sizes[1]).toBeLessThan(source.length)
})

describe('metadata', () => {
  const taken = async () =>
    (await photo()).withExif(WITH_PLACE).withXmp('<x:xmpmeta xmlns:x="adobe:ns:meta/"/>').withIccProfile('p3')

  // Of every format: test/pictures/strip.test.ts.
  it('is removed when that is asked for, the place first of all; the colour profile stays', async () => {
    const source = await (await taken()).jpeg().toBuffer()
    expect((await sharp(source).metadata()).exif).toBeDefined()
    const { meta, bytes } = await open(await store(await startWith({ stripMetadata: true }), 'a.jpg', source))
    expect([meta.format, meta.exif, meta.xmp]).toEqual(['jpeg', undefined, undefined])
    expect(bytes.includes('somebody')).toBe(false)
    expect(meta.icc).toBeDefined()
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
})

it.for(['jpeg', 'png', 'webp'] as const)(
  'of a grey picture with a profile of its own stay as %s',
  async format => {
    const source = await grey()
      .withIccProfile(await greyProfile())
      .png()
      .toBuffer()
    const shown = async (picture: Buffer) => (await sharp(picture).toColourspace('srgb').raw().toBuffer())[0]!
    for (const strip of [true, false]) {
      const app = await startWith({ stripMetadata: strip, resize: { percent: 50 }, format, larger: true })
      const { bytes } = await open(await store(app, 'a.png', source))
      expect(Math.abs((await shown(bytes)) - (await shown(source)))).toBeLessThan(3)
    }
  },
)

const REQUESTS = ['format', 'quality', 'size', 'stripMetadata']
const bomb = () => sharp({ create: { width: 8000, height: 8000, channels: 3, background: '#000' } })
const cut = async (make: Source) => {
  const whole = await bytesFrom(make)
  return whole.subarray(0, whole.length / 2)
}
const half = () => cut(async () => (await photo()).png())

it.for<
  [what: string, images: object, make: Source, status: number, code: string, says: RegExp, query?: string]
>([
  [
    'would fill the memory',
    { stripMetadata: true, maxPixels: 1_000_000 },
    () => bomb().png({ compressionLevel: 9 }),
    ...([413, 'too_large', /"a\.png" has 64 million pixels.*images\.maxPixels/] as const),
  ],
  [
    'would fill the memory with its frames',
    { stripMetadata: true, maxPixels: 100_000 },
    () => gif(Array(30).fill(50), [100, 100]),
    ...([413, 'too_large', /images\.maxPixels/] as const),
  ],
  [
    'would grow by what the destination says',
    { maxPixels: 1_000_000, resize: { percent: 500, enlarge: true } },
    () => plain(900, 900).png(),
    ...([413, 'too_large', /images\.maxPixels/] as const),
  ],
  [
    'is broken',
    HALF,
    half,
    ...([422, 'source_failed', /"a\.png" could not be decoded as an image.*images\.unreadable/] as const),
  ],
  [
    'takes too long',
    { format: 'avif', timeout: '5ms' },
    async () => (await photo(1200, 1200)).png(),
    ...([422, 'source_failed', /images\.timeout/] as const),
  ],
  [
    'is an HEIC of noise',
    { format: 'jpeg' },
    () =>
      Buffer.concat([Buffer.from('\0\0\0\x18ftypheic\0\0\0\0mif1heic', 'latin1'), Buffer.alloc(1000, 0x5a)]),
    ...([422, 'source_failed', /could not be decoded as an image/] as const),
  ],
  [
    'is an HEIC that ends in noise',
    { format: 'webp' },
    async () => Buffer.concat([(await heic()).subarray(0, -300), Buffer.alloc(300, 0x5a)]),
    ...([422, 'source_failed', /could not be decoded/] as const),
  ],
  [
    'is an HEIC of too many pixels',
    { stripMetadata: true, maxPixels: 1000 },
    heic,
    ...([413, 'too_large', /images\.maxPixels/] as const),
  ],
  [
    'is an animated AVIF whose metadata is to go',
    { stripMetadata: true, unreadable: 'keep' },
    animatedAvif,
    ...([422, 'source_failed', /could not be removed, because it is an animated AVIF/] as const),
  ],
  [
    'is an animated PNG that is cut',
    { stripMetadata: true },
    () => cut(apng),
    422,
    'source_failed',
    /a\.png/,
  ],
  [
    'has a watermark that is not there',
    { watermark: { image: './nowhere.png' } },
    () => plain(10, 10).png(),
    ...([502, 'destination_failed', /images\.watermark/] as const),
  ],
  ...(
    [
      ['?format=webp', {}, /images\.allowFromRequest/],
      ['?width=100', { allowFromRequest: ['format'] }, /the size of images/],
      ['?format=bmp', { allowFromRequest: REQUESTS }, /"format" must be webp, avif, jpeg, png/],
      ['?quality=0', { allowFromRequest: REQUESTS }, /"quality" must be/],
      ['?height=99999', { allowFromRequest: REQUESTS }, /"height" must be/],
      ['?stripMetadata=please', { allowFromRequest: REQUESTS }, /"stripMetadata" must be/],
    ] as const
  ).map(([query, images, says]): [string, object, Source, number, string, RegExp, string] => [
    `is sent with ${query}`,
    images,
    () => plain(10, 10).png(),
    ...([400, 'invalid_request', says] as const),
    query,
  ]),
])('an image is refused that %s (%o)', async ([, images, make, status, code, says, query]) => {
  const answer = await store(await startWith(images), 'a.png', await bytesFrom(make), query)
  expectFailure(answer, status, code)
  expect(answer.message).toMatch(says)
})

it('a broken image is stored as it is where that is wanted', async () => {
  const broken = await half()
  await expectStored(await store(await startWith({ ...HALF, unreadable: 'keep' }), 'a.png', broken), [broken])
})

it('what is refused leaves nothing behind', async () => {
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

it('a request asks for what it may, within what the destination says', async () => {
  const app = await startWith({ allowFromRequest: REQUESTS, resize: { width: 200 } })
  const source = await (await photo()).withExif(WITH_PLACE).jpeg().toBuffer()
  const one = await open(
    await store(app, 'a.jpg', source, '?format=webp&quality=50&width=100&stripMetadata=1'),
  )
  expect(one.meta).toMatchObject({ format: 'webp', width: 100, height: 75 })
  expect(one.meta.exif).toBeUndefined()
  const two = await open(await store(app, 'a.jpg', source, '?width=390'))
  expect(two.meta).toMatchObject({ format: 'jpeg', width: 200 })
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
