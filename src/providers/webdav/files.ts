import { randomUUID } from 'node:crypto'
import {
  type HttpClient,
  HttpRefusal,
  type HttpReply,
  type HttpRequest,
  type Refusal,
} from '../../http/client.ts'
import { Problem } from '../../problem.ts'
import { inTheWay, type RemoteFiles } from '../shared/file-tree.ts'
import { encodeKey } from '../shared/public-url.ts'
import { findInXml, parseXmlPath } from '../shared/xml-path.ts'
import { because, type WebDavLogin } from './login.ts'

/** Maximum number of attempts to log in: without credentials, with a nonce, and with a new nonce. */
const LOGIN_ATTEMPTS = 3

const DONE = [200, 201, 202, 204]
const GONE = [404, 410]

const PROPFIND = {
  headers: { Depth: '0', 'Content-Type': 'application/xml; charset=utf-8' },
  body: '<?xml version="1.0" encoding="utf-8"?><propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/></prop></propfind>',
}

/** Meanings of error statuses that differ from the general ones. */
const REASONS: Readonly<Record<number, Refusal>> = {
  404: because('there is nothing at that URL', 'Check "url" and "directory".'),
  405: because('it does not allow this request there', 'Check that "url" is a WebDAV URL and is writable.'),
  409: because(
    'the folder does not exist, or a file has its name',
    'Check "url", "directory" and the key template.',
  ),
  423: because('the file is locked', 'Try again when the lock is released.'),
  501: because('it does not support this request', 'Check that "url" is a WebDAV URL.'),
  507: { ...because('no space left'), code: 'insufficient_storage', retryable: false },
}

const NO_DAV = because('this is not a response of a WebDAV server', 'Check "url" and any proxy in between.')
const CANNOT_MOVE = because(
  'it cannot rename files, does not allow it, or does not recognize its own public URL behind a reverse proxy',
  'Set "atomic" to false.',
)
/** The file was stored before, so even 403 and 404 concern the request to rename it. */
const CANNOT_MOVE_STATUSES = [400, 403, 404, 405, 415, 500, 501, 502]

/** A file or folder at a path. */
interface Resource {
  readonly isFolder: boolean
  /** Bytes. */
  readonly size: number | 'unknown'
}

/**
 * The files of a WebDAV server (RFC 4918).
 *
 * @param base URL of the collection, without a slash at the end
 */
