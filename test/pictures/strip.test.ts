import sharp, { type Sharp } from 'sharp'
import { describe, expect, it } from 'vitest'
import { UploadError } from '../../src/errors.ts'
import { assertOnePage, strip } from '../../src/pictures/strip/index.ts'
import { gridOf, heifOf, imageOf } from '../helpers/heif.ts'
import { pngChunk } from '../helpers/picture.ts'
import { greyPage, tiffOf } from '../helpers/tiff.ts'

type Format = Parameters<typeof strip>[1]

/** What must not be in a stripped file. */
const SECRET = 'somebody'
const secret = Buffer.from(`${SECRET} was here`)

const WITH_PLACE = { IFD0: { Artist: SECRET }, IFD3: { GPSLatitudeRef: 'N', GPSLatitude: '51/1 30/1 0/1' } }

function blank(width = 16, height = 8): Sharp {
  return sharp({ create: { width, height, channels: 3, background: '#c03060' } })
}

async function animation(): Promise<Sharp> {
  const frames = ['#f00', '#00f'].map(background =>
    sharp({ create: { width: 8, height: 8, channels: 3, background } })
      .png()
      .toBuffer(),
  )
  return sharp(await Promise.all(frames), { join: { animated: true } })
}

const u16 = (value: number) => Buffer.from([value >> 8, value & 255])
const u32 = (value: number) => Buffer.concat([u16(value >>> 16), u16(value & 65_535)])
const little = (value: number) => u32(value).reverse()

function insert(file: Buffer, at: number, ...parts: Uint8Array[]): Buffer {
  return Buffer.concat([file.subarray(0, at), ...parts, file.subarray(at)])
}

// JPEG

const segment = (marker: number, data: Buffer) =>
  Buffer.concat([Buffer.from([0xff, marker]), u16(data.length + 2), data])

/** A JPEG with a segment at its beginning. */
async function jpegWith(marker: number, prefix: string): Promise<Buffer> {
  return insert(
    await blank().jpeg().toBuffer(),
    2,
    segment(marker, Buffer.concat([Buffer.from(prefix), secret])),
  )
}

// PNG

/** A PNG with a chunk before its end, behind the image data. */
async function pngWith(type: string, data: Buffer = secret): Promise<Buffer> {
  const png = await blank().png().toBuffer()
  return insert(png, png.length - 12, pngChunk(type, data))
}

/** What Exif data has in common everywhere: an artist, and an orientation. */
function exif(orientation: number): Buffer {
  const entries = [
    Buffer.concat([u16(0x0112), u16(3), u32(1), u16(orientation), u16(0)]),
    Buffer.concat([u16(0x013b), u16(2), u32(secret.length), u32(8 + 2 + 24 + 4)]),
  ]
  return Buffer.concat([Buffer.from('MM\0*'), u32(8), u16(2), ...entries, u32(0), secret])
}

// WebP

const part = (tag: string, data: Buffer) =>
  Buffer.concat([Buffer.from(tag), little(data.length), data, Buffer.alloc(data.length % 2)])

function webp(...parts: Buffer[]): Buffer {
  const data = Buffer.concat([Buffer.from('WEBP'), ...parts])
  return Buffer.concat([Buffer.from('RIFF'), little(data.length), data])
}

/** An extended WebP with these flags and parts. */
async function webpWith(flags: number, ...parts: Buffer[]): Promise<Buffer> {
  const image = (await blank().webp({ lossless: true }).toBuffer()).subarray(12)
  return webp(part('VP8X', Buffer.from([flags, 0, 0, 0, 15, 0, 0, 7, 0, 0])), image, ...parts)
}

// GIF

const blocks = (data: Buffer) => Buffer.concat([Buffer.from([data.length]), data, Buffer.alloc(1)])
const gifWith = async (label: number, ...more: Buffer[]) => {
  const gif = await (await animation()).gif().toBuffer()
  return insert(gif, gif.length - 1, Buffer.from([0x21, label]), ...more)
}

