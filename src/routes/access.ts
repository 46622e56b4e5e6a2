import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Request, Response } from 'express'
import { UploadError } from '../errors.ts'
import { isLoopbackAddress } from '../loopback-address.ts'
import type { Caller, SourceKind } from '../uploader/input.ts'
import { collectKeys, createKeyFinder } from './credentials.ts'
import type { FailureWindow } from './failure-window.ts'
import { findLoopbackDoubt, isTrustedOrigin, type LoopbackRules } from './loopback.ts'
import { addToLog } from './request-log.ts'

export interface RequestFacts {
  /** The other end of the socket; undefined for a Unix socket, which never counts as loopback. */
  readonly peerAddress: string | undefined
  /** The address behind trusted proxies; wrong keys are counted by it, and it never makes a request loopback. */
  readonly clientAddress: string
  readonly headers: IncomingHttpHeaders
  readonly headerCount: number
  readonly query: URLSearchParams
}

interface UploadKey {
  readonly name: string
  readonly key: string
  /** `provider` or `provider/configName`; left out: all. */
  readonly destinations?: readonly string[] | undefined
  /** Replaces the default of forms, URLs and, where roots are configured, paths. */
  readonly sources?: readonly SourceKind[] | undefined
}

export interface AccessSettings extends LoopbackRules {
  /** `server.key` comes first, under the name `server`. An empty key is none. */
  readonly keys: readonly UploadKey[]
  readonly anonymous: boolean
  readonly maxFailures: number
  readonly failureWindowMs: number
  readonly sources: {
    readonly path: { readonly enabled: boolean; readonly roots: readonly string[] }
    readonly url: { readonly enabled: boolean; readonly allowPrivate: boolean }
    readonly clipboard: { readonly enabled: boolean }
  }
}

export interface Access {
  /** Who sends the request, and what that caller may name. Throws `unauthorized` or `rate_limited`. */
  admit(facts: RequestFacts): Caller
  /** Whether a page of that origin may use the exemption of loopback; never true for `null`. */
  isTrustedOrigin(origin: string): boolean
}

export function requestFacts(
  req: IncomingMessage,
  query: URLSearchParams,
  clientAddress: string,
): RequestFacts {
  const headerCount = req.rawHeaders.length / 2
  return { peerAddress: req.socket.remoteAddress, clientAddress, headers: req.headers, headerCount, query }
}

/** Finds out who sends a request, and notes it for its line in the log. Throws as `admit` does. */
export function admitCaller(req: Request, res: Response, query: URLSearchParams, access: Access): Caller {
  const caller = access.admit(requestFacts(req, query, req.ip ?? ''))
  addToLog(res, { caller: caller.name, admittedBy: caller.admittedBy, address: req.ip })
  return caller
}

/**
 * Decides who may upload: programs on this machine are not asked, then wrong keys are counted by address, then keys.
 *
 * @param failures wrong keys so far, which a reload does not forgive
 */
export function createAccess(settings: AccessSettings, failures: FailureWindow): Access {
  const keys = settings.keys.filter(({ key }) => key !== '')
  const findKey = createKeyFinder(keys.map(({ key }) => key))
  const keyCallers = keys.map(key => describeKeyCaller(key, settings))
  const loopback = describeLoopbackCaller(settings)
  const anonymous = settings.anonymous ? describeAnonymousCaller(settings) : undefined

  function admit({ peerAddress, clientAddress, headers, headerCount, query }: RequestFacts): Caller {
    const isLocal = isLoopbackAddress(peerAddress)
    const doubt = isLocal ? findLoopbackDoubt(headers, headerCount, settings) : undefined
    if (isLocal && doubt === undefined) return loopback

    const waitS = failures.waitS(clientAddress, settings.maxFailures)
    if (waitS > 0) throw tooManyFailures(waitS)

    const sent = keys.length > 0 ? collectKeys(headers, query) : []
    const caller = keyCallers[findKey(sent)]
    if (caller !== undefined) return caller
    if (sent.length > 0) failures.count(clientAddress, settings.failureWindowMs)
    if (anonymous !== undefined) return anonymous
    throw unauthorized(keys.length > 0, doubt)
  }

  return { admit, isTrustedOrigin: origin => isTrustedOrigin(origin, settings.allowedOrigins) }
}

function describeLoopbackCaller(settings: AccessSettings): Caller {
  return {
    name: 'loopback',
    admittedBy: 'loopback',
    sources: permitSources(['form', 'url', 'path', 'clipboard'], settings),
    roots: undefined,
    addresses: settings.sources.url.allowPrivate ? 'any' : 'private',
    destinations: undefined,
  }
}

function describeKeyCaller({ name, destinations, sources }: UploadKey, settings: AccessSettings): Caller {
  const { path, url } = settings.sources
  const byDefault: SourceKind[] = path.roots.length > 0 ? ['form', 'url', 'path'] : ['form', 'url']
  return {
    name,
    admittedBy: 'key',
    sources: permitSources(sources ?? byDefault, settings),
    roots: path.roots,
    addresses: url.allowPrivate ? 'any' : 'public',
    destinations,
  }
}

function describeAnonymousCaller(settings: AccessSettings): Caller {
  return { ...describeKeyCaller({ name: 'anonymous', key: '' }, settings), admittedBy: 'anonymous' }
}

function permitSources(kinds: readonly SourceKind[], { sources }: AccessSettings): ReadonlySet<SourceKind> {
  return new Set(kinds.filter(kind => kind === 'form' || sources[kind].enabled))
}

function tooManyFailures(waitS: number): UploadError {
  const message = `Too many wrong upload keys came from this address. Try again in ${waitS} s, with the right key.`
  return new UploadError('rate_limited', message, { retryAfterS: waitS })
}

// The same for no key and a wrong one. `doubt` says why the exemption of loopback did not apply.
function unauthorized(hasKeys: boolean, doubt: string | undefined): UploadError {
  const remedy = hasKeys
    ? 'No upload key was sent, or a wrong one. Send it as "key" in the query, "Authorization: Bearer" or "X-Upload-Key".'
    : 'This server has no upload key yet. Set one as "server.key" in the configuration, as UPLOAD_SERVER_KEY in the environment or with --key, and send it.'
  const reason = doubt && ` This machine sent the request, but it is treated as a stranger's: ${doubt}.`
  return new UploadError('unauthorized', remedy + (reason ?? ''))
}
