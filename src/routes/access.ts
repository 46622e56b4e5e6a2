import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Request, Response } from 'express'
import { UploadError } from '../errors.ts'
import { isLoopbackAddress } from '../loopback-address.ts'
import type { Caller, SourceKind } from '../uploader/input.ts'
import { collectKeys, createKeyFinder } from './credentials.ts'
import { isCrossSite } from './cross-site.ts'
import type { FailureWindow } from './failure-window.ts'
import { findExemptionDenial, isTrustedOrigin, type LoopbackRules } from './loopback.ts'
import { createProxyUsers, type ProxyAuth } from './proxy-user.ts'
import { addToLog } from './request-log.ts'

export interface RequestFacts {
  /** IP address of the peer. Undefined for a Unix socket, which never counts as loopback. */
  readonly peerAddress: string | undefined
  /** IP address of the client behind trusted proxies. Failed attempts are counted by it; it never makes a request local. */
  readonly clientAddress: string
  readonly headers: IncomingHttpHeaders
  /** Names and values in turn, as they came. */
  readonly rawHeaders: readonly string[]
  readonly query: URLSearchParams
  /** `http` or `https`: the connection of the peer. */
  readonly scheme: string
}

interface UploadKey {
  readonly name: string
  readonly key: string
  /** Each is `provider` or `provider/configName`. Default: all destinations. */
  readonly destinations?: readonly string[] | undefined
  /** Sources the key may use. Default: forms, URLs and, if roots are configured, file paths. */
  readonly sources?: readonly SourceKind[] | undefined
  /** Whether a reverse proxy adds the key to the requests of people it knows. */
  readonly addedByProxy?: boolean | undefined
}

export interface AccessSettings extends LoopbackRules {
  /** A reverse proxy that says who sends a request. */
  readonly proxy?: ProxyAuth | undefined
  readonly publicUrl?: string | undefined
  /** `server.key` comes first, under the name `server`. Empty keys are ignored. */
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
  /** Identifies the client and what it may name. Throws `unauthorized` or `rate_limited`. */
  admit(facts: RequestFacts): Caller
  /**
   * Checks that no page of another site sent a request that changes or lists something, if the browser or a reverse proxy
   * added what identifies the client. Throws `origin_forbidden`.
   */
  assertSameSite(caller: Caller, facts: RequestFacts): void
  /** Whether the peer is the reverse proxy of `auth.proxy`, whose requests are never local. */
  isProxy(peerAddress: string | undefined): boolean
  /** Whether pages of that origin may use the loopback exemption. Never true for `null`. */
  isTrustedOrigin(origin: string): boolean
}

export function requestFacts(
  req: IncomingMessage,
  query: URLSearchParams,
  clientAddress: string,
): RequestFacts {
  const { headers, rawHeaders, socket } = req
  const scheme = 'encrypted' in socket ? 'https' : 'http'
  return { peerAddress: socket.remoteAddress, clientAddress, headers, rawHeaders, query, scheme }
}

/** Identifies the client of a request and adds it to the request's log line. Throws as `admit` does. */
export function admitCaller(req: Request, res: Response, query: URLSearchParams, access: Access): Caller {
  const caller = access.admit(requestFacts(req, query, req.ip ?? ''))
  addToLog(res, { caller: caller.name, admittedBy: caller.admittedBy, address: req.ip })
  return caller
}

/** The same for a request that changes or lists something. Throws as `admit` and `assertSameSite` do. */
export function admitSameSite(req: Request, res: Response, query: URLSearchParams, access: Access): Caller {
  const caller = admitCaller(req, res, query, access)
  access.assertSameSite(caller, requestFacts(req, query, req.ip ?? ''))
  return caller
}

/**
 * Decides who may upload, in this order: people whom the reverse proxy of `auth.proxy` names, local clients, who need no
 * key; then IP addresses with too many failed attempts are rejected, and the upload keys are compared.
 *
 * @param failures failed attempts so far, which a reload doesn't reset
 */