const ROWS: [what: string, format: Format, file: () => Promise<Buffer>][] = [
  ['JPEG with Exif', 'jpeg', () => blank().withExif(WITH_PLACE).jpeg().toBuffer()],
  ['JPEG with XMP', 'jpeg', () => blank().withXmp(`<x>${SECRET}</x>`).jpeg().toBuffer()],
  ['JPEG with a comment', 'jpeg', () => jpegWith(0xfe, '')],
  ['JPEG with APP4', 'jpeg', () => jpegWith(0xe4, '')],
  ['JPEG with APP11 (C2PA)', 'jpeg', () => jpegWith(0xeb, 'JP')],
  ['JPEG with APP12', 'jpeg', () => jpegWith(0xec, 'Ducky')],
  ['JPEG with APP13 (IPTC)', 'jpeg', () => jpegWith(0xed, 'Photoshop 3.0\0')],
  [
    'JPEG with a thumbnail in its header',
    'jpeg',
    () => jpegWith(0xe0, 'JFIF\0\x01\x01\0\0\x01\0\x01\x01\x06'),
  ],
  ['JPEG with a thumbnail in JFXX', 'jpeg', () => jpegWith(0xe0, 'JFXX\0')],
  ['JPEG with a list of images (MPF)', 'jpeg', () => jpegWith(0xe2, 'MPF\0')],
  [
    'MPO with a second image',
    'jpeg',
    async () => Buffer.concat([await blank().jpeg().toBuffer(), await jpegWith(0xfe, '')]),
  ],
  [
    'JPEG with bytes after its end',
    'jpeg',
    async () => Buffer.concat([await blank().jpeg().toBuffer(), secret]),
  ],
  [
    'JPEG with a comment between scans',
    'jpeg',
    async () => {
      const jpeg = await blank().jpeg({ progressive: true }).toBuffer()
      return insert(jpeg, jpeg.lastIndexOf('\xff\xda', undefined, 'latin1'), segment(0xfe, secret))
    },
  ],
  ['PNG with eXIf after IDAT', 'png', () => pngWith('eXIf', exif(1))],
  ['PNG with tEXt after IDAT', 'png', () => pngWith('tEXt')],
  ['PNG with iTXt after IDAT', 'png', () => pngWith('iTXt')],
  ['PNG with a time', 'png', () => pngWith('tIME')],
  ['PNG with caBX (C2PA)', 'png', () => pngWith('caBX')],
  ['PNG with a private chunk', 'png', () => pngWith('prVt')],
  ['PNG with gAMA that is too long', 'png', () => pngWith('gAMA')],
  [
    'PNG with bytes after its end',
    'png',
    async () => Buffer.concat([await blank().png().toBuffer(), secret]),
  ],
  ['PNG with bytes in its end', 'png', () => pngWith('IEND')],
  [
    'animated PNG with text',
    'png',
    async () => {
      const control = pngChunk('acTL', Buffer.from([0, 0, 0, 1, 0, 0, 0, 0]))
      return insert(await pngWith('tEXt'), 33, control)
    },
  ],
  ['WebP with Exif', 'webp', () => blank().withExif(WITH_PLACE).webp().toBuffer()],
  ['WebP with XMP', 'webp', () => webpWith(0x04, part('XMP ', secret))],
  ['WebP with an unknown chunk', 'webp', () => webpWith(0, part('abcd', secret))],
  ['WebP with Exif that its header does not announce', 'webp', () => webpWith(0, part('EXIF', exif(6)))],
  [
    'WebP without extended header, with an unknown chunk',
    'webp',
    async () => {
      const image = (await blank().webp({ lossless: true }).toBuffer()).subarray(12)
      return webp(image, part('abcd', secret))
    },
  ],
  ['WebP with bytes after its end', 'webp', async () => Buffer.concat([await webpWith(0), secret])],
  ['animated WebP with Exif', 'webp', async () => (await animation()).withExif(WITH_PLACE).webp().toBuffer()],
  [
    'animated WebP with an unknown chunk in a frame',
    'webp',
    async () => {
      const file = await (await animation()).webp({ lossless: true }).toBuffer()
      const at = file.indexOf('ANMF')
      const end = at + 8 + file.readUInt32LE(at + 4)
      const longer = insert(file, end, part('abcd', secret))
      longer.writeUInt32LE(longer.length - 8, 4)
      longer.writeUInt32LE(end - at - 8 + longer.length - file.length, at + 4)
      return longer
    },
  ],
  ['GIF with a comment', 'gif', () => gifWith(0xfe, blocks(secret))],
  [
    'GIF with XMP',
    'gif',
    () => gifWith(0xff, blocks(Buffer.from('XMP DataXMP')).subarray(0, -1), blocks(secret)),
  ],
  ['GIF with a text', 'gif', () => gifWith(0x01, blocks(Buffer.alloc(12)).subarray(0, -1), blocks(secret))],
  [
    'GIF with a comment among its loops',
    'gif',
    () =>
      gifWith(
        0xff,
        blocks(Buffer.from('NETSCAPE2.0')).subarray(0, -1),
        blocks(Buffer.from([1, 0, 0])).subarray(0, -1),
        blocks(secret),
      ),
  ],
  [
    'GIF with bytes after its end',
    'gif',
    async () => Buffer.concat([await blank().gif().toBuffer(), secret]),
  ],
  ['AVIF with Exif', 'avif', () => blank().withExif(WITH_PLACE).avif({ effort: 0 }).toBuffer()],
  ['AVIF with XMP', 'avif', () => blank().withXmp(`<x>${SECRET}</x>`).avif({ effort: 0 }).toBuffer()],
  [
    'AVIF with a thumbnail and a box of its own',
    'avif',
    async () => {
      const images = [
        await blank().avif({ effort: 0 }).toBuffer(),
        await blank(8, 4).avif({ effort: 0 }).toBuffer(),
      ]
      const file = heifOf(images.map(imageOf), { primary: 1 })
      return Buffer.concat([file, u32(8 + secret.length), Buffer.from('free'), secret])
    },
  ],
]

