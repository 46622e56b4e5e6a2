import type { OverlayOptions } from 'sharp'
import { messageOf, UploadError } from '../errors.ts'
import { readFontName } from './font.ts'
import { allowLoaders, type SharpModule, TRUSTED_LOADERS } from './load.ts'
import type { Watermark } from './options.ts'

/** Resolution of rendered text, high enough for the widest images. */
const TEXT_DPI = 300

interface Size {
  readonly width: number
  readonly height: number
}

/**
 * Returns the watermark as layers for `composite`.
 *
 * @param frame size of the image, or of one frame if it is animated
 * @param frames number of frames. Each gets the watermark
 */
export async function layOver(
  sharp: SharpModule,
  watermark: Watermark,
  frame: Size,
  frames: number,
): Promise<OverlayOptions[]> {
  const placed = { input: await draw(sharp, watermark, frame), gravity: watermark.position }
  if (frames === 1) return [placed]
  // libvips treats the frames as one tall image, so each frame gets its own layer.
  const input = await sharp({
    create: { ...frame, channels: 4, background: '#00000000' },
  })
    .composite([placed])
    .png()
    .toBuffer()
  return Array.from({ length: frames }, (_, index) => ({ input, left: 0, top: index * frame.height }))
}

async function draw(sharp: SharpModule, watermark: Watermark, frame: Size): Promise<Buffer> {
  const { scale } = watermark
  const mark = await read(sharp, watermark)
  const width = Math.max(1, Math.round(frame.width * scale))
  return sharp(mark).resize({ width, height: frame.height, fit: 'inside' }).png().toBuffer()
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
      'destination_failed',
      `The watermark can't be drawn (images.watermark): ${reason}.`,
      {
        cause: error,
      },
    )
  }
}

/** Whether text can be drawn. Without fonts, every letter is drawn as the same box. */
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
