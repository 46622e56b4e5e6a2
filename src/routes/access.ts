import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Request, Response } from 'express'
import { UploadError } from '../errors.ts'
import { isLoopbackAddress } from '../ip-ranges.ts'
import type { Caller, SourceKind } from '../uploader/input.ts'
import { collectKeys, createKeyFinder, isReadingOf } from './credentials.ts'
import { isCrossSite } from './cross-site.ts'
import type { FailureWindow } from './failure-window.ts'
import { findExemptionDenial, isTrustedOrigin, type LoopbackRules } from './loopback.ts'
import { limitsOf, type Permissions } from './permissions.ts'
import { createProxyUsers, type ProxyAuth } from './proxy-user.ts'
import { addToLog } from './request-log.ts'
import { type AcceptedToken, readTokens, type TokenAuth } from './token-access.ts'

export interface RequestFacts {
  readonly method: string
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

interface UploadKey extends Permissions {
  readonly name: string
  readonly key: string
  /** Whether a reverse proxy adds the key to the requests of people it knows. */
  readonly addedByProxy?: boolean | undefined
  /** After this time, it is not valid. Milliseconds since the epoch. */
  readonly expires?: number | undefined
}

export interface AccessSettings extends LoopbackRules {
  /** A reverse proxy that says who sends a request. */
  readonly reverseProxy?: ProxyAuth | undefined
  /** Signed tokens that are accepted instead of an upload key. */
  readonly tokens?: TokenAuth | undefined
  readonly publicUrl?: string | undefined
  /** `server.key` comes first, under the name `server`. Empty keys are ignored. */
  readonly keys: readonly UploadKey[]
  readonly anonymous: boolean
  readonly maxFailures: number
  readonly sources: {
    readonly path: { readonly enabled: boolean; readonly roots: readonly string[] }
    readonly url: { readonly enabled: boolean; readonly allowPrivate: boolean }
    readonly clipboard: { readonly enabled: boolean }
  }
}

export interface Access {
  /** Identifies the client and what it may name. Throws `unauthorized`, `rate_limited` or `identity_unavailable`. */
  admit(facts: RequestFacts): Promise<Caller>
  /**
   * Checks that no page of another site sent a request that changes or lists something, if the browser or a reverse proxy
   * added what identifies the client. Throws `origin_forbidden`.
   */
  assertSameSite(caller: Caller, facts: RequestFacts): void
  /** Whether pages of that origin may use the loopback exemption. Never true for `null`. */
  isTrustedOrigin(origin: string): boolean
}

export function requestFacts(
  req: IncomingMessage,
  query: URLSearchParams,
  clientAddress: string,
): RequestFacts {
  const { method = '', headers, rawHeaders, socket } = req
  const scheme = 'encrypted' in socket ? 'https' : 'http'
  return { method, peerAddress: socket.remoteAddress, clientAddress, headers, rawHeaders, query, scheme }
}

/** Identifies the client of a request and adds it to the request's log line. Throws as `admit` does. */
export async function admitCaller(facts: RequestFacts, res: Response, access: Access): Promise<Caller> {
  const caller = await access.admit(facts)
  addToLog(res, {
    caller: caller.name,
    admittedBy: caller.admittedBy,
    address: facts.clientAddress || undefined,
  })
  return caller
}

/** The same for a request that changes or lists something. Throws as `admit` and `assertSameSite` do. */
export async function admitSameSite(
  req: Request,
  res: Response,
  query: URLSearchParams,
  access: Access,
): Promise<Caller> {
  const facts = requestFacts(req, query, req.ip ?? '')
  const caller = await admitCaller(facts, res, access)
  access.assertSameSite(caller, facts)
  return caller
}

/**
 * Decides who may upload, in this order: people whom the reverse proxy of `auth.reverseProxy` names, local clients, who need no
 * key; then IP addresses with too many failed attempts are rejected, the upload keys are compared, and tokens are verified.
 *
 * @param failures failed attempts so far, which a reload doesn't reset
 */
export function createAccess(settings: AccessSettings, failures: FailureWindow): Access {
  const keys = settings.keys.filter(({ key }) => key !== '')
  const findKey = createKeyFinder(keys.map(({ key }) => key))
  const keyCallers = keys.map(key => describeKeyCaller(key, settings))
  const loopback = describeLoopbackCaller(settings)
  const anonymous = settings.anonymous ? describeAnonymousCaller(settings) : undefined

  const { reverseProxy: proxy } = settings
  const proxyUsers = proxy && createProxyUsers(proxy)
  const { tokens } = settings
  const tokenCallers = (tokens?.entries ?? []).map(({ name, destinations, sources }) =>
    describeKeyCaller({ name, key: '', destinations, sources }, settings),
  )
  const asksForSecret = keys.length > 0 || tokens !== undefined
  const proxyHeaders = [
    ...(settings.proxyHeaders ?? []),
    ...(proxy ? [proxy.userHeader, proxy.secretHeader?.name.toLowerCase()].filter(isText) : []),
    ...(tokens?.verifier.headers ?? []),
  ]
  const loopbackRules = { ...settings, proxyHeaders }

  async function admit(facts: RequestFacts): Promise<Caller> {
    const { peerAddress, headers, rawHeaders } = facts
    const user = proxyUsers?.nameOf(facts)
    if (proxy && !proxy.requireKey && user !== undefined) return describeProxyCaller(user, proxy, settings)

    const isFromProxy = proxyUsers?.isProxy(peerAddress) ?? false
    const mayBeLocal = !isFromProxy && isLoopbackAddress(peerAddress)
    const denial = mayBeLocal ? findExemptionDenial(headers, rawHeaders.length / 2, loopbackRules) : undefined
    if (mayBeLocal && denial === undefined) return loopback
    return admitBySecret(facts, user, isFromProxy, denial)
  }

  /**
   * @param user whom the reverse proxy names
   * @param denial why the loopback exemption does not apply
   */
  async function admitBySecret(
    facts: RequestFacts,
    user: string | undefined,
    isFromProxy: boolean,
    denial: string | undefined,
  ): Promise<Caller> {
    const { clientAddress, headers, query } = facts
    // A person without a right key is known, too.
    const who =
      user === undefined ? { proxy: proxyUsers?.explainNameless(facts) } : { caller: proxyName(user) }
    const waitS = failures.waitS(clientAddress, settings.maxFailures)
    if (waitS > 0) throw tooManyFailures(waitS, who)

    const sent = asksForSecret ? collectKeys(headers, query) : []
    const isValid = (index: number) => Date.now() < (keys[index]?.expires ?? Infinity)
    const found = findKey(sent)
    const byKey = keyCallers[found.find(isValid) ?? -1]
    const shown = byKey || !tokens ? undefined : await readTokens(tokens, headers)
    const caller = byKey ?? byToken(tokens, tokenCallers, shown?.accepted)
    if (caller !== undefined) return proxy && user !== undefined ? inPerson(caller, user, proxy) : caller
    // An expired key is not an attempt to guess one.
    const expired = keys.filter((_, index) => found.includes(index))
    const isGenuine = (value: string) =>
      shown?.genuine.has(value) || expired.some(({ key }) => isReadingOf(value, key))
    const wrongKey = shown?.hasForged || sent.some(value => !isGenuine(value))
    if (wrongKey) failures.count(clientAddress)
    if (anonymous !== undefined && !isFromProxy) return anonymous
    if (shown?.failure) throw shown.failure
    const isNameless = isFromProxy && user === undefined
    throw unauthorized(settings, isNameless ? NAMELESS : explainDenial(denial), {
      cause: shown?.cause,
      logged: {
        ...who,
        ...(expired[0] && { expiredKey: expired[0].name }),
        ...(wrongKey && { wrongKey }),
      },
    })
  }

  function assertSameSite(caller: Caller, { method, headers, scheme, peerAddress }: RequestFacts) {
    if (!caller.isAddedByOthers) return
    const isFromProxy = proxyUsers?.isProxy(peerAddress) ?? false
    const forwarded = isFromProxy ? String(headers['x-forwarded-proto'] ?? '').toLowerCase() : ''
    const facts = {
      isRead: method === 'GET' || method === 'HEAD',
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
    isTrustedOrigin: origin => isTrustedOrigin(origin, settings.allowedOrigins),
  }
}

const proxyName = (user: string) => `proxy: ${user}`
const isText = (value: string | undefined) => value !== undefined

/** A person who is named by the reverse proxy. What the person may do is that of a key. */
function describeProxyCaller(user: string, proxy: ProxyAuth, settings: AccessSettings): Caller {
  const { destinations, sources } = proxy
  return inPerson(describeKeyCaller({ name: '', key: '', destinations, sources }, settings), user, proxy)
}

/** @param proxy whose limits hold, too */
function inPerson(caller: Caller, user: string, proxy: ProxyAuth): Caller {
  const name = proxyName(user)
  const limits = limitsOf(proxy, name, 'proxy', caller)
  return { ...caller, ...limits, name, user, admittedBy: 'proxy', isAddedByOthers: true }
}

/** User whom a token names, with the permissions of its entry. */
function byToken(
  tokens: TokenAuth | undefined,
  callers: readonly Caller[],
  accepted: AcceptedToken | undefined,
): Caller | undefined {
  const [entry, caller] = accepted ? [tokens?.entries[accepted.index], callers[accepted.index]] : []
  if (!accepted || !entry || !caller) return undefined
  const { name, user, isAddedByOthers } = accepted
  const limits = limitsOf(entry, name, `token ${entry.name}`)
  return { ...caller, ...limits, name, user, admittedBy: 'token', isAddedByOthers }
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

function describeKeyCaller(key: UploadKey, settings: AccessSettings): Caller {
  const { name, destinations, sources, addedByProxy } = key
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
    ...limitsOf(key, name, name),
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
    'A web page of another site sent this request. If you trust that site, add its origin to "auth.allowedOrigins". If it is this server, set "server.publicUrl", or add its hostname to "server.allowedHosts".',
  )
}

const NAMELESS = ' The reverse proxy of "auth.reverseProxy" does not say who you are.'

/** @param denial why the loopback exemption did not apply */
const explainDenial = (denial: string | undefined) =>
  denial === undefined ? '' : ` The request came from this machine but is treated as remote: ${denial}.`

type Logged = Readonly<Record<string, unknown>>

function tooManyFailures(waitS: number, logged: Logged): UploadError {
  const message = `Too many failed attempts with wrong upload keys from this IP address. Try again in ${waitS} s with the right key.`
  return new UploadError('rate_limited', message, { retryAfterS: waitS, logged })
}

// The message is the same for a missing and a wrong key; the log tells them apart, for programs that ban IP addresses (docs/guides/
// monitor.md).
function unauthorized(
  { keys, tokens }: Pick<AccessSettings, 'keys' | 'tokens'>,
  reason: string,
  forLog: { readonly cause: Error | undefined; readonly logged: Logged },
): UploadError {
  const hasKeys = keys.some(({ key }) => key !== '')
  const secret = tokens ? (hasKeys ? 'upload key or token' : 'token') : 'upload key'
  const remedy =
    hasKeys || tokens
      ? `Missing or invalid ${secret}. Send it in the X-Upload-Key header or as Authorization: Bearer ${hasKeys ? 'KEY' : 'TOKEN'}.`
      : 'This server has no upload key. Set one with "server.key", UPLOAD_SERVER_KEY or --key, and send it in the X-Upload-Key header.'
  return new UploadError('unauthorized', remedy + reason, forLog)
}
