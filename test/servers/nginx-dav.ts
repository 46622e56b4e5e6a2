import { type DavServer, startDavServer } from './dav-server.ts'

/** For `needs`. */
export const NGINX_DAV_NEEDS = [
  ['nginx', 'nginx-light'],
  ['/usr/lib/nginx/modules/ngx_http_dav_ext_module.so', 'libnginx-mod-http-dav-ext'],
] as const

export interface NginxDavOptions {
  /** With PROPFIND and locks, which nginx alone does not know. Needs libnginx-mod-http-dav-ext. */
  readonly extended?: boolean
  readonly methods?: string
  readonly maxBody?: string
  /** Further lines. */
  readonly config?: readonly string[]
}

/** Starts nginx with its WebDAV. Needs the Debian package nginx-light. */
export async function startNginxDav({
  extended = true,
  methods = 'PUT DELETE MKCOL COPY MOVE',
  maxBody = '100m',
  config = [],
}: NginxDavOptions = {}): Promise<DavServer> {
  return startDavServer(
    'nginx',
    ({ home, port }) =>
      [
        ...(extended ? ['load_module /usr/lib/nginx/modules/ngx_http_dav_ext_module.so;'] : []),
        'daemon off;',
        'worker_processes 1;',
        `pid ${home}/nginx.pid;`,
        'events { worker_connections 128; }',
        'http {',
        '  access_log off;',
        ...['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
          name => `  ${name}_temp_path ${home}/tmp;`,
        ),
        ...(extended ? ['  dav_ext_lock_zone zone=dav:1m;'] : []),
        '  server {',
        `    listen 127.0.0.1:${port};`,
        '    location /dav/ {',
        `      alias ${home}/dav/;`,
        `      client_max_body_size ${maxBody};`,
        `      dav_methods ${methods};`,
        ...(extended
          ? ['      dav_ext_methods PROPFIND OPTIONS LOCK UNLOCK;', '      dav_ext_lock zone=dav;']
          : []),
        ...config,
        `      limit_except GET HEAD { auth_basic dav; auth_basic_user_file ${home}/htpasswd; }`,
        '    }',
        '  }',
        '}',
        '',
      ].join('\n'),
    (home, file) => ['-p', home, '-c', file, '-e', `${home}/error.log`],
  )
}
