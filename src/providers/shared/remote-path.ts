import { randomBytes } from 'node:crypto'
import { UploadError } from '../../errors.ts'
import * as z from '../../packages/zod.ts'

/** Where an object lies on a server that has folders; relative paths start where a login does. */
export interface RemotePath {
  /** `/` is the root, and an empty one the folder a login starts in. */
  readonly folder: string
  readonly path: string
}

/** A host by its name or address, as an option. */
export function hostName() {
  return z
    .string()
    .regex(/^[^\s/@[\]]+$/, 'must be a host name or an address alone, without a scheme, a port or a path')
}

/** A folder on a server, as an option. */
export function remoteFolder() {
  return z
    .string()
    .regex(/^(?!~)[^\u0000-\u001f]*$/, 'must not start with "~": relative folders start where a login does')
}

/** The folder without what changes nothing: `./` before it, slashes behind it. */
export function cleanFolder(directory: string): string {
  const folder = directory.replace(/^(\.\/+)+|^\.$/, '')
  return folder.replace(/(?<!\/)\/+$/, (_, offset) => (offset === 0 ? '/' : ''))
}

/** A path below something else: without slashes at its ends and doubled ones in between. */
export function cleanRelative(path: string): string {
  return path.split('/').filter(Boolean).join('/')
}

/**
 * The way to an object below a folder. Beside what no key may have (`contract.ts`), these servers could take a backslash
 * for a slash, and names with a dot in front are those of temporary files.
 */
export function resolveKey(directory: string, key: string): RemotePath {
  const hidden = key.split('/').find(name => name.startsWith('.'))
  if (hidden !== undefined || key.includes('\\')) {
    const fault = hidden === undefined ? 'it holds a backslash' : `"${hidden}" starts with a dot`
    throw new UploadError(
      'delivery_failed',
      `"${key}" cannot be stored: ${fault}. Change the key template or the name of the file.`,
    )
  }
  const path = joinRemote(directory, key)
  return { folder: parentOf(path), path }
}

/** A name beside the object it will become; keys cannot have it, since none of their parts starts with a dot. */
export function temporaryPath(folder: string): string {
  return joinRemote(folder, `.upload-server-${randomBytes(8).toString('hex')}`)
}

/** Joins a folder and a relative path. */
export function joinRemote(directory: string, path: string): string {
  return directory === '' || directory.endsWith('/') ? directory + path : `${directory}/${path}`
}

/** The folder around a path; the root is `/`, the folder a login starts in is empty. */
export function parentOf(path: string): string {
  const slash = path.lastIndexOf('/')
  return slash === 0 ? '/' : path.slice(0, Math.max(slash, 0))
}
