import sharp from 'sharp'
import { describe, expect, it } from 'vitest'
import { readDimensions } from '../../src/payload/dimensions.ts'
import { heifOf, imageOf, irot } from '../helpers/heif.ts'
import { makePicture } from '../helpers/picture.ts'

const blank = () => sharp({ create: { width: 300, height: 200, channels: 3, background: '#c0ffee' } })

const BMP = Buffer.alloc(54)
BMP.write('BM')
BMP.writeUInt32LE(40, 14)
BMP.writeInt32LE(300, 18)
BMP.writeInt32LE(-200, 22)

const PICTURES: [string, () => Promise<Buffer>][] = [
  ['PNG', () => blank().png().toBuffer()],
  ['JPEG', () => blank().jpeg().toBuffer()],
  [
    'progressive JPEG with metadata',
    () =>
      blank()
        .withExif({ IFD0: { Copyright: 'x'.repeat(5000) } })
        .jpeg({ progressive: true })
        .toBuffer(),
  ],
  ['GIF', () => blank().gif().toBuffer()],
  ['WebP', () => blank().webp().toBuffer()],
  ['lossless WebP', () => blank().webp({ lossless: true }).toBuffer()],
  [
    'WebP with metadata',
    () =>
      blank()
        .withExif({ IFD0: { Copyright: 'x' } })
        .webp()
        .toBuffer(),
  ],
  ['AVIF', () => blank().avif({ effort: 0 }).toBuffer()],
  ['BMP from top to bottom', async () => BMP],
]

describe('the size of a picture', () => {
  it.each(PICTURES)('is read from a %s', async (_, make) => {
    expect(readDimensions(await make())).toEqual({ width: 300, height: 200 })
  })

  it.each<[string, () => Promise<Buffer>]>([
    ['JPEG', () => blank().withMetadata({ orientation: 6 }).jpeg().toBuffer()],
    ['PNG', () => blank().withMetadata({ orientation: 6 }).png().toBuffer()],
    ['WebP', () => blank().withMetadata({ orientation: 6 }).webp().toBuffer()],
    [
      'AVIF',
      async () => heifOf([imageOf(await blank().avif({ effort: 0 }).toBuffer())], { more: [irot(1)] }),
    ],
    [
      'HEIC',
      async () => {
        const image = imageOf(await blank().avif({ effort: 0 }).toBuffer())
        return heifOf([{ ...image, type: 'hvc1' }], { brands: ['heic', 'mif1'], more: [irot(1)] })
      },
    ],
  ])('is that of a %s as it is shown', async (_, make) => {
    expect(readDimensions(await make())).toEqual({ width: 200, height: 300 })
  })

  it('is that of the primary image of an AVIF, not of the largest', async () => {
    const images = [300, 100].map(async width =>
      imageOf(await blank().resize(width).avif({ effort: 0 }).toBuffer()),
    )
    const file = heifOf(await Promise.all(images), { primary: 2 })
    expect(readDimensions(file)).toEqual({ width: 100, height: 67 })
  })

  it('is not known of a picture without one, of text and of nothing', () => {
    for (const bytes of [
      Buffer.alloc(0),
      Buffer.from('hello'),
      Buffer.alloc(1000),
      makePicture().subarray(0, 20),
    ])
      expect(readDimensions(bytes)).toBeUndefined()
  })

  it.each(PICTURES)(
    'attack: a %s that ends anywhere, or has any byte changed, ends nothing',
    async (_, make) => {
      const picture = (await make()).subarray(0, 2000)
      for (let at = 0; at < picture.length; at += 7) {
        readDimensions(picture.subarray(0, at))
        const broken = Buffer.from(picture)
        broken[at] = 0xff
        readDimensions(broken)
      }
      expect(
        readDimensions(Buffer.concat([Buffer.from([0xff, 0xd8]), Buffer.alloc(262_144, 0xff)])),
      ).toBeUndefined()
    },
  )
})
