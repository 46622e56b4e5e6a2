import { randomUUID } from 'node:crypto'
import type { HttpClient, HttpReply, HttpRequest } from '../../http/client.ts'
import { excerpt } from '../../http/excerpt.ts'
import { Problem } from '../../problem.ts'
import { inTheWay, type RemoteFiles } from '../shared/file-tree.ts'
import { encodeKey } from '../shared/public-url.ts'
import { findInXml, parseXmlPath } from '../shared/xml-path.ts'
import type { Reason, WebDavLogin } from './login.ts'

/** Maximum number of attempts to log in: without credentials, with a nonce, and with a new nonce. */
const LOGIN_ATTEMPTS = 3

const DONE = [200, 201, 202, 204]
const GONE = [404, 410]

const QUERY =
  '<?xml version="1.0" encoding="utf-8"?><propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/></prop></propfind>'

const PROPFIND = {
  method: 'PROPFIND',
  headers: { Depth: '0', 'Content-Type': 'application/xml; charset=utf-8' },
  body: QUERY,
} as const

/** Meanings of error statuses that differ from the general ones. */
const REASONS: Readonly<Record<number, Reason>> = {
  404: ['there is nothing at that URL', 'Check "url" and "directory".'],
  405: ['it does not allow this request there', 'Check that "url" is a WebDAV URL and is writable.'],
  409: [
    'the folder does not exist, or a file has its name',
    'Check "url", "directory" and the key template.',
  ],
  423: ['the file is locked', 'Try again when the lock is released.'],
  501: ['it does not support this request', 'Check that "url" is a WebDAV URL.'],
  507: ['no space left'],
}

const NO_DAV: Reason = ['this is not a response of a WebDAV server', 'Check "url" and any proxy in between.']
const CANNOT_MOVE: Reason = [
  'it cannot rename files, does not allow it, or does not recognize its own public URL behind a reverse proxy',
  'Set "atomic" to false.',
]
/** The file was stored before, so even 403 and 404 concern the request to rename it. */
const CANNOT_MOVE_STATUSES = [400, 403, 404, 405, 415, 500, 501, 502]

/** A request that the server rejected. */
class Refusal extends Problem {}

