import { UploadError } from '../errors.ts'
import { type Format, type PictureOptions, pictureSchema, type WISHES } from './options.ts'

/** What one request wants of its pictures. */
export interface PictureWish {
  readonly format?: Format
  readonly quality?: number
  readonly width?: number
  readonly height?: number
  readonly strip?: true
}

/** @throws UploadError `invalid_request` when requests may not ask for this here */
export function assertMayAsk(what: (typeof WISHES)[number], options: PictureOptions | undefined): void {
  if (options?.requests.includes(what)) return
  throw new UploadError(
    'invalid_request',
    `Requests may not set the ${what} of images at this destination (pictures.requests).`,
  )
}

/**
 * What is done to the pictures of one request: what the destination says, and what the request wants, which has been
 * checked. A size of the destination stays the largest.
 */
export function withWish(
  options: PictureOptions | undefined,
  { format, quality, width, height, strip }: PictureWish,
): PictureOptions | undefined {
  if (!(format ?? quality ?? width ?? height ?? strip)) return options
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