/** Every frame of a picture, or every page. */
async function pixels(file: Buffer): Promise<Buffer[]> {
  const { pages = 1 } = await sharp(file).metadata()
  return Promise.all(
    Array.from({ length: pages }, (_, page) => sharp(file, { page }).keepMetadata().raw().toBuffer()),
  )
}

describe('metadata is removed, and the pixels stay as they are:', () => {
  it.each(ROWS)('%s', async (_, format, make) => {
    const file = await make()
    expect(file.includes(SECRET)).toBe(true)
    const clean = strip(file, format, 'a')
    expect(clean.includes(SECRET)).toBe(false)
    const { exif, xmp, iptc, comments, orientation = 1 } = await sharp(clean).metadata()
    expect({ exif, xmp, iptc, comments, orientation }).toEqual({ orientation: 1 })
    const left = await pixels(clean)
    expect(left).toEqual((await pixels(file)).slice(0, left.length))
    expect(strip(clean, format, 'a')).toEqual(clean)
  })
})

describe('a stripped picture is shown as before:', () => {
  const grey = () => sharp(Buffer.from([0, 90, 160, 255]), { raw: { width: 2, height: 2, channels: 1 } })
  const deep = () =>
    sharp(
      new Uint16Array(12).map((_, n) => n * 5001),
      { raw: { width: 2, height: 2, channels: 3 } },
    ).toColourspace('rgb16')

  it.each<[string, Format, () => Promise<Buffer>]>([
    ['a PNG of a palette', 'png', () => blank().png({ palette: true }).toBuffer()],
    ['a PNG of 16 bits', 'png', () => deep().png().toBuffer()],
    ['a grey PNG', 'png', () => grey().toColourspace('b-w').png().toBuffer()],
    ['a grey JPEG', 'jpeg', () => grey().toColourspace('b-w').jpeg().toBuffer()],
    ['a lossless WebP', 'webp', () => blank().webp({ lossless: true }).toBuffer()],
    ['a transparent WebP', 'webp', () => blank().ensureAlpha(0.5).webp().toBuffer()],
    ['a CMYK JPEG', 'jpeg', () => blank().toColourspace('cmyk').jpeg().toBuffer()],
    ['a JPEG with a profile', 'jpeg', () => blank().withIccProfile('p3').jpeg().toBuffer()],
    ['a PNG with a profile', 'png', () => blank().withIccProfile('p3').png().toBuffer()],
    ['a WebP with a profile', 'webp', () => blank().withIccProfile('p3').webp().toBuffer()],
    [
      'a transparent AVIF of 10 bits',
      'avif',
      () => blank().ensureAlpha(0.5).avif({ bitdepth: 10, effort: 0 }).toBuffer(),
    ],
    [
      'an AVIF of two tiles',
      'avif',
      async () => {
        const tile = imageOf(await blank(64, 64).avif({ effort: 0 }).toBuffer())
        return heifOf([tile, gridOf(2, 128, 64), tile], { primary: 2, tiles: [1, 3] })
      },
    ],
  ])('%s', async (_, format, make) => {
    const file = await make()
    const clean = strip(file, format, 'a')
    const shape = async (picture: Buffer) => {
      const { space, depth, channels, isPalette, bitsPerSample, hasAlpha, icc, density } =
        await sharp(picture).metadata()
      return { space, depth, channels, isPalette, bitsPerSample, hasAlpha, icc, density }
    }
    expect(await shape(clean)).toEqual(await shape(file))
    expect(await pixels(clean)).toEqual(await pixels(file))
    expect(clean.length).toBeLessThanOrEqual(file.length + 64)
  })

  it.each<[Format, (orientation: number) => Promise<Buffer>]>([
    [
      'jpeg',
      async n =>
        insert(
          await blank().jpeg().toBuffer(),
          2,
          segment(0xe1, Buffer.concat([Buffer.from('Exif\0\0'), exif(n)])),
        ),
    ],
    ['png', async n => insert(await blank().png().toBuffer(), 33, pngChunk('eXIf', exif(n)))],
    ['webp', n => webpWith(0x08, part('EXIF', exif(n)))],
  ])('a turned %s', async (format, make) => {
    for (const orientation of [2, 6]) {
      const clean = strip(await make(orientation), format, 'a')
      expect(await sharp(clean).metadata()).toMatchObject({ orientation, width: 16, height: 8 })
      expect(clean.includes(SECRET)).toBe(false)
      expect(strip(clean, format, 'a')).toEqual(clean)
    }
  })

  it.each(['gif', 'webp'] as const)('an animated %s', async format => {
    const file = await (await animation()).toFormat(format, { loop: 3, delay: [50, 70] } as object).toBuffer()
    const clean = strip(file, format, 'a')
    expect(await sharp(clean).metadata()).toMatchObject({ pages: 2, loop: 3, delay: [50, 70] })
    expect(await pixels(clean)).toEqual(await pixels(file))
  })

  it('a JPEG with a profile in several segments', async () => {
    const { icc } = await sharp(await blank().withIccProfile('p3').jpeg().toBuffer()).metadata()
    const piece = (n: number, data: Buffer) =>
      segment(0xe2, Buffer.concat([Buffer.from(`ICC_PROFILE\0${String.fromCharCode(n, 2)}`), data]))
    const file = insert(
      await blank().jpeg().toBuffer(),
      2,
      piece(1, icc!.subarray(0, 200)),
      piece(2, icc!.subarray(200)),
    )
    expect((await sharp(strip(file, 'jpeg', 'a')).metadata()).icc).toEqual(icc)
  })
})

