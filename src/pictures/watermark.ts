import type { OverlayOptions } from 'sharp'
import { messageOf, UploadError } from '../errors.ts'
import { readFontName } from './font.ts'
import { allowLoaders, type SharpModule, TRUSTED_LOADERS } from './load.ts'
import type { Watermark } from './options.ts'

/** Sharp enough for the widest pictures. */
const TEXT_DPI = 300

interface Size {
  readonly width: number
  readonly height: number
}

/**
 * The watermark of a picture, ready to be laid over it.
 *
 * @param frame size of the picture, of one frame when it is animated
 * @param frames how many there are; each gets it
 */
export async function layOver(
  sharp: SharpModule,
  watermark: Watermark,
  frame: Size,
  frames: number,
): Promise<OverlayOptions[]> {
  const { position, tile } = watermark
  const placed = { input: await draw(sharp, watermark, frame), gravity: position, tile }
  if (frames === 1) return [placed]
  // libvips takes the frames for one tall picture: the watermark of each is placed by itself.
  const input = await sharp({
    create: { ...frame, channels: 4, background: '#00000000' },
  })
    .composite([placed])
    .png()
    .toBuffer()
  return Array.from({ length: frames }, (_, index) => ({ input, left: 0, top: index * frame.height }))
}

async function draw(sharp: SharpModule, watermark: Watermark, frame: Size): Promise<Buffer> {
  const { scale, rotate, tile } = watermark
  const mark = await read(sharp, watermark)
  const width = Math.max(1, Math.round(frame.width * scale))
  const sized = await sharp(mark).resize({ width, height: frame.height, fit: 'inside' }).png().toBuffer()
  const turned = await sharp(sized).rotate(rotate, { background: '#00000000' }).png().toBuffer()
  // Half its width lies between two of them.
  const gap = tile ? Math.round(width / 4) : 0
  const spaced = gap
    ? await sharp(turned)
        .extend({ top: gap, bottom: gap, left: gap, right: gap, background: '#00000000' })
        .png()
        .toBuffer()
    : turned
  // What is laid over must not be larger than the picture.
  return sharp(spaced)
    .resize({ ...frame, fit: 'inside', withoutEnlargement: true })
    .png()
    .toBuffer()
}

async function read(sharp: SharpModule, watermark: Watermark): Promise<Buffer> {
  const { text, image, font, color, opacity } = watermark
  try {
    if (text !== undefined) {
      const alpha = Math.max(1, Math.round((Number.parseInt(color.slice(7) || 'ff', 16) / 255) * 65_535))
      const markup = `<span foreground="${color.slice(0, 7)}" alpha="${alpha}">${escapeMarkup(text)}</span>`
      const named = font ? { fontfile: font, font: await readFontName(font) } : {}
      if (!font && !(await hasFonts(sharp)))
        throw new Error(
          'this machine has no font. Install one, such as the Debian package "fonts-wqy-microhei", or name a file as "font"',
        )
      return await sharp({ text: { text: markup, rgba: true, dpi: TEXT_DPI, ...named } })
        .png()
        .toBuffer()
    }
    allowLoaders(sharp, TRUSTED_LOADERS)
    const clear = await sharp(image).toColourspace('srgb').ensureAlpha().png().toBuffer()
    return await sharp(clear).linear([1, 1, 1, opacity], [0, 0, 0, 0]).png().toBuffer()
  } catch (error) {
    const reason = messageOf(error)
    throw new UploadError(
      'delivery_failed',
      `The watermark can't be drawn (pictures.watermark): ${reason}.`,
      {
        cause: error,
      },
    )
  }
}

/** Without a font every letter becomes the same box. */
async function hasFonts(sharp: SharpModule): Promise<boolean> {
  const draw = (text: string) =>
    sharp({ text: { text, rgba: true } })
      .png()
      .toBuffer()
  return !(await draw('i')).equals(await draw('W'))
}

function escapeMarkup(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;')
}
