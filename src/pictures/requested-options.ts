import { UploadError } from '../errors.ts'
import { type Format, type PictureOptions, pictureSchema, type REQUESTABLE_OPTIONS } from './options.ts'

/** The image options that a request sets with its query parameters. */
export interface RequestedImageOptions {
  readonly format?: Format
  readonly quality?: number
  readonly width?: number
  readonly height?: number
  readonly stripMetadata?: true
}

/** @throws UploadError `invalid_request` if the destination does not allow requests to set this option */
export function assertRequestable(
  what: (typeof REQUESTABLE_OPTIONS)[number],
  options: PictureOptions | undefined,
): void {
  if (options?.allowFromRequest.includes(what)) return
  throw new UploadError(
    'invalid_request',
    `Requests may not set the ${what} of images at this destination (images.allowFromRequest).`,
  )
}

/**
 * Merges the image options of a destination with those of a request, which must have been checked. The size of the
 * destination stays the maximum.
 */
export function withRequestedOptions(
  options: PictureOptions | undefined,
  { format, quality, width, height, stripMetadata }: RequestedImageOptions,
): PictureOptions | undefined {
  if (!(format ?? quality ?? width ?? height ?? stripMetadata)) return options
  const base = options ?? pictureSchema.parse({})
  const { resize } = base
  return {
    ...base,
    ...(format && { format, larger: true }),
    ...(quality && { quality }),
    ...(stripMetadata && { stripMetadata }),
    ...((width ?? height) && {
      resize: { width: least(width, resize?.width), height: least(height, resize?.height), enlarge: false },
    }),
  }
}

function least(wanted: number | undefined, most: number | undefined): number | undefined {
  return wanted === undefined || most === undefined ? (wanted ?? most) : Math.min(wanted, most)
}
