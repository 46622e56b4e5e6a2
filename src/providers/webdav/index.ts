import { createHttpClient, httpOptions } from '../../http/client.ts'
import { secret } from '../../options.ts'
import * as z from '../../packages/zod.ts'
import { defineProvider, type ProviderDeps, type Target } from '../contract.ts'
import { createBackground } from '../shared/background.ts'
import { joinUrl, urlPrefix, urlSuffix, withoutSlash } from '../shared/public-url.ts'
import { cleanRelative } from '../shared/remote-path.ts'
import { createWebDavClient } from './client.ts'
import { createCollection } from './collection.ts'
import { createLogin } from './login.ts'
import { fromPicGo } from './picgo.ts'

const config = z.object({
  url: urlPrefix()
    .refine(url => !/^\w+:\/\/[^/]*@/.test(url), 'must not hold a login: give "username" and "password"')
    .describe('Address of the WebDAV folder, such as "https://cloud.example.com/remote.php/dav/files/me".'),
  username: z.string().min(1).optional().describe('User to log in as. Default: nobody.'),
  password: secret().optional().describe('Password of the user. Better one for this application alone.'),
  authType: z
    .enum(['basic', 'digest'])
    .default('basic')
    .describe('How to log in. Digest does not show the password to who listens on the way.'),
  directory: z
    .string()
    .refine(isPlainFolder, 'must be a folder without "." and ".." such as "img/blog"')
    .default('')
    .describe('Folder below the address. It is made when it is missing.'),
  atomic: z
    .boolean()
    .default(true)
    .describe('Upload under a temporary name and MOVE, so that a file is there whole or not at all.'),
  urlPrefix: urlPrefix()
    .optional()
    .describe('Address at which a web server hands the folder out. Default: that of WebDAV itself.'),
  urlSuffix: urlSuffix().optional(),
  ...httpOptions,
})

type Options = z.output<typeof config>

/** A server that speaks WebDAV. */
export const webdav = defineProvider({
  type: 'webdav',
  about: {
    family: 'server',
    what: 'WebDAV with Basic or Digest',
    testedAgainst: 'Apache and nginx',
    example: {
      cloud: {
        url: 'https://cloud.example.com/remote.php/dav/files/me',
        username: 'me',
        password: 'CLOUD_PASSWORD',
        directory: 'Pictures/blog',
        urlPrefix: 'https://img.example.com/blog',
      },
      nas: {
        url: 'http://192.0.2.7:5005/web',
        username: 'uploader',
        password: 'NAS_PASSWORD',
        authType: 'digest',
      },
    },
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
    return '"username" and "password" belong together: give both, or none for a server that asks for no login.'
  if (authType === 'basic' && username?.includes(':'))
    return '"username" must not have a colon with "authType": "basic".'
  return undefined
}

function open(options: Options, deps: ProviderDeps): Target {
  const { username, password, authType, atomic } = options
  const base = withoutSlash(new URL(options.url).href)
  const directory = `/${cleanRelative(options.directory)}`
  const publicUrl = options.urlPrefix ?? joinUrl(base, directory.slice(1))
  if (username !== undefined && authType === 'basic' && isListenedTo(base)) {
    deps.warn(`webdav/${deps.name}: the password is sent without TLS. Use https, or "authType": "digest".`)
  }
  const http = createHttpClient(options, deps)
  const login = createLogin(
    username === undefined || password === undefined ? undefined : { username, password, authType },
  )
  const collection = createCollection(createWebDavClient(base, http, login), { directory, atomic })
  const background = createBackground()

  return {
    async put(object, signal) {
      await background.run(() => collection.put(object, signal), signal)
      return { url: joinUrl(publicUrl, object.key) + (options.urlSuffix ?? '') }
    },
    check: signal => background.run(() => collection.probe(signal), signal),
    exists: collection.exists,
    remove: collection.remove,
    async close() {
      await background.settle()
      http.close()
    },
  }
}

/** Whether somebody may read along. */
function isListenedTo(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return protocol === 'http:' && !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
}
