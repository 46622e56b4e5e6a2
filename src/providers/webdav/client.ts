import { randomUUID } from 'node:crypto'
import type { HttpClient, HttpReply, HttpRequest } from '../../http/client.ts'
import { Problem } from '../../problem.ts'
import { encodeKey } from '../shared/public-url.ts'
import { findInXml, parseXmlPath } from '../shared/xml-path.ts'
import type { Reason, WebDavLogin } from './login.ts'

/** Maximum number of attempts to log in: without credentials, with a nonce, and with a new nonce. */
const LOGIN_ATTEMPTS = 3

interface DavRequest {
  readonly method: string
  /** Path below the base URL. It starts with `/`; that of a folder may end with `/`. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: NonNullable<HttpRequest['body']>
  /** Statuses that are not errors. With `any`, only a rejected login is an error. */
  readonly accept: readonly number[] | 'any'
}

/** A file or folder at a path. */
interface Resource {
  readonly isFolder: boolean
  /** Size in bytes, if the server returns it. */
  readonly size: number | undefined
}

/** Requests to one WebDAV server (RFC 4918). */
export interface WebDavClient {
  /** @throws Problem, `insufficient_storage` for 507 */
  request(request: DavRequest, signal: AbortSignal): Promise<HttpReply>
  /** Returns undefined if the path does not exist. */
  find(path: string, signal: AbortSignal): Promise<Resource | undefined>
  /** Renames a file. Returns false if the target may exist and `overwrite` is false. */
  move(from: string, to: string, options: { overwrite: boolean }, signal: AbortSignal): Promise<boolean>
}

const QUERY =
  '<?xml version="1.0" encoding="utf-8"?><propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/></prop></propfind>'

const PROPFIND = {
  method: 'PROPFIND',
  headers: { Depth: '0', 'Content-Type': 'application/xml; charset=utf-8' },
  body: QUERY,
} as const

const CANNOT_MOVE: Reason = [
  'it cannot rename files, does not allow it, or does not recognize its own public URL behind a reverse proxy',
  'Set "atomic" to false.',
]
/** The file was stored before, so even 403 and 404 concern the request itself. */
const CANNOT_MOVE_STATUSES = [400, 403, 404, 405, 415, 500, 501, 502]

const NO_DAV: Reason = ['this is not a response of a WebDAV server', 'Check "url" and any proxy in between.']
const GONE = [404, 410]

/** Meanings of error statuses that differ from the general ones. */
const REASONS: Readonly<Record<number, Reason>> = {
  405: ['it does not allow this request there', 'Check that "url" is a WebDAV URL and is writable.'],
  409: [
    'the folder does not exist, or a file has its name',
    'Check "url", "directory" and the key template.',
  ],
  423: ['the file is locked', 'Try again when the lock is released.'],
  501: ['it does not support this request', 'Check that "url" is a WebDAV URL.'],
  507: ['no space left'],
}

/** @param base URL of the collection, without a slash at the end */
export function createWebDavClient(base: string, http: HttpClient, login: WebDavLogin): WebDavClient {
  let hasPropfind = true
  const urlOf = (path: string): URL => new URL(`${base}/${encodeKey(path.slice(1))}`)

  async function request(request: DavRequest, signal: AbortSignal): Promise<HttpReply> {
    const { method, accept } = request
    // A request without a body finds out how to log in, so that a large body is not sent in vain.
    if (login.isUnknown && method === 'PUT') await send({ ...PROPFIND, path: '/', accept: 'any' }, signal)
    const reply = await send(request, signal)
    if (accept === 'any' || accept.includes(reply.status)) return reply
    throw refusal(method, reply.status, REASONS[reply.status] ?? ['it rejected the request'])
  }

  async function send(request: DavRequest, signal: AbortSignal): Promise<HttpReply> {
    const { method, accept } = request
    const url = urlOf(request.path)
    for (let attempt = 1; ; attempt++) {
      const authorization = login.authorize(method, url.pathname)
      const reply = await http.send(
        {
          method,
          url,
          headers: { ...request.headers, ...(authorization !== undefined && { authorization }) },
          ...(request.body !== undefined && { body: request.body }),
          accept: status =>
            accept === 'any' || accept.includes(status) || status === 401 || status in REASONS,
        },
        signal,
      )
      if (reply.status !== 401) return reply
      const challenges = reply.headers['www-authenticate'] ?? ''
      const mayHelp = login.handleChallenges(challenges, authorization)
      if (!mayHelp || attempt === LOGIN_ATTEMPTS) throw refusal(method, 401, login.explain(challenges))
    }
  }

  function refusal(method: string, status: number, [why, advice]: Reason): Problem {
    return new Problem(`${new URL(base).host} returned ${status} to ${method}: ${why}`, {
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
    const accept = [200, 301, 302, 303, 307, 308, 404, 410]
    const plain = path.replace(/(?<=.)\/$/, '')
    const ask = (at: string) => request({ method: 'HEAD', path: at, headers, accept }, signal)
    const reply = await ask(plain)
    const { status } = reply
    if (GONE.includes(status)) return undefined
    if (status > 200) {
      const folder = plain.slice(plain.lastIndexOf('/') + 1)
      if (!reply.headers['location']?.endsWith(`${encodeKey(folder)}/`)) notDav('HEAD', status)
      return { isFolder: true, size: undefined }
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

  async function move(
    from: string,
    to: string,
    { overwrite }: { overwrite: boolean },
    signal: AbortSignal,
  ): Promise<boolean> {
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

  return { request, find, move }
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
    size: /^\d+$/.test(size) ? Number(size) : undefined,
  }
}
