import { readText } from '../shared/picgo-options.ts'
import { encodeSegment } from '../shared/public-url.ts'
import { toUrlSuffix } from '../shared/url-suffix.ts'

/** PicList's options for WebDAV (`webdavplist`) as ours. */
export function fromPicGo(options: Record<string, unknown>): {
  options: Record<string, unknown>
  notes: string[]
} {
  const notes = [
    'Files get names like "name-1a2b3c4d.png", so that none replaces another by accident: see "keyTemplate".',
  ]
  const read = (name: string) => readText(options[name])
  const given = read('host')
  const isSecure = options['sslEnabled'] === true || /^https:/i.test(given ?? '')
  const url = given && `${isSecure ? 'https' : 'http'}://${given.replace(/^https?:\/\/|(?<!\/)\/+$/gi, '')}`
  const [folder, webFolder] = [splitPath(read('path')), splitPath(read('webpath'))]
  const customUrl = read('customUrl')?.replace(/(?<!\/)\/+$/, '')
  const hasWebSite = customUrl !== undefined || webFolder.length > 0
  return {
    options: {
      url,
      username: read('username'),
      password: read('password'),
      authType: read('authType')?.toLowerCase() === 'digest' ? 'digest' : 'basic',
      directory: folder.join('/'),
      urlPrefix: hasWebSite
        ? joinAddress(customUrl ?? url, webFolder.length > 0 ? webFolder : folder, notes)
        : undefined,
      urlSuffix: toUrlSuffix(read('options')),
      keyTemplate: '{filename}-{sha256-8}{extname}',
    },
    notes,
  }
}

/** As PicList builds it: `customUrl`, else the server, and the folder of the web site, else the one on the server. */
function joinAddress(base: string | undefined, folder: string[], notes: string[]): string | undefined {
  if (base === undefined) return undefined
  const hasScheme = /^https?:\/\//i.test(base)
  if (!hasScheme) notes.push('"customUrl" has no scheme, so https is assumed: check "urlPrefix".')
  return [hasScheme ? base : `https://${base}`, ...folder.map(encodeSegment)].join('/')
}

function splitPath(path = ''): string[] {
  return path
    .toWellFormed()
    .split(/[\\/]+/)
    .filter(segment => segment !== '' && segment !== '.')
}