interface DavRequest extends Pick<HttpRequest, 'method' | 'headers' | 'body'> {
  /** Path below the base URL. It starts with `/`; that of a folder may end with `/`. */
  readonly path: string
  /** Statuses that are not errors. With `any`, only a rejected login is an error. */
  readonly accept: readonly number[] | 'any'
}

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
  const { host } = new URL(base)
  let hasPropfind = true
  const urlOf = (path: string): URL => new URL(`${base}/${encodeKey(path.slice(1))}`)

  async function request(request: DavRequest, signal: AbortSignal): Promise<HttpReply> {
    const { method, accept } = request
    // A request without a body finds out how to log in, so that a large body is not sent in vain.
    if (login.isUnknown && method === 'PUT') await send({ ...PROPFIND, path: '/', accept: 'any' }, signal)
    const reply = await send(request, signal)
    if (accept === 'any' || accept.includes(reply.status)) return reply
    throw refusal(method, reply.status, REASONS[reply.status] ?? [excerpt(reply.text)])
  }

  /** Sends a request, and again with a response to the challenge if the server wants a login. */
  async function send({ path, ...request }: DavRequest, signal: AbortSignal): Promise<HttpReply> {
    const { method, accept } = request
    const url = urlOf(path)
    for (let attempt = 1; ; attempt++) {
      const authorization = login.authorize(method, url.pathname)
      const headers = { ...request.headers, ...(authorization !== undefined && { authorization }) }
      const isRead = (status: number) =>
        accept === 'any' || accept.includes(status) || [401, 500].includes(status) || status in REASONS
      const reply = await http.send({ ...request, url, headers, accept: isRead }, signal)
      if (reply.status !== 401) return reply
      const challenges = reply.headers['www-authenticate'] ?? ''
      const mayHelp = login.handleChallenges(challenges, authorization)
      if (mayHelp && attempt < LOGIN_ATTEMPTS) continue
      throw refusal(method, 401, login.explain(challenges))
    }
  }

  function refusal(method: string, status: number, [why, advice]: Reason): Refusal {
    return new Refusal(`${host} returned ${status} to ${method}: ${why}`, {
      advice,
      ...(status === 507 && { code: 'insufficient_storage' }),
      retryable: status === 500 || status === 502,
    })
  }

  async function find(path: string, signal: AbortSignal): Promise<Resource | undefined> {
    if (!hasPropfind) return findByHead(path, signal)
    const accept = [207, 400, 404, 405, 409, 410, 501]
    const reply = await request({ ...PROPFIND, path, accept }, signal)
    if (reply.status === 207) return readProperties(reply.text) ?? notDav('PROPFIND', 207)
    if (reply.status !== 405 && reply.status !== 501) return undefined
    hasPropfind = false
    return findByHead(path, signal)
  }

  /** Looks up a path of nginx without its module for PROPFIND. A folder redirects to its URL with a slash. */
  async function findByHead(path: string, signal: AbortSignal): Promise<Resource | undefined> {
    const headers = { 'Accept-Encoding': 'identity' }
    const accept = [200, 301, 302, 303, 307, 308, ...GONE]
    const plain = path.replace(/(?<=.)\/$/, '')
    const ask = (at: string) => request({ method: 'HEAD', path: at, headers, accept }, signal)
    const reply = await ask(plain)
    const { status } = reply
    if (GONE.includes(status)) return undefined
    if (status > 200) {
      const folder = plain.slice(plain.lastIndexOf('/') + 1)
      if (!reply.headers['location']?.endsWith(`${encodeKey(folder)}/`)) notDav('HEAD', status)
      return { isFolder: true, size: 'unknown' }
    }
    const length = reply.headers['content-length']
    // A server that returns a page for every URL also returns one for a random name, so the page is not a file.
    const isFile = length !== undefined && GONE.includes((await ask(`${plain}-${randomUUID()}`)).status)
    return isFile ? { isFolder: false, size: Number(length) } : notDav('HEAD', status)
  }

  /** Makes the error for a response of a gateway or a login page. */
  function notDav(method: string, status: number): never {
    throw refusal(method, status, NO_DAV)
  }

  /** Returns false if something has the name and `overwrite` is false. */
  async function move(from: string, to: string, overwrite: boolean, signal: AbortSignal): Promise<boolean> {
    const url = urlOf(to)
    // Apache needs the second form behind a reverse proxy that terminates TLS. The third is newer (RFC 4918, section 10.3).
    const spellings = new Set([url.href, url.href.replace(/^https:/, 'http:'), url.pathname])
    const accept = [200, 201, 204, ...CANNOT_MOVE_STATUSES, ...(overwrite ? [] : [409, 412])]
    let status = 0
    for (const Destination of spellings) {
      const headers = { Destination, Overwrite: overwrite ? 'T' : 'F' }
      status = (await request({ method: 'MOVE', path: from, headers, accept }, signal)).status
      if (status !== 400 && status !== 502) break
    }
    if (CANNOT_MOVE_STATUSES.includes(status)) throw refusal('MOVE', status, CANNOT_MOVE)
    return status !== 409 && status !== 412
  }

  return {
    async write(path, object, signal) {
      const headers = { 'Content-Type': object.contentType }
      await request({ method: 'PUT', path, headers, body: object, accept: DONE }, signal)
    },
    sizeOf: async (path, signal) => (await find(path, signal))?.size,
    exists: async (path, signal) => (await find(path, signal)) !== undefined,
    isFolder: async (path, signal) => (await find(`${path}/`, signal))?.isFolder ?? false,
    async makeFolder(path, signal) {
      // 405: the path exists. 400: the path is a file.
      const accept = [...DONE, 400, 405]
      const { status } = await request({ method: 'MKCOL', path: `${path}/`, accept }, signal)
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
      await request({ method: 'DELETE', path, accept: [...DONE, ...GONE] }, signal)
      if (await find(path, signal))
        throw new Problem('the server reported that it removed the file, but it still exists', {
          advice: 'Try again.',
        })
    },
    isRefusal: error => error instanceof Refusal,
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
