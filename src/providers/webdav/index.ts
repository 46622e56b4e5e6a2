import { secret } from '../../options.ts'
import * as z from '../../packages/zod.ts'
import { type Context, defineProvider, type Target } from '../contract.ts'
import { createFileTree } from '../shared/file-tree.ts'
import { locationAt } from '../shared/location.ts'
import { joinUrl, urlPrefix, urlSuffix, withoutSlash } from '../shared/public-url.ts'
import { cleanRelative } from '../shared/remote-path.ts'
import { createDavFiles } from './files.ts'
import { createLogin } from './login.ts'
import { fromPicGo } from './picgo.ts'

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
  directory: z
    .string()
    .refine(isPlainFolder, 'must be a folder without "." and ".." such as "img/blog"')
    .default('')
    .describe('Folder below "url". Created if it does not exist.'),
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
  fromPicGo,
})

function isPlainFolder(path: string): boolean {
  return path.split('/').every(name => !/^\.\.?$|[\\\u0000-\u001f\u007f]/.test(name) && name.isWellFormed())
}

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
  const directory = `/${cleanRelative(options.directory)}`
  const publicUrl = options.urlPrefix ?? joinUrl(base, directory.slice(1))
  if (username !== undefined && authType === 'basic' && isUnencrypted(base)) {
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

/** Returns whether the password could be intercepted: no TLS, and not the loopback interface. */
function isUnencrypted(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return protocol === 'http:' && !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
}
