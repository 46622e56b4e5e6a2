import { UploadError } from '../errors.ts'
import type { Area } from '../payload/dimensions.ts'
import { readBoxes } from '../payload/heif.ts'
import { bytesOf, type CompareJob, type PictureJob, type PictureResult } from './job.ts'
import { allowLoaders, type SharpModule } from './load.ts'
import { type Looked, look } from './look.ts'
import { allowPixels } from './memory.ts'

/** Pixels on white with 4 bytes each: red, green, blue, 255. */
interface Pixels {
  readonly width: number
  readonly height: number
  readonly bytes: Uint8Array
  /** The same memory, one number per pixel. */
  readonly words: Uint32Array
}

/** Where YIQ colors begin to look different: 0.1 of the distance of black and white, squared. */
const LEAST_DISTANCE = 0.1 ** 2 * 35_215

/** How much of the image is visible behind the changed pixels, 0 to 1. */
const BACKGROUND = 0.15

/** More neighbors of the same brightness belong to an area instead of an edge. */
const MOST_EQUAL = 2

/**
 * Compares two images by their decoded pixels, all frames included.
 *
 * @returns with a PNG, the later image in pale grey with the changed pixels in red, unless no pixel has changed, or too few
 * @throws UploadError `too_large` if one of them, or the area of both, has too many pixels
 */
export async function findDifference(
  sharp: SharpModule,
  { before, after, drawnFrom, masks }: CompareJob,
): Promise<PictureResult> {
  const a = await decode(sharp, before, masks)
  const b = await decode(sharp, after, masks)
  const width = Math.max(a.width, b.width)
  const height = Math.max(a.height, b.height)
  if (width * height > after.options.maxPixels)
    throw new UploadError('too_large', 'The sizes of the images are too different to compare their pixels.')
  allowPixels(width * height)
  const isChanged = new Uint8Array(width * height)
  const count = markChanged(a, b, isChanged, width)
  const sizeOf = (one: Pixels) => ({ width: one.width, height: one.height })
  const difference = { share: count / isChanged.length, before: sizeOf(a), after: sizeOf(b) }
  if (count === 0 || difference.share < drawnFrom) return { is: 'compared', difference }
  allowLoaders(sharp, [])
  const image = await sharp(draw(b, isChanged, width), { raw: { width, height, channels: 3 } })
    .png({ compressionLevel: 3 })
    .toBuffer()
  return { is: 'compared', difference: { ...difference, image } }
}

/** @param masks parts that become white */
async function decode(sharp: SharpModule, job: PictureJob, masks: readonly Area[]): Promise<Pixels> {
  const picture = await look(sharp, job)
  if (await hasMore(job, picture)) throw new Error('only one of its images could be compared')
  const { data: bytes, info } = await picture
    .open()
    .autoOrient()
    .toColourspace('srgb')
    .flatten({ background: '#fff' })
    .ensureAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true })
  const { width, height } = info
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, width * height)
  for (const mask of masks) {
    const [left, right] = [Math.min(mask.x, width), Math.min(mask.x + mask.width, width)]
    for (let y = mask.y; y < Math.min(mask.y + mask.height, height); y++)
      words.fill(0xffffffff, y * width + left, y * width + right)
  }
  return { width, height, bytes, words }
}

/** Whether the file has images that are not decoded: pages, or frames of a format whose frames are not read. */
async function hasMore(job: PictureJob, { loader, meta, isAnimated }: Looked): Promise<boolean> {
  if (!isAnimated && (meta.pages ?? 1) > 1) return true
  if (loader !== 'VipsForeignLoadHeif') return false
  const file = await bytesOf(job)
  return readBoxes(file, 0, file.length).some(({ type }) => type === 'moov')
}

/** Sets 1 for each changed pixel in the area of both images, row by row. @returns their number */
function markChanged(a: Pixels, b: Pixels, isChanged: Uint8Array, width: number): number {
  const [bothWide, bothHigh] = [Math.min(a.width, b.width), Math.min(a.height, b.height)]
  // Pixels that only one of them has.
  let count = a.width * a.height + b.width * b.height - 2 * bothWide * bothHigh
  for (const one of [a, b])
    for (let y = 0; y < one.height; y++)
      isChanged.fill(1, y * width + (y < bothHigh ? bothWide : 0), y * width + one.width)
  const [wordsOfA, wordsOfB] = [a.words, b.words]
  for (let y = 0; y < bothHigh; y++)
    for (let x = 0; x < bothWide; x++)
      if (wordsOfA[y * a.width + x] !== wordsOfB[y * b.width + x] && !looksEqual(a, b, x, y)) {
        isChanged[y * width + x] = 1
        count++
      }
  return count
}

