import { posix } from 'node:path'
import { isPossibleHost } from '../../options.ts'
import * as z from '../../packages/zod.ts'
import { urlPrefix } from './public-url.ts'

/** Option for a hostname or an IP address. */
export function hostName() {
  const error = 'must be only a hostname or an IP address, without a scheme, a port or a path'
  return z
    .string()
    .regex(/^[^\s/@[\]]+$/, { error, abort: true })
    .refine(isPossibleHost, 'is not a valid hostname')
}

/** Options of a server with folders that a web server serves. Spread them into the provider's `config`. */
export const serverFolderOptions = {
  directory: z
    .string()
    .regex(/^(?!~)[^\u0000-\u001f]*$/, 'must not start with "~". Relative paths start in the login folder')
    .default('')
    .describe(
      'Folder on the server: relative to the login folder, or absolute with a leading "/". Created if it does not exist.',
    ),
  urlPrefix: urlPrefix().describe('Public base URL at which a web server serves the folder.'),
  atomic: z
    .boolean()
    .default(true)
    .describe(
      'Upload to a temporary name with a leading dot and rename it, so that no partial file is ever visible.',
    ),
}

/** Option for a folder below another one, such as `img/blog`. */
export function plainFolder() {
  const isPlain = (name: string) => !/^\.\.?$|[\\\u0000-\u001f\u007f]/.test(name) && name.isWellFormed()
  return z
    .string()
    .refine(
      path => path.split('/').every(isPlain),
      'must be a folder without "." and ".." such as "img/blog"',
    )
}

/** Returns the normal form of a folder on a server, without a slash at the end. The login folder is `.`. */
export function cleanFolder(directory: string): string {
  const folder = posix.normalize(directory)
  return folder === '/' ? folder : folder.replace(/\/$/, '')
}

/** Cleans a relative path: removes slashes at both ends and repeated slashes. */
export function cleanRelative(path: string): string {
  return path.split('/').filter(Boolean).join('/')
}