export function createAccess(settings: AccessSettings, failures: FailureWindow): Access {
  const keys = settings.keys.filter(({ key }) => key !== '')
  const findKey = createKeyFinder(keys.map(({ key }) => key))
  const keyCallers = keys.map(key => describeKeyCaller(key, settings))
  const loopback = describeLoopbackCaller(settings)
  const anonymous = settings.anonymous ? describeAnonymousCaller(settings) : undefined

  const { proxy } = settings
  const proxyUsers = proxy && createProxyUsers(proxy)
  const proxyHeaders = proxy ? [proxy.userHeader, proxy.secretHeader?.name.toLowerCase()].filter(isText) : []
  const loopbackRules = { ...settings, proxyHeaders }

  function admit(facts: RequestFacts): Caller {
    const { peerAddress, clientAddress, headers, rawHeaders, query } = facts
    const user = proxyUsers?.nameOf(facts)
    if (proxy?.isEnough && user !== undefined) return describeProxyCaller(user, proxy, settings)

    const isFromProxy = proxyUsers?.isProxy(peerAddress) ?? false
    const isLocal = isLoopbackAddress(peerAddress)
    const denial = !isLocal
      ? undefined
      : isFromProxy
        ? 'the peer is the reverse proxy of "auth.proxy", which does not name a person'
        : findExemptionDenial(headers, rawHeaders.length / 2, loopbackRules)
    if (isLocal && denial === undefined) return loopback

    const waitS = failures.waitS(clientAddress, settings.maxFailures)
    if (waitS > 0) throw tooManyFailures(waitS)

    const sent = keys.length > 0 ? collectKeys(headers, query) : []
    const caller = keyCallers[findKey(sent)]
    if (caller !== undefined) return user === undefined ? caller : inPerson(caller, user)
    if (sent.length > 0) failures.count(clientAddress, settings.failureWindowMs)
    if (anonymous !== undefined && !isFromProxy) return anonymous
    throw unauthorized(keys.length > 0, denial)
  }

  function assertSameSite(caller: Caller, { headers, scheme, peerAddress }: RequestFacts) {
    if (!caller.isAddedByOthers) return
    const isFromProxy = proxyUsers?.isProxy(peerAddress) ?? false
    const forwarded = isFromProxy ? String(headers['x-forwarded-proto'] ?? '').toLowerCase() : ''
    const facts = {
      origin: headers.origin,
      fetchSite: String(headers['sec-fetch-site'] ?? ''),
      host: headers.host,
      scheme: ['http', 'https'].includes(forwarded) ? forwarded : scheme,
    }
    if (isCrossSite(facts, settings)) throw crossSite()
  }

  return {
    admit,
    assertSameSite,
    isProxy: peerAddress => proxyUsers?.isProxy(peerAddress) ?? false,
    isTrustedOrigin: origin => isTrustedOrigin(origin, settings.allowedOrigins),
  }
}

const isText = (value: string | undefined) => value !== undefined

/** A person who is named by the reverse proxy. What the person may do is that of a key. */
function describeProxyCaller(user: string, proxy: ProxyAuth, settings: AccessSettings): Caller {
  const { destinations, sources } = proxy
  return inPerson(describeKeyCaller({ name: '', key: '', destinations, sources }, settings), user)
}

function inPerson(caller: Caller, user: string): Caller {
  return { ...caller, name: `proxy: ${user}`, user, admittedBy: 'proxy', isAddedByOthers: true }
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

function describeKeyCaller(
  { name, destinations, sources, addedByProxy }: UploadKey,
  settings: AccessSettings,
): Caller {
  const { path, url } = settings.sources
  const byDefault: SourceKind[] = path.roots.length > 0 ? ['form', 'url', 'path'] : ['form', 'url']
  return {
    name,
    admittedBy: 'key',
    ...(addedByProxy && { isAddedByOthers: true }),
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

function crossSite(): UploadError {
  return new UploadError(
    'origin_forbidden',
    'A web page of another site sent this request. If you trust that site, add its origin to "auth.allowedOrigins"; if it is this server, set "server.publicUrl".',
  )
}

function tooManyFailures(waitS: number): UploadError {
  const message = `Too many failed attempts with wrong upload keys from this IP address. Try again in ${waitS} s with the right key.`
  return new UploadError('rate_limited', message, { retryAfterS: waitS })
}

// The message is the same for a missing and a wrong key. `denial` says why the loopback exemption did not apply.
function unauthorized(hasKeys: boolean, denial: string | undefined): UploadError {
  const remedy = hasKeys
    ? 'Missing or invalid upload key. Send it in the X-Upload-Key header or as Authorization: Bearer KEY.'
    : 'This server has no upload key. Set one with "server.key", UPLOAD_SERVER_KEY or --key, and send it in the X-Upload-Key header.'
  const reason = denial && ` The request came from this machine but is treated as remote: ${denial}.`
  return new UploadError('unauthorized', remedy + (reason ?? ''))
}