/** The later image in pale grey, with the changed pixels in red. */
function draw(image: Pixels, isChanged: Uint8Array, width: number): Uint8Array {
  const drawn = new Uint8Array(isChanged.length * 3).fill(255)
  for (let y = 0; y < image.height; y++)
    for (let x = 0; x < image.width; x++) {
      const at = (y * width + x) * 3
      const grey = 255 + (brightnessOf(image, y * image.width + x) - 255) * BACKGROUND
      drawn[at] = grey
      drawn[at + 1] = grey
      drawn[at + 2] = grey
    }
  const red = new Uint8Array([255, 0, 0])
  for (let at = 0; at < isChanged.length; at++) if (isChanged[at] === 1) drawn.set(red, at * 3)
  return drawn
}

/** Whether a pixel looks the same, or only an edge was smoothed in another way. */
function looksEqual(a: Pixels, b: Pixels, x: number, y: number): boolean {
  const isNear = distance(a, y * a.width + x, b, y * b.width + x) <= LEAST_DISTANCE
  return isNear || isSmoothed(a, b, x, y) || isSmoothed(b, a, x, y)
}

/** The Y of YIQ, 0 to 255. */
function brightnessOf({ bytes }: Pixels, pixel: number): number {
  const at = pixel * 4
  return (bytes[at] ?? 0) * 0.299 + (bytes[at + 1] ?? 0) * 0.587 + (bytes[at + 2] ?? 0) * 0.114
}

/**
 * The square of the distance of two colors as people see it.
 *
 * @see "Measuring perceived color difference using YIQ NTSC transmission color space in mobile applications", Kotsarenko and
 *   Ramos, 2010
 */
function distance(a: Pixels, pixelOfA: number, b: Pixels, pixelOfB: number): number {
  const red = (a.bytes[pixelOfA * 4] ?? 0) - (b.bytes[pixelOfB * 4] ?? 0)
  const green = (a.bytes[pixelOfA * 4 + 1] ?? 0) - (b.bytes[pixelOfB * 4 + 1] ?? 0)
  const blue = (a.bytes[pixelOfA * 4 + 2] ?? 0) - (b.bytes[pixelOfB * 4 + 2] ?? 0)
  const luma = red * 0.299 + green * 0.587 + blue * 0.114
  const inPhase = red * 0.596 - green * 0.274 - blue * 0.322
  const quadrature = red * 0.211 - green * 0.523 + blue * 0.312
  return 0.5053 * luma ** 2 + 0.299 * inPhase ** 2 + 0.1957 * quadrature ** 2
}

/**
 * Whether a pixel of `one` is a smoothed edge: it has a darker and a brighter neighbor, and one of these is part of an area
 * of one color in both images.
 *
 * @see "Anti-aliased pixel and intensity slope detector", Vyšniauskas, 2009
 */
function isSmoothed(one: Pixels, other: Pixels, x: number, y: number): boolean {
  const { width, height } = one
  const pixel = y * width + x
  const brightness = brightnessOf(one, pixel)
  let equal = 0
  let darkest = brightness
  let brightest = brightness
  let dark = pixel
  let bright = pixel
  for (let nextY = Math.max(y - 1, 0); nextY <= Math.min(y + 1, height - 1); nextY++)
    for (let nextX = Math.max(x - 1, 0); nextX <= Math.min(x + 1, width - 1); nextX++) {
      const neighbor = nextY * width + nextX
      if (neighbor === pixel) continue
      const next = brightnessOf(one, neighbor)
      if (next === brightness && ++equal > MOST_EQUAL) return false
      if (next < darkest) {
        darkest = next
        dark = neighbor
      }
      if (next > brightest) {
        brightest = next
        bright = neighbor
      }
    }
  if (dark === pixel || bright === pixel) return false
  return isInAreas(one, other, dark) || isInAreas(one, other, bright)
}

/** Whether a pixel of `one` is part of an area of one color in both images. */
function isInAreas(one: Pixels, other: Pixels, pixel: number): boolean {
  const x = pixel % one.width
  const y = Math.floor(pixel / one.width)
  return isInArea(one, x, y) && isInArea(other, x, y)
}

/** Whether more than two neighbors have the same color. At the edge of an image, one of those that are missing counts, too. */
function isInArea({ words, width, height }: Pixels, x: number, y: number): boolean {
  if (x >= width || y >= height) return false
  const word = words[y * width + x]
  const isAtEdge = x === 0 || y === 0 || x === width - 1 || y === height - 1
  // The pixel itself is counted, too.
  let same = isAtEdge ? 0 : -1
  for (let nextY = Math.max(y - 1, 0); nextY <= Math.min(y + 1, height - 1); nextY++)
    for (let nextX = Math.max(x - 1, 0); nextX <= Math.min(x + 1, width - 1); nextX++)
      if (words[nextY * width + nextX] === word && ++same > MOST_EQUAL) return true
  return false
}
