import { UploadError } from '../errors.ts'
import { FORMATS, type Format, type PictureOptions, pictureSchema, type WISHES } from './options.ts'

/** What one request wants of its pictures. */
export interface PictureWish {
  readonly format?: Format
  readonly quality?: number
  readonly width?: number
  readonly height?: number
  readonly strip?: true
}

/**
 * Reads what a query asks for; undefined: nothing.
 *
 * @throws UploadError `invalid_request` for what is no such value
 */
export function readWish(query: URLSearchParams): PictureWish | undefined {
  if (query.size === 0) return undefined
  const wish = {
    format: read(
      query,
      'format',
      text => FORMATS.find(format => format === text.toLowerCase()),
      FORMATS.join(', '),
    ),
    quality: read(query, 'quality', readNumber(100), 'a whole number from 1 to 100'),
    width: read(query, 'width', readNumber(65_535), 'a number of pixels'),
    height: read(query, 'height', readNumber(65_535), 'a number of pixels'),
    strip: read(query, 'strip', text => (['1', 'true'].includes(text) ? true : undefined), '1 or true'),
  }
  return Object.values(wish).some(value => value !== undefined) ? (wish as PictureWish) : undefined
}

function read<T>(
  query: URLSearchParams,
  name: string,
  parse: (text: string) => T | undefined,
  expected: string,
): T | undefined {
  const text = query.get(name)
  if (!text) return undefined
  const value = parse(text)
  if (value !== undefined) return value
  throw new UploadError('invalid_request', `"${name}" must be ${expected}.`)
}

function readNumber(most: number): (text: string) => number | undefined {
  return text => (/^[1-9]\d{0,4}$/.test(text) && Number(text) <= most ? Number(text) : undefined)
}

/**
 * What is done to the pictures of one request: what the destination says, and what the request wants as far as it may. A
 * size of the destination stays the largest.
 *
 * @throws UploadError `invalid_request` for what it may not
 */
export function withWish(
  options: PictureOptions | undefined,
  wish: PictureWish | undefined,
): PictureOptions | undefined {
  if (!wish) return options
  const { requests } = options ?? { requests: [] }
  const { format, quality, width, height, strip } = wish
  const asked: Partial<Record<(typeof WISHES)[number], unknown>> = {
    format,
    quality,
    size: width ?? height,
    strip,
  }
  for (const [name, value] of Object.entries(asked)) {
    if (value === undefined || requests.some(allowed => allowed === name)) continue
    throw new UploadError(
      'invalid_request',
      `Requests may not ask for the ${name} of pictures here (pictures.requests).`,
    )
  }
  const base = options ?? pictureSchema.parse({})
  const { resize } = base
  return {
    ...base,
    ...(format && { format, larger: true }),
    ...(quality && { quality }),
    ...(strip && { strip }),
    ...((width ?? height) && {
      resize: { width: least(width, resize?.width), height: least(height, resize?.height), enlarge: false },
    }),
  }
}

function least(wanted: number | undefined, most: number | undefined): number | undefined {
  return wanted === undefined || most === undefined ? (wanted ?? most) : Math.min(wanted, most)
}
