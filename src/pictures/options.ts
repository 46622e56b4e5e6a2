import { localPath } from '../options.ts'
import * as z from '../packages/zod.ts'

/** What pictures can be made into. */
export const FORMATS = ['webp', 'avif', 'jpeg', 'png'] as const
export type Format = (typeof FORMATS)[number]

/** What pictures are read from. */
export const SOURCE_FORMATS = ['jpeg', 'png', 'webp', 'avif', 'gif', 'tiff', 'heic'] as const
export type SourceFormat = (typeof SOURCE_FORMATS)[number]

/** What a request may ask for. */
export const WISHES = ['format', 'quality', 'size', 'strip'] as const

const format = z.enum(FORMATS)
const degrees = z.number().min(-360).max(360)
const pixels = z.number().int().min(1).max(65_535)

/** Where a watermark can lie. */
export const POSITIONS = [
  ...(['northwest', 'north', 'northeast', 'west', 'centre'] as const),
  ...(['east', 'southwest', 'south', 'southeast'] as const),
] as const

const watermark = z
  .strictObject({
    text: z.string().min(1).optional().describe('What is written.'),
    image: localPath().optional().describe('File of the picture that is laid over.'),
    font: localPath().optional().describe('Font file of the text. Default: a font of the system.'),
    color: z
      .string()
      .regex(/^#[0-9a-f]{6}(?:[0-9a-f]{2})?$/i, 'is written "#RRGGBB" or "#RRGGBBAA"')
      .default('#CCCCCC73')
      .describe('Colour of the text.'),
    opacity: z.number().gt(0).max(1).default(1).describe('Of the picture that is laid over.'),
    scale: z
      .number()
      .gt(0)
      .max(1)
      .default(0.15)
      .describe('Width of the watermark as a part of that of the picture.'),
    position: z.enum(POSITIONS).default('southeast').describe('Where it lies.'),
    rotate: degrees.default(0).describe('Degrees, clockwise.'),
    tile: z.boolean().default(false).describe('All over the picture.'),
  })
  .refine(
    value => (value.text === undefined) !== (value.image === undefined),
    'needs either "text" or "image"',
  )
  .describe('Laid over every picture.')

/** What is done to pictures. Nothing of it is done unless it is asked for. */
export const pictureSchema = z.strictObject({
  format: z
    .union([format, z.partialRecord(z.enum(SOURCE_FORMATS), format)])
    .optional()
    .describe('What pictures are converted to: one format, or one for each that they come in.'),
  quality: z.number().int().min(1).max(100).optional().describe('Of lossy formats; of PNG the colours.'),
  resize: z
    .strictObject({
      width: pixels.optional().describe('Pixels.'),
      height: pixels.optional().describe('Pixels.'),
      percent: z.number().gt(0).max(500).optional().describe('In the place of width and height.'),
      enlarge: z.boolean().default(false).describe('Whether small pictures grow.'),
    })
    .refine(
      value => (value.percent === undefined) !== (value.width === undefined && value.height === undefined),
      'needs either "percent", or "width", "height" or both',
    )
    .optional()
    .describe('The picture fits into it and keeps its proportions.'),
  rotate: degrees.optional().describe('Degrees, clockwise. Animated pictures are not turned.'),
  flip: z.boolean().default(false).describe('Upside down.'),
  flop: z.boolean().default(false).describe('Left to right.'),
  orient: z
    .boolean()
    .default(false)
    .describe('Turn pictures as their metadata says, also when nothing else is done.'),
  strip: z
    .boolean()
    .default(false)
    .describe('Remove metadata, the place where it was taken included; the colour profile stays.'),
  watermark: watermark.optional(),
  larger: z.boolean().default(false).describe('Keep a conversion that has more bytes than the original.'),
  unreadable: z
    .enum(['fail', 'keep'])
    .default('fail')
    .describe(
      'What happens to pictures that cannot be read: their upload fails, or they are stored as they are.',
    ),
  maxPixels: z.number().int().min(1).default(50_000_000).describe('Most pixels, all frames together.'),
  timeoutMs: z
    .number()
    .int()
    .min(1)
    .max(600_000)
    .default(30_000)
    .describe('For one picture, waiting for its turn included. Milliseconds.'),
  requests: z
    .array(z.enum(WISHES))
    .default([])
    .describe('What a request may ask for by format, quality, width and height, and strip.'),
})

export type PictureOptions = z.output<typeof pictureSchema>
export type Watermark = z.output<typeof watermark>
