import { size, time } from '../options.ts'
import * as z from '../packages/zod.ts'
import { SOURCES } from '../uploader/input.ts'
import { destinationName, optional } from './values.ts'

const MINUTE_MS = 60_000
const MOST_MS = 31 * 24 * 60 * MINUTE_MS

const quota = z
  .strictObject({
    bytes: optional(size(), 'Maximum total size of the files.'),
    files: optional(z.number().int().min(1), 'Maximum number of files.'),
    per: time(MINUTE_MS, MOST_MS).describe(
      'Length of the fixed window after which both are available again, such as "1h" or "1d".',
    ),
  })
  .refine(({ bytes, files }) => bytes !== undefined || files !== undefined, 'needs bytes or files')

/** What identified clients may do: the same options for upload keys, and for the people behind a reverse proxy. */
export const permissions = {
  destinations: optional(
    z.array(destinationName),
    'Destinations that these clients may use: "provider" or "provider/configName". Default: all.',
  ),
  sources: optional(
    z.array(z.enum(SOURCES)),
    'Sources that their requests may use. Default: "form", "url", and "path" if sources.path.roots is set.',
  ),
  quota: optional(
    quota,
    'Quota of each client: of the upload key, or of each person. It is kept in the database, so several servers with one database share it. Default: none.',
  ),
  fileSize: optional(size(), 'Maximum size of a file, if it is less than limits.fileSize.'),
  types: optional(
    z
      .array(
        z
          .string()
          .regex(
            /^[a-z0-9][a-z0-9.+-]*\/(?:\*|[a-z0-9][a-z0-9.+-]*)$/,
            'must be a media type such as "image/*" or "image/png"',
          ),
      )
      .min(1),
    'Media types of files, by their bytes: "image/*" or "image/png". Default: all.',
  ),
}
