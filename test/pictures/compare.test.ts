import sharp from 'sharp'
import { describe, expect, it } from 'vitest'
import { comparePictures } from '../../src/pictures/compare.ts'
import { heifOf, imageOf } from '../helpers/heif.ts'

const never = new AbortController().signal
const SIZE = { width: 100, height: 50 }

const plain = (color: string, size = SIZE) => sharp({ create: { ...size, channels: 3, background: color } })
const png = (color: string, size?: typeof SIZE) => plain(color, size).png().toBuffer()

/** Two pages or frames, of which the second one has this color. */
const pages = async (last: string, format: 'tiff' | 'gif' | 'webp') =>
  sharp([await png('#248'), await png(last)], { join: { animated: true } })
    .toFormat(format)
    .toBuffer()

const avif = async (color: string) => imageOf(await plain(color).avif({ effort: 0 }).toBuffer())

/** The box that an animation has beside its first image, here with a text of 4 letters instead of frames. */
const movieOf = (text: string) => Buffer.from(`\0\0\0\x14moov\0\0\0\x0cfree${text}`)

/** A white picture with a black drawing. */
const draw = (svg: string) =>
  plain('#fff')
    .composite([{ input: Buffer.from(`<svg width="100" height="50">${svg}</svg>`) }])
    .png()
    .toBuffer()

describe('comparePictures', () => {
  it.each<[string, () => Promise<Buffer>]>([
    ['other settings of PNG', () => plain('#248').png({ compressionLevel: 0, palette: true }).toBuffer()],
    [
      'metadata',
      () =>
        plain('#248')
          .withExif({ IFD0: { Artist: 'a' } })
          .png()
          .toBuffer(),
    ],
    ['another format', () => plain('#248').webp({ lossless: true }).toBuffer()],
    ['an opaque alpha channel', () => plain('#248').ensureAlpha().png().toBuffer()],
    ['a color that looks the same', () => png('#258')],
  ])('finds no difference by %s', async (_, make) => {
    const found = await comparePictures(await png('#248'), await make(), never)
    expect(found).toEqual({ share: 0, before: SIZE, after: SIZE })
  })

  it('counts changed pixels, and shows them', async () => {
    const [before, after] = [await draw(''), await draw('<rect x="10" y="10" width="20" height="10"/>')]
    const { share, image } = (await comparePictures(before, after, never)) ?? {}
    expect(share).toBe(200 / 5000)
    const { data, info } = await sharp(image).raw().toBuffer({ resolveWithObject: true })
    const at = (x: number, y: number) => [...data.subarray((y * 100 + x) * info.channels).subarray(0, 3)]
    expect(info).toMatchObject(SIZE)
    expect([at(9, 10), at(10, 10), at(29, 19), at(30, 19)]).toEqual([
      ...[
        [255, 255, 255],
        [255, 0, 0],
      ],
      ...[
        [255, 0, 0],
        [255, 255, 255],
      ],
    ])
  })

  it('ignores how an edge is smoothed, but not that it has moved', async () => {
    const circle = (x: number) => draw(`<circle cx="${x}" cy="25" r="15"/>`)
    const moved = await comparePictures(await circle(50), await circle(52), never)
    expect(moved?.share).toBeGreaterThan(0.005)
    expect(await comparePictures(await circle(50), await circle(50.3), never)).toMatchObject({ share: 0 })
  })

  it('shows sizes that differ, and counts what only one image has', async () => {
    const after = { width: 50, height: 100 }
    const found = await comparePictures(await png('#248'), await png('#248', after), never)
    expect(found).toMatchObject({ share: 0.5, before: SIZE, after })
    expect(await sharp(found?.image).metadata()).toMatchObject({ width: 100, height: 100 })
  })

  it.each([
    ['the part that changed', { x: 10, y: 10, width: 20, height: 10 }, 0],
    ['half of it', { x: 10, y: 10, width: 10, height: 10 }, 100 / 5000],
    ['attack: an area of a million pixels', { x: 15, y: 0, width: 1_000_000, height: 1_000_000 }, 50 / 5000],
    ['attack: an area beyond the image', { x: 1_000_000, y: 1_000_000, width: 9, height: 9 }, 200 / 5000],
  ])('does not compare %s, which is masked', async (_, mask, share) => {
    const [before, after] = [await draw(''), await draw('<rect x="10" y="10" width="20" height="10"/>')]
    expect(await comparePictures(before, after, never, { masks: [mask] })).toMatchObject({ share })
  })

  it.each<[string, (last: string) => Promise<Buffer>]>([
    ['second page of a TIFF', last => pages(last, 'tiff')],
    ['second image of an AVIF', async last => heifOf([await avif('#248'), await avif(last)])],
    [
      'frames of an animated AVIF',
      async last => Buffer.concat([heifOf([await avif('#248')]), movieOf(last)]),
    ],
  ])('attack: a change of the %s, which is not decoded, counts as none', async (_, make) => {
    expect(await comparePictures(await make('#fff'), await make('#f00'), never)).toBeUndefined()
  })

  it('counts changes of every frame of an animation', async () => {
    for (const format of ['gif', 'webp'] as const)
      expect(
        await comparePictures(await pages('#fff', format), await pages('#f00', format), never),
      ).toMatchObject({ share: 0.5 })
  })

  it.each<[string, () => Promise<Buffer>]>([
    ['a text', async () => Buffer.from('text')],
    ['a damaged image', async () => (await draw('<circle r="9"/>')).subarray(0, 150)],
    ['attack: a drawing that refers to files', async () => Buffer.from('<svg width="9" height="9"/>')],
    [
      'attack: sizes that only together have too many pixels',
      () => png('#248', { width: 1, height: 60_000 }),
    ],
  ])('does not compare the pixels of %s', async (_, make) => {
    const before = await png('#248', { width: 60_000, height: 1 })
    expect(await comparePictures(before, await make(), never)).toBeUndefined()
  })
})
