import { posix } from 'node:path'
import { isLoopbackAddress } from '../../ip-ranges.ts'
import { decodeSafely } from '../../mask.ts'

/**
 * Returns the `place` of a target at a server: `webdav://cloud.example.com/dav/me/img/`. All spellings of a URL give the same
 * result. It does not depend on TLS or credentials.
 *
 * @param folder below the path of the URL
 */
export function locationAt(scheme: string, address: string, folder = ''): string {
  const { hostname, port, pathname } = new URL(address)
  const bare = hostname.replace(/^\[|\]$|\.$/g, '')
  const host =
    isLoopbackAddress(bare) || /(?:^|\.)localhost$/.test(bare) ? 'localhost' : hostname.replace(/\.$/, '')
  const path = posix.normalize(`/${decodeSafely(pathname)}/${folder}/`)
  return `${scheme}://${host}${port && `:${port}`}${path}`
}

/** The same for a server with only a hostname. A relative folder starts in the user's login folder. */
export function locationAtHost(
  scheme: string,
  { host, port, username }: { readonly host: string; readonly port: number; readonly username: string },
  folder: string,
): string {
  const home = folder.startsWith('/') ? '' : `~${encodeURIComponent(username)}/`
  return locationAt(scheme, `http://${host.includes(':') ? `[${host}]` : host}:${port}`, home + folder)
}
