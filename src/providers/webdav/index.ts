import { isLoopback } from '../../http/proxy/no-proxy.ts'
import { secret } from '../../options.ts'
import * as z from '../../packages/zod.ts'
import { type Context, defineProvider, type Target } from '../contract.ts'
import { createFileTree } from '../shared/file-tree.ts'
import { locationAt } from '../shared/location.ts'
import { HASHED_NAME, joinFolder } from '../shared/picgo-options.ts'
import { joinUrl, urlPrefix, urlSuffix, withoutSlash } from '../shared/public-url.ts'
import { cleanRelative, plainFolder } from '../shared/remote-path.ts'
import { createDavFiles } from './files.ts'
import { createLogin } from './login.ts'

const config = z.object({
  url: urlPrefix()
    .refine(
      url => !/^\w+:\/\/[^/]*@/.test(url),
      'must not contain credentials. Set "username" and "password" instead',
    )
    .describe('URL of the WebDAV folder, such as "https://cloud.example.com/remote.php/dav/files/me".'),
  username: z.string().min(1).optional().describe('User name to log in with. Default: no login.'),
  password: secret().optional().describe('Password of the user. Prefer an app password.'),
  authType: z
    .enum(['basic', 'digest'])
    .default('basic')
    .describe('HTTP authentication scheme. Digest does not send the password in plain text.'),
  directory: plainFolder().default('').describe('Folder below "url". Created if it does not exist.'),
  atomic: z
    .boolean()
    .default(true)
    .describe('Upload to a temporary name and rename with MOVE, so that no partial file is ever visible.'),
  urlPrefix: urlPrefix()
    .optional()
    .describe('Public base URL at which a web server serves the folder. Default: the WebDAV URL.'),
  urlSuffix: urlSuffix().optional(),
})

type Options = z.output<typeof config>

/** A WebDAV server. */
export const webdav = defineProvider({
  type: 'webdav',
  about: {
    family: 'server',
    what: 'WebDAV with Basic or Digest authentication',
    testedAgainst: 'Apache and nginx',
    choices: [
      {
        label: 'WebDAV',
        hint: 'Nextcloud, ownCloud, a NAS',
        asks: ['url', 'username?', 'password?', 'urlPrefix?'],
      },
    ],
  },
  config,
  validate,
  open,
  // URLs are built as in PicList: `customUrl` or else the server, and the folder of the website or else the one on the server.
  picgo(old) {
    const isSecure = old.flag('sslEnabled') || /^https:/i.test(old.text('host') ?? '')
    const host = old.text('host')?.replace(/^https?:\/\/|(?<!\/)\/+$/gi, '')
    const url = host && `${isSecure ? 'https' : 'http'}://${host}`
    const [folder, webFolder] = [old.folder('path'), old.folder('webpath')]
    const site = old.url('customUrl') ?? (webFolder.length > 0 ? url : undefined)
    return {
      url,
      username: old.text('username'),
      password: old.text('password'),
      authType: old.text('authType')?.toLowerCase() === 'digest' ? 'digest' : 'basic',
      directory: folder.join('/'),
      urlPrefix: joinFolder(site, webFolder.length > 0 ? webFolder : folder),
      urlSuffix: old.suffix('options'),
      keyTemplate: HASHED_NAME,
    }
  },
})

function validate({ username, password, authType }: Options): string | undefined {
  if ((username === undefined) !== (password === undefined))
    return 'Set both "username" and "password", or neither if the server requires no login.'
  if (authType === 'basic' && username?.includes(':'))
    return '"username" must not contain a colon with "authType": "basic".'
  return undefined
}

function open(options: Options, { name, http, warn }: Context): Target {
  const { username, password, authType, atomic } = options
  const base = withoutSlash(new URL(options.url).href)
  const { protocol, hostname } = new URL(base)
  const directory = `/${cleanRelative(options.directory)}`
  const publicUrl = options.urlPrefix ?? joinUrl(base, directory.slice(1))
  if (username !== undefined && authType === 'basic' && protocol === 'http:' && !isLoopback(hostname)) {
    warn(
      `webdav/${name}: the password is sent in plain text, without TLS. Use https, or set "authType" to "digest".`,
    )
  }
  const login = createLogin(
    username === undefined || password === undefined ? undefined : { username, password, authType },
  )
  const files = createDavFiles(base, http, login)
  return {
    ...createFileTree(work => work(files), {
      directory,
      atomic,
      urlOf: key => joinUrl(publicUrl, key) + (options.urlSuffix ?? ''),
    }),
    location: locationAt('webdav', base, directory),
  }
}
