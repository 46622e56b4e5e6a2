import { readConfiguration } from './configuration.ts'
import { type DavServer, startDavServer } from './dav-server.ts'

/** For `needs`. */
export const APACHE_NEEDS = [
  ['apache2', 'apache2'],
  ['/etc/mime.types', 'media-types'],
] as const

/** Starts Apache with mod_dav. Needs the Debian package apache2. */
export async function startApacheDav(
  authType: 'Basic' | 'Digest' = 'Basic',
  config: readonly string[] = [],
): Promise<DavServer> {
  return startDavServer(
    'apache2',
    ({ home, port }) => {
      const users =
        authType === 'Basic'
          ? `AuthUserFile ${home}/htpasswd`
          : `AuthDigestProvider file\nAuthUserFile ${home}/htdigest`
      return readConfiguration('apache-dav', { home, port, authType, users, config: config.join('\n') })
    },
    (_, file) => ['-f', file, '-DFOREGROUND'],
  )
}
