import {
  HASHED_NAME,
  joinAddress,
  readTextOption,
  splitPath,
  type Translated,
} from '../shared/picgo-options.ts'
import { toUrlSuffix } from '../shared/public-url.ts'

/**
 * Translates PicList's options for WebDAV (`webdavplist`). URLs are built as in PicList: `customUrl` or else the server, and
 * the folder of the website or else the folder on the server.
 */
export function fromPicGo(options: Record<string, unknown>): Translated {
  const notes: string[] = []
  const read = (name: string) => readTextOption(options[name])
  const given = read('host')
  const isSecure = options['sslEnabled'] === true || /^https:/i.test(given ?? '')
  const url = given && `${isSecure ? 'https' : 'http'}://${given.replace(/^https?:\/\/|(?<!\/)\/+$/gi, '')}`
  const [folder, webFolder] = [splitPath(read('path')), splitPath(read('webpath'))]
  const customUrl = read('customUrl')
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
      keyTemplate: HASHED_NAME,
    },
    notes,
  }
}