describe('attack: a file', () => {
  it.each(ROWS)('that is cut or changed anywhere ends nothing: %s', async (_, format, make) => {
    const file = await make()
    const tryIt = (broken: Buffer) => {
      try {
        return strip(broken, format, 'a')
      } catch (error) {
        expect(error instanceof RangeError || error instanceof UploadError).toBe(true)
        return undefined
      }
    }
    for (let at = 0; at < file.length; at += 5) {
      expect(tryIt(file.subarray(0, at))?.includes(SECRET) ?? false).toBe(false)
      const changed = Buffer.from(file)
      changed[at] = 0xff
      tryIt(changed)
    }
  })

  it.each<[Format, Buffer, number, number]>([
    ['jpeg', segment(0xfe, Buffer.alloc(0)), 2, 0],
    ['jpeg', segment(0xe1, Buffer.from('Exif\0\0')), 2, 0],
    ['png', pngChunk('tEXt', Buffer.alloc(0)), 33, 0],
    ['webp', part('abcd', Buffer.alloc(0)), 30, 4],
    ['gif', Buffer.from([0x21, 0xfe, 0]), -1, 0],
  ])('a %s of a million tiny parts is stripped', async (format, tiny, at, sizeAt) => {
    const whole =
      format === 'webp'
        ? await webpWith(0)
        : await blank()
            .toFormat(format as 'png')
            .toBuffer()
    const place = at < 0 ? whole.length + at : at
    const file = insert(whole, place, Buffer.alloc(tiny.length * 1_000_000, tiny))
    if (sizeAt) file.writeUInt32LE(file.length - 8, sizeAt)
    expect(strip(file, format, 'a')).toEqual(strip(whole, format, 'a'))
  })

  it('a TIFF whose pages are all the same bytes does not grow', () => {
    const same = { ...greyPage(1000, 1000, { 273: 8, 279: 1_000_000 }), data: Buffer.alloc(0) }
    const file = tiffOf(greyPage(1000, 1000), ...Array.from({ length: 50 }, () => same))
    expect(() => assertOnePage(file, 'a.tif')).toThrow(/because it has several pages/)
  })

  it('a TIFF whose pages form a circle is refused by name', () => {
    const file = tiffOf(greyPage(16, 8))
    file.writeUInt32BE(file.readUInt32BE(4), file.length - 4)
    expect(() => assertOnePage(file, 'a.tif')).toThrow(
      /"a\.tif" could not be removed, because it has several/,
    )
  })
})