export function createDavFiles(base: string, http: HttpClient, login: WebDavLogin): RemoteFiles {
  let hasPropfind = true
  const urlOf = (path: string): URL => new URL(`${base}/${encodeKey(path.slice(1))}`)

  function fail(reply: HttpReply, refusal: Refusal): never {
    throw new HttpRefusal(reply, refusal, new URL(base))
  }

  /**
   * Sends a request, and again with a response to the challenge if the server wants a login.
   *
   * @param path below the base URL. It starts with `/`; that of a folder may end with `/`
   * @param accept statuses that are not errors. Without it, only a rejected login is an error
   */
  async function send(
    method: string,
    path: string,
    accept: readonly number[] | undefined,
    signal: AbortSignal,
    more: Pick<HttpRequest, 'headers' | 'body'> = {},
  ): Promise<HttpReply> {
    const url = urlOf(path)
    for (let attempt = 1; ; attempt++) {
      const authorization = login.authorize(method, url.pathname)
      const request: HttpRequest = {
        ...more,
        method,
        url,
        headers: { ...more.headers, ...(authorization !== undefined && { authorization }) },
        accept: status => status === 401 || (accept?.includes(status) ?? true),
        explain: ({ status }) => REASONS[status],
      }
      const reply = await http.send(request, signal)
      if (reply.status !== 401) return reply
      const challenges = reply.headers['www-authenticate'] ?? ''
      const mayHelp = login.handleChallenges(challenges, authorization)
      if (!mayHelp || attempt === LOGIN_ATTEMPTS) fail(reply, login.explain(challenges))
    }
  }

  async function find(path: string, signal: AbortSignal): Promise<Resource | undefined> {
    if (!hasPropfind) return findByHead(path, signal)
    const reply = await send('PROPFIND', path, [207, 400, 404, 405, 409, 410, 501], signal, PROPFIND)
    if (reply.status === 207) return readProperties(reply.text) ?? fail(reply, NO_DAV)
    if (reply.status !== 405 && reply.status !== 501) return undefined
    hasPropfind = false
    return findByHead(path, signal)
  }

  /** Looks up a path of nginx without its module for PROPFIND. A folder redirects to its URL with a slash. */
  async function findByHead(path: string, signal: AbortSignal): Promise<Resource | undefined> {
    const headers = { 'Accept-Encoding': 'identity' }
    const plain = path.replace(/(?<=.)\/$/, '')
    const ask = (at: string) => send('HEAD', at, [200, 301, 302, 303, 307, 308, ...GONE], signal, { headers })
    const reply = await ask(plain)
    if (GONE.includes(reply.status)) return undefined
    if (reply.status > 200) {
      const folder = plain.slice(plain.lastIndexOf('/') + 1)
      if (!reply.headers['location']?.endsWith(`${encodeKey(folder)}/`)) fail(reply, NO_DAV)
      return { isFolder: true, size: 'unknown' }
    }
    const length = reply.headers['content-length']
    // A server that returns a page for every URL also returns one for a random name, so the page is not a file.
    const isFile = length !== undefined && GONE.includes((await ask(`${plain}-${randomUUID()}`)).status)
    return isFile ? { isFolder: false, size: Number(length) } : fail(reply, NO_DAV)
  }

  /** Returns false if something has the name and `overwrite` is false. */
  async function move(from: string, to: string, overwrite: boolean, signal: AbortSignal): Promise<boolean> {
    const url = urlOf(to)
    // Apache needs the second form behind a reverse proxy that terminates TLS. The third is newer (RFC 4918, section 10.3).
    const spellings = [...(url.protocol === 'https:' ? [`http${url.href.slice(5)}`] : []), url.pathname]
    const accept = [200, 201, 204, ...CANNOT_MOVE_STATUSES, ...(overwrite ? [] : [409, 412])]
    const ask = (Destination: string) => {
      const headers = { Destination, Overwrite: overwrite ? 'T' : 'F' }
      return send('MOVE', from, accept, signal, { headers })
    }
    let reply = await ask(url.href)
    for (const spelling of spellings)
      if (reply.status === 400 || reply.status === 502) reply = await ask(spelling)
    if (CANNOT_MOVE_STATUSES.includes(reply.status)) fail(reply, CANNOT_MOVE)
    return reply.status !== 409 && reply.status !== 412
  }

  return {
    async write(path, object, signal) {
      // A request without a body finds out how to log in, so that a large body is not sent in vain.
      if (login.isUnknown) await send('PROPFIND', '/', undefined, signal, PROPFIND)
      await send('PUT', path, DONE, signal, { headers: { 'Content-Type': object.contentType }, body: object })
    },
    sizeOf: async (path, signal) => (await find(path, signal))?.size,
    exists: async (path, signal) => (await find(path, signal)) !== undefined,
    isFolder: async (path, signal) => (await find(`${path}/`, signal))?.isFolder ?? false,
    async makeFolder(path, signal) {
      // 405: the path exists. 400: the path is a file.
      const { status } = await send('MKCOL', `${path}/`, [...DONE, 400, 405], signal)
      if (DONE.includes(status)) return
      const found = await find(path, signal)
      if (status === 400 || found?.isFolder === false) throw inTheWay('file', path)
    },
    // Overwriting would also replace a folder with its content, so it is used only if a file exists.
    async rename(from, to, signal) {
      if (await move(from, to, false, signal)) return
      if ((await find(to, signal))?.isFolder) throw inTheWay('folder', to)
      await move(from, to, true, signal)
    },
    async remove(path, signal) {
      // DELETE would remove a folder with its content.
      if ((await find(path, signal))?.isFolder) throw inTheWay('folder', path)
      await send('DELETE', path, [...DONE, ...GONE], signal)
      if (await find(path, signal))
        throw new Problem('the server reported that it removed the file, but it still exists', {
          advice: 'Try again.',
        })
    },
    isRefusal: error => error instanceof HttpRefusal,
  }
}

/** Maximum number of characters that are read. The response for one path is shorter. */
const DOCUMENT_CHARACTERS = 64 * 1024
const MULTISTATUS = parseXmlPath('/multistatus')
const CONTENT_LENGTH = parseXmlPath('//getcontentlength')
const COLLECTION = parseXmlPath('//resourcetype/collection')

/** Returns undefined if the text is not a response to PROPFIND. */
function readProperties(text: string): Resource | undefined {
  const xml = text.slice(0, DOCUMENT_CHARACTERS)
  if (findInXml(xml, MULTISTATUS) === undefined) return undefined
  const size = findInXml(xml, CONTENT_LENGTH)?.trim() ?? ''
  return {
    isFolder: findInXml(xml, COLLECTION) !== undefined,
    size: /^\d+$/.test(size) ? Number(size) : 'unknown',
  }
}
