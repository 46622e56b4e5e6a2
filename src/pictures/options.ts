import { localPath, time } from '../options.ts'
import * as z from '../packages/zod.ts'

/** Formats that images can be converted to. */
export const FORMATS = ['webp', 'avif', 'jpeg', 'png'] as const
export type Format = (typeof FORMATS)[number]

/** Formats that images can be read from. */
export const SOURCE_FORMATS = ['jpeg', 'png', 'webp', 'avif', 'gif', 'tiff', 'heic'] as const
export type SourceFormat = (typeof SOURCE_FORMATS)[number]

/** Image options that a request may set, if `images.allowFromRequest` allows them. */
export const REQUESTABLE_OPTIONS = ['format', 'quality', 'size', 'stripMetadata'] as const

const format = z.enum(FORMATS)
const pixels = z.number().int().min(1).max(65_535)

/** Positions of a watermark. */
export const POSITIONS = [
  ...(['northwest', 'north', 'northeast', 'west', 'centre'] as const),
  ...(['east', 'southwest', 'south', 'southeast'] as const),
] as const

const watermark = z
  .strictObject({
    text: z.string().min(1).optional().describe('Text of the watermark.'),
    image: localPath().optional().describe('Image file of the watermark.'),
    font: localPath().optional().describe('Font file for the text. Default: a system font.'),
    color: z
      .string()
      .regex(/^#[0-9a-f]{6}(?:[0-9a-f]{2})?$/i, 'must be written "#RRGGBB" or "#RRGGBBAA"')
      .default('#CCCCCC73')
      .describe('Color of the text: "#RRGGBB", or "#RRGGBBAA" with transparency.'),
    opacity: z.number().gt(0).max(1).default(1).describe('Opacity of the image file, from more than 0 to 1.'),
    scale: z
      .number()
      .gt(0)
      .max(1)
      .default(0.15)
      .describe('Width of the watermark as a fraction of the image width, from more than 0 to 1.'),
    position: z.enum(POSITIONS).default('southeast').describe('Position of the watermark in the image.'),
  })
  .refine(
    value => (value.text === undefined) !== (value.image === undefined),
    'needs either "text" or "image"',
  )
  .describe('Watermark on every image: either a text or an image file.')

/** Changes to images. Without an option, an image is stored unchanged. */
export const pictureSchema = z.strictObject({
  format: z
    .union([format, z.partialRecord(z.enum(SOURCE_FORMATS), format)])
    .optional()
    .describe(
      'Format to convert images to: one format, or an object with one format for each source format, such as { "png": "webp" }.',
    ),
  quality: z
    .number()
    .int()
    .min(1)
    .max(100)
    .optional()
    .describe(
      'Quality of lossy formats, 1 to 100. For PNG, a value below 100 reduces the number of colors (palette).',
    ),
  resize: z
    .strictObject({
      width: pixels.optional().describe('Maximum width, in pixels.'),
      height: pixels.optional().describe('Maximum height, in pixels.'),
      percent: z
        .number()
        .gt(0)
        .max(500)
        .optional()
        .describe(
          'Scale in percent, up to 500, instead of width and height. More than 100 also needs `enlarge`.',
        ),
      enlarge: z.boolean().default(false).describe('Upscale images that are smaller.'),
    })
    .refine(
      value => (value.percent === undefined) !== (value.width === undefined && value.height === undefined),
      'needs either "percent", or "width", "height" or both',
    )
    .optional()
    .describe('Resize images to fit into this size. The aspect ratio is kept.'),
  orient: z
    .boolean()
    .default(false)
    .describe('Rotate images upright as their EXIF orientation says, even if nothing else is changed.'),
  stripMetadata: z
    .boolean()
    .default(false)
    .describe('Remove metadata, including the GPS location. The color profile and the orientation are kept.'),
  watermark: watermark.optional(),
  larger: z
    .boolean()
    .default(false)
    .describe(
      'Store a converted image even if it has more bytes than the original. If false, the original is then stored, unless another option changes it.',
    ),
  unreadable: z
    .enum(['fail', 'keep'])
    .default('fail')
    .describe(
      'What to do with images that cannot be decoded: fail their upload, or keep (store) them unchanged.',
    ),
  maxPixels: z
    .number()
    .int()
    .min(1)
    .default(50_000_000)
    .describe('Maximum number of pixels of one image, all frames included. An upload with more fails.'),
  timeout: time(1, 600_000).prefault('30s').describe('Timeout for one image, including time in the queue.'),
  allowFromRequest: z
    .array(z.enum(REQUESTABLE_OPTIONS))
    .default([])
    .describe(
      'Image options that a request may set with its query parameters: "format", "quality", "size" (width and height), "stripMetadata". Default: none.',
    ),
})

export type PictureOptions = z.output<typeof pictureSchema>
export type Watermark = z.output<typeof watermark>
