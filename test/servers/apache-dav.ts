import { type DavServer, startDavServer } from './dav-server.ts'

/** For `needs`. */
export const APACHE_NEEDS = [
  ['apache2', 'apache2'],
  ['/etc/mime.types', 'media-types'],
] as const

const MODULES = [
  ...['mpm_event', 'authn_core', 'authn_file', 'authz_core', 'authz_user', 'auth_basic', 'auth_digest'],
  ...['dav', 'dav_fs', 'mime'],
]

/** Starts Apache with mod_dav. Needs the Debian package apache2. */
export async function startApacheDav(
  authType: 'Basic' | 'Digest' = 'Basic',
  config: readonly string[] = [],
): Promise<DavServer> {
  return startDavServer(
    'apache2',
    ({ home, port }) =>
      [
        `ServerRoot ${home}`,
        'ServerName localhost',
        `Listen 127.0.0.1:${port}`,
        `PidFile ${home}/httpd.pid`,
        `Mutex file:${home}/locks`,
        ...MODULES.map(name => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`),
        'TypesConfig /etc/mime.types',
        `ErrorLog ${home}/error.log`,
        `DavLockDB ${home}/locks/DavLock`,
        `DocumentRoot ${home}`,
        `<Directory ${home}>`,
        '  Require all denied',
        '</Directory>',
        '<Location /dav>',
        '  Dav On',
        `  AuthType ${authType}`,
        '  AuthName "Dateien für alle"',
        authType === 'Basic' ? `  AuthUserFile ${home}/htpasswd` : '  AuthDigestProvider file',
        ...(authType === 'Digest' ? [`  AuthUserFile ${home}/htdigest`] : []),
        ...config,
        '  <LimitExcept GET HEAD>',
        '    Require valid-user',
        '  </LimitExcept>',
        '  <Limit GET HEAD>',
        '    Require all granted',
        '  </Limit>',
        '</Location>',
        '',
      ].join('\n'),
    (_, file) => ['-f', file, '-DFOREGROUND'],
  )
}
